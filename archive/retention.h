/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Keeps an archive within a retention policy, a small step at a time.
 *
 * It runs on the archive thread, between batches: an SQLite database has one writer, so a thread of its
 * own would have inserts wait for its transactions, by a lock that nobody can bound, instead of the
 * other way round. A step ends after RETENTION_STEP_NS, but not before it has removed a quarter more
 * rows than were stored since the last one, or it would never catch up: that takes no longer than
 * storing them did. While inserts wait, a step is followed by a pause as long as itself. What takes long
 * on the disk (files, the index's journal) is left to the archive's tender (archive/tender.h).
 *
 * Number and size are looked at after every batch, age once a second; queries show nothing older
 * than the policy allows, whether it was removed already or not (archive_options.max_age_ns).
 *
 * A clock that steps forward would have everything removed at once. So a step of more than an hour
 * (against monotonic time) is believed only when the clock has stayed there for ten minutes.
 *
 * Thread: the archive's.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "archive/archive.h"
#include "archive/retention_policy.h"
#include "base/attributes.h"
#include "base/status.h"

#define RETENTION_STEP_NS 5000000ULL

struct retention_time {
    int64_t wall_ns;
    uint64_t monotonic_ns;
};

struct retention {
    struct archive *BORROWED archive;
    struct retention_policy policy;
    struct retention_time base; /* when the wall clock was believed last */
    uint64_t doubted_since_ns;  /* monotonic; 0: it is believed */
    uint64_t due_ns;            /* monotonic time of the next step */
    size_t step_rows;
    size_t put_rows; /* stored since the last step */
};

/* archive NULL or a policy that keeps all: there is never anything to do. */
void retention_init(struct retention *retention, struct archive *BORROWED archive,
        const struct retention_policy *policy, struct retention_time now);

/* Monotonic time at which it wants to run; UINT64_MAX: never. */
uint64_t retention_due_ns(const struct retention *retention);

/* A batch of count messages was stored: there may be too many now. */
void retention_note_batch(struct retention *retention, size_t count, uint64_t monotonic_ns);

/*
 * One step; returns how many messages went. are_inserts_waiting: others need the thread. What the
 * engine fails with is returned, and tried again in a second.
 */
MUST_USE enum status retention_step(
        struct retention *retention, bool are_inserts_waiting, size_t *removed);

/* The timestamp before which messages go, INT64_MIN when age does not matter; moves base. */
int64_t retention_oldest_ns(struct retention *retention, struct retention_time now);

struct retention_time retention_now(void);
