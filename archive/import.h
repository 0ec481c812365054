/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Copies all messages of an SQLite database of the reference, or of another Sluice archive, into an
 * archive. What is there already stays and is counted, so an import that was broken off is simply made
 * again. The source is only read.
 *
 * Thread: the archive's; blocks as long as it takes.
 */

#include "archive/archive.h"
#include "base/attributes.h"
#include "base/status.h"

struct archive_import_result {
    uint64_t read;
    uint64_t stored;
    uint64_t duplicates;   /* were there before */
    uint64_t bad;          /* rows that are no messages, records that cannot be read any more */
    uint64_t other_hashes; /* the source had another hash; stored under the right one */
};

/* from: sqlite://PATH. The statuses of archive_open for it, and of archive_put. */
MUST_USE enum status archive_import(struct archive *to, const char *from,
        struct archive_import_result *result, struct archive_error *error);

/*
 * What a start does about a database of the reference at path, with --store-message-db-migration=true:
 * its messages are imported into the archive beside it (path with ARCHIVE_IMPORTED_SUFFIX), which is opened
 * instead. An import that was broken off goes on, one that is
 * complete is not made again.
 */
MUST_USE enum status archive_open_imported(struct archive **out, const char *path,
        const struct archive_options *options, struct archive_error *error);
