/* SPDX-License-Identifier: MIT */

/*
 * A library to be loaded before all others (LD_PRELOAD) or linked into a test: it stands between a whole
 * program and its files below $SLUICE_DISK_FOLDER, and makes of them a disk that
 *
 *   with SLUICE_DISK_FORGETS=1    keeps only what was synced: other writes stay in this process, and
 *                                 a kill loses them as a power cut would; an ordinary end does not
 *   while $SLUICE_DISK_FULL is    is full: whatever would make a file longer fails with ENOSPC
 *   a file
 *
 * SQLite's shared memory (-shm) is left alone: a power cut loses it whole anyway.
 */

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "tests/support/shadow_file.h"

#define INTERPOSED __attribute__((visibility("default")))

enum {
    MAX_FDS = 4096
};

/* One file of the folder, whoever has it open; it lasts as long as the process, as a page cache would. */
struct disk_file {
    struct disk_file *next;
    dev_t device;
    ino_t inode;
    int fd; /* of our own, for the flush at the end */
    struct shadow shadow;
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct disk_file *disk_files;
static struct disk_file *by_fd[MAX_FDS];

#define REAL(name)                 real_##name
#define DECLARE(result, name, ...) static result (*REAL(name))(__VA_ARGS__)

DECLARE(int, open, const char *, int, ...);
DECLARE(int, close, int);
DECLARE(ssize_t, pread, int, void *, size_t, off_t);
DECLARE(ssize_t, pwrite, int, const void *, size_t, off_t);
DECLARE(ssize_t, pwritev, int, const struct iovec *, int, off_t);
DECLARE(int, ftruncate, int, off_t);
DECLARE(int, fstat, int, struct stat *);
DECLARE(int, fsync, int);
DECLARE(int, fdatasync, int);
DECLARE(int, fallocate, int, int, off_t, off_t);

#define FIND(name) (*(void **)&REAL(name) = dlsym(RTLD_NEXT, #name))

static void find_all(void)
{
    FIND(open);
    FIND(close);
    FIND(pread);
    FIND(pwrite);
    FIND(pwritev);
    FIND(ftruncate);
    FIND(fstat);
    FIND(fsync);
    FIND(fdatasync);
    FIND(fallocate);
}

static void prepare(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, find_all);
}

static bool forgets(void)
{
    const char *text = getenv("SLUICE_DISK_FORGETS");
    return text != NULL && strcmp(text, "1") == 0;
}

static bool is_full(void)
{
    const char *path = getenv("SLUICE_DISK_FULL");
    return path != NULL && access(path, F_OK) == 0;
}

static bool is_ours(const char *path)
{
    const char *folder = getenv("SLUICE_DISK_FOLDER");
    size_t length = strlen(path);
    return folder != NULL && strncmp(path, folder, strlen(folder)) == 0 &&
           (length < 4 || strcmp(path + length - 4, "-shm") != 0);
}

static struct disk_file *file_of(int fd)
{
    return fd >= 0 && fd < MAX_FDS ? by_fd[fd] : NULL;
}

static struct disk_file *make_file(int fd, const struct stat *facts)
{
    struct disk_file *file = calloc(1, sizeof(*file));
    if (file == NULL) {
        abort();
    }
    file->device = facts->st_dev;
    file->inode = facts->st_ino;
    file->fd = fcntl(fd, F_DUPFD_CLOEXEC, 512);
    shadow_init(&file->shadow, (size_t)facts->st_size);
    size_t at = 0;
    while (at < file->shadow.size) {
        ssize_t count = REAL(pread)(fd, file->shadow.image + at, file->shadow.size - at, (off_t)at);
        if (count <= 0) {
            abort();
        }
        at += (size_t)count;
    }
    file->next = disk_files;
    disk_files = file;
    return file;
}

/* Of a file that was opened for writing; what is only read has a shadow already, or needs none. */
static void adopt(int fd, int flags)
{
    struct stat facts;
    if (fd >= MAX_FDS || REAL(fstat)(fd, &facts) != 0 || !S_ISREG(facts.st_mode)) {
        return;
    }
    pthread_mutex_lock(&mutex);
    struct disk_file *file = disk_files;
    while (file != NULL && (file->device != facts.st_dev || file->inode != facts.st_ino)) {
        file = file->next;
    }
    if (file == NULL && (flags & O_ACCMODE) != O_RDONLY) {
        file = make_file(fd, &facts);
    } else if (file != NULL && (flags & O_TRUNC) != 0) {
        shadow_truncate(&file->shadow, 0);
    }
    by_fd[fd] = file;
    pthread_mutex_unlock(&mutex);
}

static int open_any(const char *path, int flags, mode_t mode)
{
    prepare();
    int fd = REAL(open)(path, flags, mode);
    if (fd >= 0 && forgets() && is_ours(path)) {
        adopt(fd, flags);
    }
    return fd;
}

#define TAKE_MODE(mode, flags)                                                                     \
    mode_t mode = 0;                                                                               \
    if ((flags)&O_CREAT) {                                                                         \
        va_list arguments;                                                                         \
        va_start(arguments, flags);                                                                \
        (mode) = va_arg(arguments, mode_t);                                                        \
        va_end(arguments);                                                                         \
    }

INTERPOSED int open(const char *path, int flags, ...)
{
    TAKE_MODE(mode, flags)
    return open_any(path, flags, mode);
}

INTERPOSED int open64(const char *path, int flags, ...)
{
    TAKE_MODE(mode, flags)
    return open_any(path, flags, mode);
}

