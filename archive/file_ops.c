/* SPDX-License-Identifier: MIT */
#include "archive/file_ops.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

static int result_of(int result)
{
    return result < 0 ? -errno : result;
}

static int system_open(const char *path, int flags)
{
    return result_of(open(path, flags | O_CLOEXEC, 0644));
}

static ssize_t system_write(int fd, const struct iovec *parts, int count, off_t offset)
{
    ssize_t written = pwritev(fd, parts, count, offset);
    return written < 0 ? -errno : written;
}

static ssize_t system_read(int fd, void *to, size_t length, off_t offset)
{
    ssize_t count = pread(fd, to, length, offset);
    return count < 0 ? -errno : count;
}

static int system_lock(int fd)
{
    return result_of(flock(fd, LOCK_EX | LOCK_NB));
}

static int system_sync(int fd)
{
    return result_of(fdatasync(fd));
}

static int system_truncate(int fd, off_t length)
{
    return result_of(ftruncate(fd, length));
}

static int system_punch(int fd, off_t offset, off_t length)
{
    return result_of(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, offset, length));
}

static off_t system_size(int fd)
{
    struct stat facts;
    return fstat(fd, &facts) < 0 ? -errno : facts.st_size;
}

static int system_close(int fd)
{
    return result_of(close(fd));
}

static int system_remove(const char *path)
{
    return result_of(unlink(path));
}

static int system_sync_folder(const char *path)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) {
        return -errno;
    }
    int result = result_of(fsync(fd));
    close(fd);
    return result;
}

const struct file_ops file_ops_of_system = {
        .open = system_open,
        .write = system_write,
        .read = system_read,
        .lock = system_lock,
        .sync = system_sync,
        .truncate = system_truncate,
        .punch = system_punch,
        .size = system_size,
        .close = system_close,
        .remove = system_remove,
        .sync_folder = system_sync_folder,
};

enum status file_status_of(int error_number)
{
    switch (error_number) {
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
        return STATUS_DISK_FULL;
    case EROFS:
    case EACCES:
    case EPERM:
        return STATUS_READ_ONLY;
    case ENOENT:
    case ENOTDIR:
        return STATUS_NOT_FOUND;
    case ENOMEM:
        return STATUS_NO_MEMORY;
    case EWOULDBLOCK:
        return STATUS_BUSY;
    default:
        return STATUS_SYSTEM;
    }
}

/* Takes written bytes off the front of parts. */
static void skip_written(struct iovec **parts, size_t *count, size_t written)
{
    while (*count > 0 && written >= (*parts)->iov_len) {
        written -= (*parts)->iov_len;
        ++*parts;
        --*count;
    }
    if (*count > 0) {
        (*parts)->iov_base = (char *)(*parts)->iov_base + written;
        (*parts)->iov_len -= written;
    }
}

enum status file_write_all(
        const struct file_ops *files, int fd, struct iovec *parts, size_t count, uint64_t offset)
{
    skip_written(&parts, &count, 0);
    while (count > 0) {
        int some = count < IOV_MAX ? (int)count : IOV_MAX;
        ssize_t written = files->write(fd, parts, some, (off_t)offset);
        if (written == -EINTR) {
            continue;
        }
        if (written <= 0) {
            return written == 0 ? STATUS_DISK_FULL : file_status_of((int)-written);
        }
        offset += (uint64_t)written;
        skip_written(&parts, &count, (size_t)written);
    }
    return STATUS_OK;
}

enum status file_read_at(
        const struct file_ops *files, int fd, struct iovec to, uint64_t offset, size_t *count)
{
    *count = 0;
    while (*count < to.iov_len) {
        ssize_t got = files->read(
                fd, (char *)to.iov_base + *count, to.iov_len - *count, (off_t)(offset + *count));
        if (got == -EINTR) {
            continue;
        }
        if (got < 0) {
            return file_status_of((int)-got);
        }
        if (got == 0) {
            break;
        }
        *count += (size_t)got;
    }
    return STATUS_OK;
}
