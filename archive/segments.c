/* SPDX-License-Identifier: MIT */
#include "archive/segments.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"

enum {
    DEFAULT_SEGMENT_BYTES = 64 << 20,
    REMOVAL_STEP_BYTES = 4 << 20
};

static const char suffix[] = ".segment";
static const char removal_lock[] = ".removal-lock";

struct memory_file {
    int64_t id;
    int fd;
};

struct segments {
    const struct file_ops *files;
    uint64_t segment_bytes;
    char *folder;     /* NULL: in memory */
    int folder_fd;    /* holds the lock; -1: none */
    int removal_fd;   /* locked while files are removed; -1: none */
    int64_t id;       /* of the current file; 0: none */
    int64_t last_id;  /* the highest that was ever seen */
    int fd;           /* of the current file; -1: none */
    uint64_t length;  /* of the current file, up to its last good batch */
    uint64_t written; /* of the batch behind it */
    bool has_failed;  /* what a failed sync left in the current file is not known */

    pthread_mutex_t mutex; /* for memory_files */
    struct memory_file *memory_files;
    size_t memory_count;
};

void segment_file_name(char *out, size_t size, int64_t id)
{
    snprintf(out, size, "%010" PRId64 "%s", id, suffix);
}

static void path_of(const struct segments *segments, int64_t id, char out[PATH_MAX])
{
    char name[64];
    segment_file_name(name, sizeof(name), id);
    snprintf(out, PATH_MAX, "%s/%s", segments->folder, name);
}