INTERPOSED int close(int fd)
{
    prepare();
    pthread_mutex_lock(&mutex);
    if (fd >= 0 && fd < MAX_FDS) {
        by_fd[fd] = NULL;
    }
    pthread_mutex_unlock(&mutex);
    return REAL(close)(fd);
}

INTERPOSED ssize_t pread(int fd, void *to, size_t length, off_t offset)
{
    prepare();
    pthread_mutex_lock(&mutex);
    struct disk_file *file = file_of(fd);
    ssize_t count =
            file == NULL ? -1 : (ssize_t)shadow_read(&file->shadow, to, length, (size_t)offset);
    pthread_mutex_unlock(&mutex);
    return file == NULL ? REAL(pread)(fd, to, length, offset) : count;
}

INTERPOSED ssize_t pread64(int fd, void *to, size_t length, off_t offset)
{
    return pread(fd, to, length, offset);
}

/* Whether the disk has no room for fd to end there; only the folder's files are asked for. */
static bool refuses(int fd, off_t end)
{
    struct stat facts;
    char link[64];
    char path[4096];
    if (!is_full()) {
        return false;
    }
    int written = 0;
    memcpy(link, "/proc/self/fd/", 15);
    written = 14;
    char digits[16];
    int count = 0;
    for (int rest = fd; count == 0 || rest > 0; rest /= 10) {
        digits[count++] = (char)('0' + rest % 10);
    }
    while (count > 0) {
        link[written++] = digits[--count];
    }
    link[written] = '\0';
    ssize_t length = readlink(link, path, sizeof(path) - 1);
    if (length <= 0) {
        return false;
    }
    path[length] = '\0';
    return is_ours(path) && fstat(fd, &facts) == 0 && end > facts.st_size;
}

INTERPOSED ssize_t pwritev(int fd, const struct iovec *parts, int count, off_t offset)
{
    prepare();
    size_t all = 0;
    for (int i = 0; i < count; i++) {
        all += parts[i].iov_len;
    }
    if (refuses(fd, offset + (off_t)all)) {
        errno = ENOSPC;
        return -1;
    }
    pthread_mutex_lock(&mutex);
    struct disk_file *file = file_of(fd);
    size_t at = (size_t)offset;
    for (int i = 0; file != NULL && i < count; i++) {
        shadow_write(&file->shadow, parts[i].iov_base, parts[i].iov_len, at);
        at += parts[i].iov_len;
    }
    pthread_mutex_unlock(&mutex);
    return file == NULL ? REAL(pwritev)(fd, parts, count, offset) : (ssize_t)all;
}

INTERPOSED ssize_t pwrite(int fd, const void *from, size_t length, off_t offset)
{
    struct iovec part = {(void *)from, length};
    return pwritev(fd, &part, 1, offset);
}

INTERPOSED ssize_t pwrite64(int fd, const void *from, size_t length, off_t offset)
{
    return pwrite(fd, from, length, offset);
}

INTERPOSED int ftruncate(int fd, off_t size)
{
    prepare();
    if (refuses(fd, size)) {
        errno = ENOSPC;
        return -1;
    }
    pthread_mutex_lock(&mutex);
    struct disk_file *file = file_of(fd);
    if (file != NULL) {
        shadow_truncate(&file->shadow, (size_t)size);
    }
    pthread_mutex_unlock(&mutex);
    return file == NULL ? REAL(ftruncate)(fd, size) : 0;
}

INTERPOSED int ftruncate64(int fd, off_t size)
{
    return ftruncate(fd, size);
}

INTERPOSED int fstat(int fd, struct stat *facts)
{
    prepare();
    int result = REAL(fstat)(fd, facts);
    pthread_mutex_lock(&mutex);
    struct disk_file *file = file_of(fd);
    if (result == 0 && file != NULL) {
        facts->st_size = (off_t)file->shadow.size;
    }
    pthread_mutex_unlock(&mutex);
    return result;
}

INTERPOSED int fstat64(int fd, struct stat64 *facts)
{
    return fstat(fd, (struct stat *)facts);
}

static void apply(void *context, const struct change *change)
{
    int fd = *(int *)context;
    ssize_t done = change->bytes == NULL
                           ? REAL(ftruncate)(fd, (off_t)change->offset)
                           : REAL(pwrite)(fd, change->bytes, change->length, (off_t)change->offset);
    if (done < 0) {
        abort();
    }
}

static void flush_file(struct disk_file *file)
{
    shadow_flush(&file->shadow, apply, &file->fd);
}

INTERPOSED int fdatasync(int fd)
{
    prepare();
    pthread_mutex_lock(&mutex);
    struct disk_file *file = file_of(fd);
    if (file != NULL) {
        flush_file(file);
    }
    pthread_mutex_unlock(&mutex);
    return file == NULL ? REAL(fdatasync)(fd) : 0;
}

INTERPOSED int fsync(int fd)
{
    prepare();
    return file_of(fd) != NULL ? fdatasync(fd) : REAL(fsync)(fd);
}

INTERPOSED int fallocate(int fd, int mode, off_t offset, off_t length)
{
    prepare();
    if (file_of(fd) != NULL) {
        errno = EOPNOTSUPP;
        return -1;
    }
    return REAL(fallocate)(fd, mode, offset, length);
}

/* An ordinary end loses nothing. */
__attribute__((destructor)) static void flush_all(void)
{
    pthread_mutex_lock(&mutex);
    for (struct disk_file *file = disk_files; file != NULL; file = file->next) {
        flush_file(file);
    }
    pthread_mutex_unlock(&mutex);
}
