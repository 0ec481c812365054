/* SPDX-License-Identifier: MIT */
#include "tests/support/forgetful_disk.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/support/require.h"
#include "tests/support/shadow_file.h"

static bool disk_is_full;
static bool disk_is_broken;
static unsigned long operations_to_live; /* 0: for ever */

static void operate(void)
{
    if (operations_to_live > 0 && --operations_to_live == 0) {
        raise(SIGKILL);
    }
}

/* The archive's own files, by descriptor. */

enum {
    MAX_FILES = 256
};

static struct shadow *files[MAX_FILES];

static struct shadow *file_of(int fd)
{
    REQUIRE(fd >= 0 && fd < MAX_FILES && files[fd] != NULL);
    return files[fd];
}

static int forgetful_open(const char *path, int flags)
{
    int fd = file_ops_of_system.open(path, flags);
    if (fd < 0) {
        return fd;
    }
    REQUIRE(fd < MAX_FILES && files[fd] == NULL);
    files[fd] = malloc(sizeof(*files[fd]));
    REQUIRE(files[fd] != NULL);
    size_t size = (size_t)file_ops_of_system.size(fd);
    shadow_init(files[fd], size);
    REQUIRE(size == 0 || pread(fd, files[fd]->image, size, 0) == (ssize_t)size);
    return fd;
}

static ssize_t forgetful_write(int fd, const struct iovec *parts, int count, off_t offset)
{
    operate();
    if (disk_is_full) {
        return -ENOSPC;
    }
    /* Half of it, as a system call may: the caller has to go on. */
    int some = count > 1 ? (count + 1) / 2 : 1;
    size_t at = (size_t)offset;
    for (int i = 0; i < some; i++) {
        shadow_write(file_of(fd), parts[i].iov_base, parts[i].iov_len, at);
        at += parts[i].iov_len;
    }
    return (ssize_t)(at - (size_t)offset);
}

static ssize_t forgetful_read(int fd, void *to, size_t length, off_t offset)
{
    return (ssize_t)shadow_read(file_of(fd), to, length, (size_t)offset);
}

static void apply_to_fd(void *context, const struct change *change)
{
    int fd = *(int *)context;
    if (change->bytes == NULL) {
        REQUIRE(ftruncate(fd, (off_t)change->offset) == 0);
    } else {
        REQUIRE(pwrite(fd, change->bytes, change->length, (off_t)change->offset) ==
                (ssize_t)change->length);
    }
}

static int forgetful_sync(int fd)
{
    operate();
    if (disk_is_broken) {
        return -EIO;
    }
    shadow_flush(file_of(fd), apply_to_fd, &fd);
    return 0;
}

static int forgetful_truncate(int fd, off_t length)
{
    operate();
    shadow_truncate(file_of(fd), (size_t)length);
    return 0;
}

static int forgetful_punch(int fd, off_t offset, off_t length)
{
    (void)fd;
    (void)offset;
    (void)length;
    return -EOPNOTSUPP;
}

static off_t forgetful_size(int fd)
{
    return (off_t)file_of(fd)->size;
}

static int forgetful_close(int fd)
{
    shadow_fini(file_of(fd));
    free(files[fd]);
    files[fd] = NULL;
    return file_ops_of_system.close(fd);
}

static int forgetful_lock(int fd)
{
    return file_ops_of_system.lock(fd);
}

static int forgetful_remove(const char *path)
{
    operate();
    return file_ops_of_system.remove(path);
}

static int forgetful_sync_folder(const char *path)
{
    (void)path;
    return 0;
}

const struct file_ops forgetful_file_ops = {
        .open = forgetful_open,
        .write = forgetful_write,
        .read = forgetful_read,
        .lock = forgetful_lock,
        .sync = forgetful_sync,
        .truncate = forgetful_truncate,
        .punch = forgetful_punch,
        .size = forgetful_size,
        .close = forgetful_close,
        .remove = forgetful_remove,
        .sync_folder = forgetful_sync_folder,
};

/* The same for SQLite: a VFS on top of the default one. */

struct vfs_file {
    sqlite3_file base;
    struct shadow shadow;
    sqlite3_file *real; /* behind this struct */
};

static struct vfs_file *file_from(sqlite3_file *file)
{
    return (struct vfs_file *)file;
}

static int vfs_close(sqlite3_file *file)
{
    shadow_fini(&file_from(file)->shadow);
    return file_from(file)->real->pMethods->xClose(file_from(file)->real);
}

static int vfs_read(sqlite3_file *file, void *to, int length, sqlite3_int64 offset)
{
    size_t count = shadow_read(&file_from(file)->shadow, to, (size_t)length, (size_t)offset);
    memset((uint8_t *)to + count, 0, (size_t)length - count);
    return count < (size_t)length ? SQLITE_IOERR_SHORT_READ : SQLITE_OK;
}

static int vfs_write(sqlite3_file *file, const void *bytes, int length, sqlite3_int64 offset)
{
    operate();
    if (disk_is_full) {
        return SQLITE_FULL;
    }
    shadow_write(&file_from(file)->shadow, bytes, (size_t)length, (size_t)offset);
    return SQLITE_OK;
}

static int vfs_truncate(sqlite3_file *file, sqlite3_int64 size)
{
    operate();
    shadow_truncate(&file_from(file)->shadow, (size_t)size);
    return SQLITE_OK;
}