static enum status lock_folder(struct segments *segments, bool is_read_only)
{
    if (!is_read_only && mkdir(segments->folder, 0755) < 0 && errno != EEXIST) {
        return file_status_of(errno);
    }
    segments->folder_fd = open(segments->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (segments->folder_fd < 0) {
        return is_read_only ? STATUS_OK : file_status_of(errno);
    }
    if (is_read_only) {
        return STATUS_OK;
    }
    if (flock(segments->folder_fd, LOCK_EX | LOCK_NB) < 0) {
        return file_status_of(errno);
    }
    segments->removal_fd =
            openat(segments->folder_fd, removal_lock, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    return segments->removal_fd < 0 ? file_status_of(errno) : STATUS_OK;
}

enum status segments_removal_begin(struct segments *segments)
{
    if (segments->folder == NULL) {
        return STATUS_OK;
    }
    return flock(segments->removal_fd, LOCK_EX | LOCK_NB) < 0 ? file_status_of(errno) : STATUS_OK;
}

void segments_removal_end(struct segments *segments)
{
    if (segments->folder != NULL) {
        flock(segments->removal_fd, LOCK_UN);
    }
}

enum status segments_hold(int *lock, const char *folder)
{
    char path[PATH_MAX];
    snprintf(path, sizeof(path), "%s/%s", folder, removal_lock);
    *lock = open(path, O_RDONLY | O_CREAT | O_CLOEXEC, 0644);
    if (*lock < 0 && file_status_of(errno) == STATUS_READ_ONLY) {
        *lock = open(path, O_RDONLY | O_CLOEXEC);
    }
    if (*lock < 0) {
        return file_status_of(errno);
    }
    int result;
    do {
        /* Waits: the writer has it for a moment only. */
        result = flock(*lock, LOCK_SH);
    } while (result < 0 && errno == EINTR);
    if (result < 0) {
        int error = errno;
        close(*lock);
        *lock = -1;
        return file_status_of(error);
    }
    return STATUS_OK;
}

enum status segments_open(struct segments **out, const struct segments_options *options)
{
    struct segments *segments = memory_allocate_zeroed(sizeof(*segments));
    if (segments == NULL) {
        return STATUS_NO_MEMORY;
    }
    bool is_system = options->files == NULL || options->folder == NULL;
    segments->files = is_system ? &file_ops_of_system : options->files;
    segments->segment_bytes =
            options->segment_bytes != 0 ? options->segment_bytes : DEFAULT_SEGMENT_BYTES;
    segments->fd = -1;
    segments->folder_fd = -1;
    segments->removal_fd = -1;
    pthread_mutex_init(&segments->mutex, NULL);
    enum status status = STATUS_OK;
    if (options->folder != NULL) {
        segments->folder = strdup(options->folder);
        status = segments->folder == NULL ? STATUS_NO_MEMORY
                                          : lock_folder(segments, options->is_read_only);
    }
    if (status != STATUS_OK) {
        segments_close(&segments);
        return status;
    }
    *out = segments;
    return STATUS_OK;
}

static void close_current(struct segments *segments)
{
    if (segments->fd >= 0 && segments->folder != NULL) {
        segments->files->close(segments->fd);
    }
    segments->fd = -1;
    segments->id = 0;
}

void segments_close(struct segments **segments_to_close)
{
    struct segments *segments = *segments_to_close;
    if (segments == NULL) {
        return;
    }
    close_current(segments);
    for (size_t i = 0; i < segments->memory_count; i++) {
        close(segments->memory_files[i].fd);
    }
    memory_free(segments->memory_files);
    if (segments->removal_fd >= 0) {
        close(segments->removal_fd);
    }
    if (segments->folder_fd >= 0) {
        close(segments->folder_fd);
    }
    free(segments->folder);
    pthread_mutex_destroy(&segments->mutex);
    memory_free(segments);
    *segments_to_close = NULL;
}

/* 0 when the name is no segment's. */
static int64_t id_from_name(const char *name)
{
    char *end = NULL;
    long long id = strtoll(name, &end, 10);
    return end != name && strcmp(end, suffix) == 0 && id > 0 ? id : 0;
}

static int compare_ids(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a;
    int64_t y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static enum status append_id(int64_t **ids, size_t *count, int64_t id)
{
    int64_t *grown = memory_resize(*ids, (*count + 1) * sizeof(**ids));
    if (grown == NULL) {
        return STATUS_NO_MEMORY;
    }
    grown[(*count)++] = id;
    *ids = grown;
    return STATUS_OK;
}

enum status segments_list(struct segments *segments, int64_t **ids, size_t *count)
{
    *ids = NULL;
    *count = 0;
    if (segments->folder == NULL) {
        return STATUS_OK;
    }
    DIR *folder = opendir(segments->folder);
    if (folder == NULL) {
        return file_status_of(errno);
    }
    enum status status = STATUS_OK;
    for (struct dirent *entry = readdir(folder); entry != NULL && status == STATUS_OK;
            entry = readdir(folder)) {
        int64_t id = id_from_name(entry->d_name);
        if (id > 0) {
            status = append_id(ids, count, id);
            segments->last_id = id > segments->last_id ? id : segments->last_id;
        }
    }
    closedir(folder);
    if (status != STATUS_OK) {
        memory_free(*ids);
        *ids = NULL;
        return status;
    }
    if (*count > 0) {
        qsort(*ids, *count, sizeof(**ids), compare_ids);
    }
    return STATUS_OK;
}

enum status segments_sync(struct segments *segments, int64_t id)
{
    char path[PATH_MAX];
    path_of(segments, id, path);
    int fd = segments->files->open(path, O_RDWR);
    if (fd < 0) {
        return file_status_of(-fd);
    }
    int error = segments->files->sync(fd);
    segments->files->close(fd);
    return error < 0 ? file_status_of(-error) : STATUS_OK;
}

enum status segments_continue(struct segments *segments, int64_t id, uint64_t length)
{
    char path[PATH_MAX];
    path_of(segments, id, path);
    int fd = segments->files->open(path, O_RDWR);
    if (fd < 0) {
        return file_status_of(-fd);
    }
    segments->last_id = id > segments->last_id ? id : segments->last_id;
    off_t size = segments->files->size(fd);
    if (size >= 0 && (uint64_t)size < length) {
        segments->files->close(fd);
        return STATUS_OK;
    }
    int error = segments->files->truncate(fd, (off_t)length);
    if (error < 0) {
        segments->files->close(fd);
        return file_status_of(-error);
    }
    close_current(segments);
    segments->fd = fd;
    segments->id = id;
    segments->length = length;
    return STATUS_OK;
}

static enum status create_in_memory(struct segments *segments, int64_t id, int *fd)
{
    *fd = memfd_create("sluice-segment", MFD_CLOEXEC);
    if (*fd < 0) {
        return file_status_of(errno);
    }
    pthread_mutex_lock(&segments->mutex);
    struct memory_file *grown =
            memory_resize(segments->memory_files, (segments->memory_count + 1) * sizeof(*grown));
    if (grown != NULL) {
        segments->memory_files = grown;
        grown[segments->memory_count++] = (struct memory_file){id, *fd};
    }
    pthread_mutex_unlock(&segments->mutex);
    if (grown == NULL) {
        close(*fd);
        return STATUS_NO_MEMORY;
    }
    return STATUS_OK;
}

static enum status create_on_disk(struct segments *segments, int64_t id, int *fd)
{
    char path[PATH_MAX];
    path_of(segments, id, path);
    *fd = segments->files->open(path, O_RDWR | O_CREAT | O_TRUNC);
    if (*fd < 0) {
        return file_status_of(-*fd);
    }
    int error = segments->files->sync_folder(segments->folder);
    if (error < 0) {
        segments->files->close(*fd);
        return file_status_of(-error);
    }
    return STATUS_OK;
}

enum status segments_begin(struct segments *segments, int64_t *id, uint64_t *offset)
{
    bool has_failed = segments->has_failed && segments->length > 0;
    bool is_new = segments->fd < 0 || has_failed || segments->length >= segments->segment_bytes;
    if (is_new) {
        int fd = -1;
        int64_t next = segments->last_id + 1;
        enum status status = segments->folder == NULL ? create_in_memory(segments, next, &fd)
                                                      : create_on_disk(segments, next, &fd);
        if (status != STATUS_OK) {
            return status;
        }
        close_current(segments);
        segments->fd = fd;
        segments->id = next;
        segments->last_id = next;
        segments->length = 0;
    }
    segments->has_failed = false;
    *id = segments->id;
    *offset = segments->length;
    segments->written = 0;
    return STATUS_OK;
}

enum status segments_write(struct segments *segments, struct iovec *parts, size_t count)
{
    uint64_t size = 0;
    for (size_t i = 0; i < count; i++) {
        size += parts[i].iov_len;
    }
    enum status status =
            file_write_all(segments->files, segments->fd, parts, count, segments->length);
    if (status == STATUS_OK && segments->folder != NULL) {
        int error = segments->files->sync(segments->fd);
        segments->has_failed = error < 0;
        status = error < 0 ? file_status_of(-error) : STATUS_OK;
    }
    if (status == STATUS_OK) {
        segments->length += size;
        segments->written = size;
    } else {
        segments_undo(segments);
    }
    return status;
}

void segments_undo(struct segments *segments)
{
    segments->length -= segments->written;
    segments->written = 0;
    /* What stays when this fails is read again at the next start, and stored then. */
    if (segments->fd >= 0 && segments->files->truncate(segments->fd, (off_t)segments->length) < 0) {
        segments->has_failed = true;
    }
}

int64_t segments_current(const struct segments *segments)
{
    return segments->id;
}

bool segments_are_in_memory(const struct segments *segments)
{
    return segments->folder == NULL;
}

static void remove_from_memory(struct segments *segments, int64_t id)
{
    pthread_mutex_lock(&segments->mutex);
    for (size_t i = 0; i < segments->memory_count; i++) {
        if (segments->memory_files[i].id == id) {
            close(segments->memory_files[i].fd);
            segments->memory_files[i] = segments->memory_files[--segments->memory_count];
            break;
        }
    }
    pthread_mutex_unlock(&segments->mutex);
}

enum status segments_remove(struct segments *segments, int64_t id)
{
    if (segments->folder == NULL) {
        remove_from_memory(segments, id);
        return STATUS_OK;
    }
    char path[PATH_MAX];
    path_of(segments, id, path);
    int error = segments->files->remove(path);
    return error < 0 && error != -ENOENT ? file_status_of(-error) : STATUS_OK;
}

enum status segments_begin_removal(
        struct segments *segments, int64_t id, struct segment_removal *removal)
{
    char path[PATH_MAX];
    *removal = (struct segment_removal){.fd = -1};
    if (segments->folder != NULL) {
        path_of(segments, id, path);
        removal->fd = segments->files->open(path, O_RDWR);
        removal->size = removal->fd >= 0 ? segments->files->size(removal->fd) : 0;
    }
    enum status status = segments_remove(segments, id);
    if (status != STATUS_OK) {
        segments_end_removal(segments, removal);
    }
    return status;
}

void segments_step_removal(struct segments *segments, struct segment_removal *removal)
{
    removal->size -= REMOVAL_STEP_BYTES;
    if (removal->size <= 0 || segments->files->truncate(removal->fd, removal->size) < 0) {
        segments_end_removal(segments, removal); /* which frees the rest */
    }
}

void segments_end_removal(struct segments *segments, struct segment_removal *removal)
{
    if (removal->fd >= 0) {
        segments->files->close(removal->fd);
        removal->fd = -1;
    }
}

enum status segments_open_reading(struct segments *segments, int64_t id, int *fd)
{
    if (segments->folder != NULL) {
        char path[PATH_MAX];
        path_of(segments, id, path);
        *fd = segments->files->open(path, O_RDONLY);
        return *fd < 0 ? file_status_of(-*fd) : STATUS_OK;
    }
    *fd = -1;
    pthread_mutex_lock(&segments->mutex);
    for (size_t i = 0; i < segments->memory_count; i++) {
        if (segments->memory_files[i].id == id) {
            *fd = fcntl(segments->memory_files[i].fd, F_DUPFD_CLOEXEC, 0);
            break;
        }
    }
    pthread_mutex_unlock(&segments->mutex);
    return *fd < 0 ? STATUS_NOT_FOUND : STATUS_OK;
}

void segments_close_reading(struct segments *segments, int fd)
{
    if (segments->folder != NULL) {
        segments->files->close(fd);
    } else {
        close(fd);
    }
}

enum status segments_read(struct segments *segments, int fd, struct iovec to, uint64_t offset)
{
    size_t count = 0;
    enum status status = file_read_at(segments->files, fd, to, offset, &count);
    if (status == STATUS_OK && count < to.iov_len) {
        return count == 0 ? STATUS_NOT_FOUND : STATUS_DAMAGED;
    }
    return status;
}
