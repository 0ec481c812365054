/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The files that hold the messages of an SQLite archive: records (archive/record.h) one behind the
 * other, written once and synced before the index knows of them. Retention removes whole files.
 * Private to archive/.
 *
 * A batch goes into one file: segments_begin says where, segments_write puts it there and syncs,
 * segments_undo takes it back when the index refused it.
 *
 * Thread: the archive worker; segments_open_reading and segments_close_reading on any.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "archive/file_ops.h"
#include "archive/record.h"
#include "base/attributes.h"
#include "base/status.h"

struct segments;

struct segments_options {
    const char *folder;           /* NULL: in memory, gone when closed */
    const struct file_ops *files; /* NULL: the system's */
    uint64_t segment_bytes;       /* 0: 64 MiB; a file is full once it has them */
    bool is_read_only;
};

/* Makes the folder and locks it; STATUS_BUSY when another process has it. */
MUST_USE enum status segments_open(struct segments **out, const struct segments_options *options);
void segments_close(struct segments **segments);

/* Ids of the files that are there, ascending; freed with memory_free. */
MUST_USE enum status segments_list(struct segments *segments, int64_t **ids, size_t *count);

/* Puts what an earlier process may have left in the system's cache on disk. */
MUST_USE enum status segments_sync(struct segments *segments, int64_t id);

/*
 * Goes on behind the first length bytes of file id, and cuts the rest off. A file that is shorter than
 * that is left alone; the next batch then begins a new one.
 */
MUST_USE enum status segments_continue(struct segments *segments, int64_t id, uint64_t length);

/* Where the next batch begins; makes a new file when the current one is full or has failed. */
MUST_USE enum status segments_begin(struct segments *segments, int64_t *id, uint64_t *offset);
MUST_USE enum status segments_write(struct segments *segments, struct iovec *parts, size_t count);
void segments_undo(struct segments *segments);

/* The file new batches go to, 0 when there is none yet. */
int64_t segments_current(const struct segments *segments);
bool segments_are_in_memory(const struct segments *segments);
MUST_USE enum status segments_remove(struct segments *segments, int64_t id);

/*
 * The same in small pieces: begin takes the file's name away, each step gives a part of its space back,
 * so that nobody waits for the file system while it frees a large one. fd -1: it is done. Who reads the
 * file meanwhile may find it shorter. Thread: any.
 */
struct segment_removal {
    int fd;
    off_t size; /* that is left */
};

MUST_USE enum status segments_begin_removal(
        struct segments *segments, int64_t id, struct segment_removal *removal);
void segments_step_removal(struct segments *segments, struct segment_removal *removal);
void segments_end_removal(struct segments *segments, struct segment_removal *removal);

/*
 * Files are removed between these two, which keep a backup from beginning: one that is being made has
 * every file until it ends. STATUS_BUSY: one is being made.
 */
MUST_USE enum status segments_removal_begin(struct segments *segments);
void segments_removal_end(struct segments *segments);

/*
 * Keeps a folder's files from being removed, whatever process writes there. *lock is closed to end
 * it. STATUS_NOT_FOUND: there is no such folder. STATUS_READ_ONLY: nobody may write there, or not here.
 */
MUST_USE enum status segments_hold(int *lock, const char *folder);

/* STATUS_NOT_FOUND when retention has removed it. */
MUST_USE enum status segments_open_reading(struct segments *segments, int64_t id, int *fd);
void segments_close_reading(struct segments *segments, int fd);

/* STATUS_NOT_FOUND when offset is the end of the file, STATUS_DAMAGED when it ends before to is full. */
MUST_USE enum status segments_read(
        struct segments *segments, int fd, struct iovec to, uint64_t offset);

/* The name of a segment's file in its folder. */
void segment_file_name(char *out, size_t size, int64_t id);

struct segment_walk {
    struct segments *segments;
    int fd;
    uint64_t offset; /* of the next record */
    uint8_t *buffer;
    size_t capacity;
};

/* Record by record from offset on. */
MUST_USE enum status segment_walk_init(
        struct segment_walk *walk, struct segments *segments, int64_t id, uint64_t offset);
void segment_walk_fini(struct segment_walk *walk);

/*
 * The record at walk->offset, good until the next call. STATUS_NOT_FOUND at the end of the file,
 * STATUS_DAMAGED where there is no whole record.
 */
MUST_USE enum status segment_walk_next(struct segment_walk *walk, struct archive_record *record);
