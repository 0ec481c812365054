/* SPDX-License-Identifier: MIT */
#include "net/identity/key_file.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"

static void warn_if_readable_by_others(int file, const char *path)
{
    struct stat facts;
    if (fstat(file, &facts) == 0 && (facts.st_mode & (S_IRWXG | S_IRWXO)) != 0) {
        log_write(LOG_WARN, "identity", "key file %s is open to others than its owner", path);
    }
}

/* Reads to the end of the file or to capacity. */
static bool read_all(int file, uint8_t *out, size_t capacity, size_t *length)
{
    *length = 0;
    while (*length < capacity) {
        ssize_t n = read(file, out + *length, capacity - *length);
        if (n == 0) {
            return true;
        }
        if (n < 0 && errno != EINTR) {
            return false;
        }
        *length += n > 0 ? (size_t)n : 0;
    }
    return true;
}

enum status key_file_read(uint8_t out[KEY_FILE_MAX_BYTES], size_t *length, const char *path)
{
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) {
        return errno == ENOENT ? STATUS_NOT_FOUND : STATUS_SYSTEM;
    }
    warn_if_readable_by_others(file, path);
    bool ok = read_all(file, out, KEY_FILE_MAX_BYTES, length);
    close(file);
    if (!ok) {
        return STATUS_SYSTEM;
    }
    return *length == KEY_FILE_MAX_BYTES ? STATUS_TOO_LARGE : STATUS_OK;
}

static bool write_all(int file, struct span content)
{
    while (content.length > 0) {
        ssize_t n = write(file, content.bytes, content.length);
        if (n < 0 && errno != EINTR) {
            return false;
        }
        size_t done = n > 0 ? (size_t)n : 0;
        content = span_of(content.bytes + done, content.length - done);
    }
    return fsync(file) == 0;
}

/* Makes the new name itself survive a crash. */
static bool sync_folder_of(const char *path)
{
    char copy[PATH_MAX];
    snprintf(copy, sizeof(copy), "%s", path);
    int folder = open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0) {
        return false;
    }
    bool ok = fsync(folder) == 0;
    close(folder);
    return ok;
}

enum status key_file_write(const char *path, struct span content)
{
    char draft[PATH_MAX];
    int length = snprintf(draft, sizeof(draft), "%s.%ld.new", path, (long)getpid());
    if (length < 0 || (size_t)length >= sizeof(draft)) {
        return STATUS_BAD_ARGUMENT;
    }
    int file = open(draft, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, S_IRUSR | S_IWUSR);
    if (file < 0) {
        return STATUS_SYSTEM;
    }
    /* link, unlike rename, does not replace a key that is there. */
    bool ok = write_all(file, content) && fchmod(file, S_IRUSR | S_IWUSR) == 0;
    ok = close(file) == 0 && ok;
    enum status status = STATUS_SYSTEM;
    if (ok && link(draft, path) == 0) {
        status = STATUS_OK;
    } else if (ok && errno == EEXIST) {
        status = STATUS_ALREADY_EXISTS;
    }
    unlink(draft);
    return status == STATUS_OK && !sync_folder_of(path) ? STATUS_SYSTEM : status;
}
