/* SPDX-License-Identifier: MIT */
#include "net/peer_manager/peer_file.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    PATH_CAPACITY = 4096
};

static void take_line(
        char *line, void (*found)(void *context, const struct multiaddr *address), void *context)
{
    struct multiaddr address;
    struct peer_id peer;
    line[strcspn(line, "\r\n")] = '\0';
    if (multiaddr_parse(&address, span_of_text(line)) == STATUS_OK &&
            multiaddr_peer(&peer, &address)) {
        found(context, &address);
    }
}

enum status peer_file_read(const char *path,
        void (*found)(void *context, const struct multiaddr *address), void *context)
{
    FILE *file = fopen(path, "re");
    char line[MULTIADDR_TEXT_SIZE + 2];
    size_t bytes = 0;
    if (file == NULL) {
        return errno == ENOENT ? STATUS_NOT_FOUND : STATUS_SYSTEM;
    }
    while (bytes < PEER_FILE_MAX_BYTES && fgets(line, sizeof(line), file) != NULL) {
        bytes += strlen(line);
        take_line(line, found, context);
    }
    enum status status = ferror(file) ? STATUS_SYSTEM : STATUS_OK;
    fclose(file);
    return status;
}

static enum status write_all(int descriptor, const char *text, size_t length)
{
    while (length > 0) {
        ssize_t n = write(descriptor, text, length);
        if (n < 0) {
            return errno == ENOSPC ? STATUS_DISK_FULL : STATUS_SYSTEM;
        }
        text += n;
        length -= (size_t)n;
    }
    return fsync(descriptor) == 0 ? STATUS_OK : STATUS_SYSTEM;
}

enum status peer_file_check(const char *path)
{
    char copy[PATH_CAPACITY];
    struct stat facts;
    int needed = snprintf(copy, sizeof(copy), "%s", path);
    if (needed < 0 || (size_t)needed >= sizeof(copy)) {
        errno = ENAMETOOLONG;
        return STATUS_SYSTEM;
    }
    if (stat(path, &facts) == 0 && S_ISDIR(facts.st_mode)) {
        errno = EISDIR;
        return STATUS_SYSTEM;
    }
    return access(dirname(copy), W_OK | X_OK) == 0 ? STATUS_OK : STATUS_SYSTEM;
}

enum status peer_file_write(const char *path, const char *text, size_t length)
{
    char temporary[PATH_CAPACITY];
    int needed = snprintf(temporary, sizeof(temporary), "%s.new", path);
    if (needed < 0 || (size_t)needed >= sizeof(temporary)) {
        return STATUS_TOO_LARGE;
    }
    int descriptor = open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (descriptor < 0) {
        return STATUS_SYSTEM;
    }
    enum status status = write_all(descriptor, text, length);
    close(descriptor);
    if (status == STATUS_OK && rename(temporary, path) != 0) {
        status = STATUS_SYSTEM;
    }
    if (status != STATUS_OK) {
        unlink(temporary);
    }
    return status;
}
