/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The file behind the archive's ring: messages that the engine is too slow for wait here, in order,
 * also across a restart.
 *
 *     spill_push    at the end            spill_peek     the first ones, which stay
 *     spill_sync    before the process    spill_discard  once they are in the archive
 *                   ends
 *
 * A record that was peeked but not discarded when the process ends comes again: the archive knows it
 * by its hash.
 *
 * Ownership:  records and their bytes are copied to the file; what peek shows is the spill's.
 * Thread:     one at a time (callers lock), except sync and punch. What peek shows may be read without
 *             the lock.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "archive/archive.h"
#include "archive/file_ops.h"
#include "base/attributes.h"
#include "base/status.h"

struct spill;

struct spill_options {
    const char *path;
    uint64_t limit_bytes;         /* of waiting records */
    const struct file_ops *files; /* NULL: the system's */
};

/*
 * Counts what an earlier process left and cuts off what it did not finish writing. STATUS_BUSY when
 * another process has the file, STATUS_NOT_A_DATABASE when it is no spill file, STATUS_NOT_FOUND
 * (the folder), STATUS_READ_ONLY, STATUS_DISK_FULL, STATUS_SYSTEM.
 */
MUST_USE enum status spill_open(struct spill **out, const struct spill_options *options);

/* What still waits stays in the file. */
void spill_close(struct spill **spill);

/* STATUS_LIMIT_REACHED when there is no room for it, STATUS_DISK_FULL: it is then not in the file. */
MUST_USE enum status spill_push(struct spill *spill, const struct archive_record *record);

size_t spill_count(const struct spill *spill);
uint64_t spill_bytes(const struct spill *spill);

/*
 * The first records, up to capacity and to about max_bytes, at least one if there is any; good until
 * the next peek, discard, abandon or close, whatever is pushed meanwhile. STATUS_DAMAGED when the first
 * one cannot be read: only spill_abandon helps.
 */
MUST_USE enum status spill_peek(struct spill *spill, struct archive_record records[],
        size_t capacity, size_t max_bytes, size_t *count);

/* The first count records, all of which the last peek has shown, are done with. */
void spill_discard(struct spill *spill, size_t count);

/*
 * Disk space of discarded records that is worth giving back; false: there is none. Then punch gives it
 * back, which waits for the disk: without the lock, before the next discard or abandon, while others push.
 */
struct spill_hole {
    uint64_t from; /* offsets in the file */
    uint64_t to;
};
MUST_USE bool spill_take_hole(struct spill *spill, struct spill_hole *out);
void spill_punch(struct spill *spill, const struct spill_hole *hole);

/* Empties the file; returns how many records are lost. */
size_t spill_abandon(struct spill *spill);

MUST_USE enum status spill_sync(struct spill *spill);
