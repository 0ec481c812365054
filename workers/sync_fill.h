/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Keeps the sync set what it says it is: the ids of the last hour (or whatever store-sync's range is)
 * that the archive has. Fills it from the archive, at the start and where ids were lost on their way,
 * and prunes it; all in steps, so that the sync thread is never held up and queries come between.
 *
 * Lifetime: quiesce before the query thread stops; destroy after both threads.
 * Thread:   the sync thread, unless it says otherwise.
 */

#include <stdbool.h>
#include <stdint.h>

#include "archive/archive_jobs.h"
#include "base/attributes.h"
#include "base/status.h"
#include "queues/inbox.h"
#include "router/sync_set.h"
#include "router/topic_registry.h"

enum {
    SYNC_FILL_STEP_IDS = 4096,    /* read from the archive at a time */
    SYNC_PRUNE_STEP_IDS = 2048,   /* pruned in a turn */
    SYNC_FILL_PATIENCE_MS = 5000, /* how long sessions wait for the set to be whole */
    SYNC_JITTERS_KEPT = 3 /* older than a session's range by so many jitters leaves the set */
};

struct sync_fill_options {
    struct archive_jobs *BORROWED query_jobs;
    struct inbox *BORROWED sync_jobs; /* the way back */
    const struct topic_registry *BORROWED topics;
    int64_t range_ns;     /* what sessions are about */
    int64_t jitter_ns;    /* ids younger than that are in no session: they may be on their way */
    int64_t tolerance_ns; /* how far ahead of the clock an id's time may be */
    /* Messages that were taken wait for the archive in the spill file. */
    bool (*is_archive_behind)(void *context);
    void *context;
};

struct sync_fill;

MUST_USE enum status sync_fill_create(
        struct sync_fill **out, const struct sync_fill_options *options);
void sync_fill_destroy(struct sync_fill **fill);

/* The whole range anew, in the next turn: at the start, and when a topic was joined. Thread: any. */
void sync_fill_request(struct sync_fill *fill);

/* Returns when nothing is asked of the archive any more, now and later. Thread: any but these two. */
void sync_fill_quiesce(struct sync_fill *fill);

/* One step of what is due; how many ids were pruned. */
size_t sync_fill_turn(struct sync_fill *fill, struct sync_set *set);

/* Whether a whole range is being filled, or is about to be. */
bool sync_fill_is_filling(const struct sync_fill *fill);

/* Monotonic time of the next turn. */
uint64_t sync_fill_deadline(const struct sync_fill *fill);
