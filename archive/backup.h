/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * A copy of an SQLite archive, made while a node may be writing it: all messages that were archived
 * before it began are in it, and it is an archive like any other.
 *
 * The index is copied as it stands at one moment, then of each segment file what the index knew of it
 * then; what was written there before does not change any more. Meanwhile the node keeps files that
 * retention has emptied (segments_hold). Under their names index and segments appear at the end, the
 * index last: a copy that was not finished is never taken for one; its parts (PATH.partial,
 * PATH-segments.partial) are removed by the next backup to the same place.
 *
 * Thread: any; blocks as long as it takes.
 */

#include "archive/archive.h"
#include "base/attributes.h"
#include "base/status.h"

struct archive_backup_result {
    uint64_t messages;
    uint64_t segments;
    uint64_t bytes; /* of segment files */
};

/*
 * from and to: sqlite://PATH. Of options vfs and files are used, for what is written. STATUS_NOT_FOUND
 * (no archive there, or no folder), STATUS_ALREADY_EXISTS (something stands at to), STATUS_NOT_A_DATABASE,
 * STATUS_DAMAGED (a segment is shorter than its index says), STATUS_DISK_FULL, STATUS_READ_ONLY, STATUS_BUSY,
 * STATUS_SYSTEM.
 */
MUST_USE enum status archive_backup(const char *from, const char *to,
        const struct archive_options *options, struct archive_backup_result *result,
        struct archive_error *error);

/* The path in sqlite://PATH; NULL when it is no address of a file. */
const char *BORROWED archive_path_of(const char *address);
