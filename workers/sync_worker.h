/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The sync role: owner of the set of (timestamp, hash) that store-sync compares. It takes ids from
 * the lanes' rings, notes the times whose ids were lost, and carries out what others want of the set,
 * one job after the other; at the set's limit the oldest ids go.
 */

#include <stddef.h>
#include <stdint.h>

#include "base/attributes.h"
#include "queues/id_ring.h"
#include "queues/inbox.h"
#include "queues/progress.h"
#include "router/dispatcher.h"
#include "router/sync_job.h"
#include "router/sync_set.h"
#include "workers/ring_set.h"
#include "workers/sync_fill.h"
#include "workers/worker.h"

struct sync_worker {
    struct id_ring *BORROWED rings[RING_SET_MAX];
    struct dispatcher *BORROWED dispatchers[RING_SET_MAX]; /* of the same lanes, for their gaps */
    size_t lane_count;
    struct parking *BORROWED parking; /* of jobs, if there are any */
    struct inbox *BORROWED jobs;      /* of sync jobs; NULL: none come */
    struct sync_fill *BORROWED fill;  /* NULL: the set is not kept like the archive */
    int64_t keep_ns;                  /* without fill: older ids leave the set; 0: none does */
    struct sync_set *BORROWED set;
    struct progress *BORROWED progress;
    size_t progress_slot;

    _Atomic uint64_t set_count; /* ids in the set, for others to read */

    struct sync_job *waiting; /* for a whole set, the first to come first */
    struct sync_job **last_waiting;
    uint64_t patience_end_ns; /* of the first that waits */
    uint64_t next_prune_ns;
};

struct worker_role sync_worker_role(struct sync_worker *worker, const char *name);
