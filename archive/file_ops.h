/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The few things the archive does with files of its own, as a table, so that a test can put a disk
 * underneath that is full or that forgets what was not synced.
 *
 * Thread: any; a file by one thread at a time, except for read.
 */

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "base/attributes.h"
#include "base/status.h"

/* Results below zero are -errno. */
struct file_ops {
    int (*open)(const char *path, int flags);
    ssize_t (*write)(int fd, const struct iovec *parts, int count, off_t offset);
    ssize_t (*read)(int fd, void *to, size_t length, off_t offset);
    int (*lock)(int fd); /* against other processes, without waiting */
    int (*sync)(int fd);
    int (*truncate)(int fd, off_t length);
    int (*punch)(int fd, off_t offset, off_t length); /* gives the disk space of a part back */
    off_t (*size)(int fd);
    int (*close)(int fd);
    int (*remove)(const char *path);
    int (*sync_folder)(const char *path);
};

extern const struct file_ops file_ops_of_system;

/* STATUS_DISK_FULL, STATUS_READ_ONLY, STATUS_NOT_FOUND, STATUS_NO_MEMORY, else STATUS_SYSTEM. */
MUST_USE enum status file_status_of(int error_number);

/* Writes all parts (which it changes) one behind the other, from offset on. */
MUST_USE enum status file_write_all(
        const struct file_ops *files, int fd, struct iovec *parts, size_t count, uint64_t offset);

/* Reads up to length bytes; fewer (*count) only at the end of the file. */
MUST_USE enum status file_read_at(
        const struct file_ops *files, int fd, struct iovec to, uint64_t offset, size_t *count);