static void apply_to_real(void *context, const struct change *change)
{
    sqlite3_file *real = context;
    int result = change->bytes == NULL
                         ? real->pMethods->xTruncate(real, (sqlite3_int64)change->offset)
                         : real->pMethods->xWrite(real, change->bytes, (int)change->length,
                                   (sqlite3_int64)change->offset);
    REQUIRE(result == SQLITE_OK);
}

static int vfs_sync(sqlite3_file *file, int flags)
{
    operate();
    (void)flags;
    if (disk_is_broken) {
        return SQLITE_IOERR_FSYNC;
    }
    shadow_flush(&file_from(file)->shadow, apply_to_real, file_from(file)->real);
    return SQLITE_OK;
}

static int vfs_size(sqlite3_file *file, sqlite3_int64 *size)
{
    *size = (sqlite3_int64)file_from(file)->shadow.size;
    return SQLITE_OK;
}

static int vfs_lock(sqlite3_file *file, int level)
{
    return file_from(file)->real->pMethods->xLock(file_from(file)->real, level);
}

static int vfs_unlock(sqlite3_file *file, int level)
{
    return file_from(file)->real->pMethods->xUnlock(file_from(file)->real, level);
}

static int vfs_check_lock(sqlite3_file *file, int *is_locked)
{
    return file_from(file)->real->pMethods->xCheckReservedLock(file_from(file)->real, is_locked);
}

static int vfs_control(sqlite3_file *file, int operation, void *argument)
{
    /* Hints about the size would go past the shadow. */
    if (operation == SQLITE_FCNTL_SIZE_HINT || operation == SQLITE_FCNTL_CHUNK_SIZE) {
        return SQLITE_NOTFOUND;
    }
    return file_from(file)->real->pMethods->xFileControl(
            file_from(file)->real, operation, argument);
}

static int vfs_sector_size(sqlite3_file *file)
{
    return file_from(file)->real->pMethods->xSectorSize(file_from(file)->real);
}

static int vfs_traits(sqlite3_file *file)
{
    return file_from(file)->real->pMethods->xDeviceCharacteristics(file_from(file)->real);
}

static int vfs_shm_map(sqlite3_file *file, int region, int size, int extend, void volatile **memory)
{
    return file_from(file)->real->pMethods->xShmMap(
            file_from(file)->real, region, size, extend, memory);
}

static int vfs_shm_lock(sqlite3_file *file, int offset, int count, int flags)
{
    return file_from(file)->real->pMethods->xShmLock(file_from(file)->real, offset, count, flags);
}

static void vfs_shm_barrier(sqlite3_file *file)
{
    file_from(file)->real->pMethods->xShmBarrier(file_from(file)->real);
}

static int vfs_shm_unmap(sqlite3_file *file, int is_deleted)
{
    return file_from(file)->real->pMethods->xShmUnmap(file_from(file)->real, is_deleted);
}

static const sqlite3_io_methods vfs_methods = {
        .iVersion = 2,
        .xClose = vfs_close,
        .xRead = vfs_read,
        .xWrite = vfs_write,
        .xTruncate = vfs_truncate,
        .xSync = vfs_sync,
        .xFileSize = vfs_size,
        .xLock = vfs_lock,
        .xUnlock = vfs_unlock,
        .xCheckReservedLock = vfs_check_lock,
        .xFileControl = vfs_control,
        .xSectorSize = vfs_sector_size,
        .xDeviceCharacteristics = vfs_traits,
        .xShmMap = vfs_shm_map,
        .xShmLock = vfs_shm_lock,
        .xShmBarrier = vfs_shm_barrier,
        .xShmUnmap = vfs_shm_unmap,
};

static int vfs_open(
        sqlite3_vfs *vfs, const char *name, sqlite3_file *file, int flags, int *out_flags)
{
    sqlite3_vfs *real_vfs = vfs->pAppData;
    struct vfs_file *ours = file_from(file);
    ours->base.pMethods = NULL;
    ours->real = (sqlite3_file *)(ours + 1);
    int result = real_vfs->xOpen(real_vfs, name, ours->real, flags, out_flags);
    if (result != SQLITE_OK) {
        return result;
    }
    sqlite3_int64 size = 0;
    REQUIRE(ours->real->pMethods->xFileSize(ours->real, &size) == SQLITE_OK);
    shadow_init(&ours->shadow, (size_t)size);
    REQUIRE(size == 0 ||
            ours->real->pMethods->xRead(ours->real, ours->shadow.image, (int)size, 0) == SQLITE_OK);
    ours->base.pMethods = &vfs_methods;
    return SQLITE_OK;
}

const char *forgetful_vfs(void)
{
    static sqlite3_vfs vfs;
    if (vfs.zName == NULL) {
        sqlite3_vfs *real = sqlite3_vfs_find(NULL);
        vfs = *real;
        vfs.pNext = NULL;
        vfs.zName = "forgetful";
        vfs.pAppData = real;
        vfs.szOsFile = (int)sizeof(struct vfs_file) + real->szOsFile;
        vfs.xOpen = vfs_open;
        REQUIRE(sqlite3_vfs_register(&vfs, 0) == SQLITE_OK);
    }
    return vfs.zName;
}

void forgetful_disk_set_full(bool is_full)
{
    disk_is_full = is_full;
}

void forgetful_disk_set_broken(bool is_broken)
{
    disk_is_broken = is_broken;
}

void forgetful_disk_die_at(unsigned long operation)
{
    operations_to_live = operation;
}
