/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The sync role: owner of the set of (timestamp, hash) that store-sync compares. It takes ids from
 * the lanes' rings and notes the times whose ids were lost; at the set's limit the oldest ids go.
 */

#include <stddef.h>
#include <stdint.h>

#include "base/attributes.h"
#include "queues/id_ring.h"
#include "queues/progress.h"
#include "router/dispatcher.h"
#include "router/sync_set.h"
#include "workers/ring_set.h"
#include "workers/worker.h"

struct sync_worker {
    struct id_ring *BORROWED rings[RING_SET_MAX];
    struct dispatcher *BORROWED dispatchers[RING_SET_MAX]; /* of the same lanes, for their gaps */
    size_t lane_count;
    struct parking *BORROWED parking;
    struct sync_set *BORROWED set;
    struct progress *BORROWED progress;
    size_t progress_slot;
};

struct worker_role sync_worker_role(struct sync_worker *worker, const char *name);
