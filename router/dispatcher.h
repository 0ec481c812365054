/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Hands an accepted message to every stage, each by its own policy, and keeps the ledgers: what a
 * stage may not have is refused here, what it has no room for is dropped here, both with a reason.
 *
 *   archive   ring; behind it the spill thread takes over in time; full: dropped(archive_unavailable)
 *   filter    a ring for each filter worker; full: dropped(ring_full)
 *   sync      id by value; full: dropped(ring_full), and the sync worker marks the time incomplete;
 *             what the archive dropped: dropped(not_archived)
 *   event     ring; full: dropped(ring_full)
 *
 * Half of the memory budget is what one stage may hold back at most, or a slow one would stop the
 * others: filter and event drop what is beyond it (over_share), and so does the archive where it has
 * no spill file.
 *
 * Thread: one dispatcher a lane, used by the lane's decode thread; it is the producer of the rings.
 */

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/attributes.h"
#include "queues/envelope.h"
#include "queues/frame_budget.h"
#include "queues/id_ring.h"
#include "queues/progress.h"
#include "queues/spmc_ring.h"
#include "queues/stage_load.h"

enum {
    DISPATCHER_FILTERS_MAX = 16,
    DISPATCHER_GAPS = 2,
    DISPATCHER_SHARE = 2,       /* a stage may hold back half of the budget */
    DISPATCHER_BEHIND_FROM = 2, /* half of ring or budget: the spill thread begins */
    DISPATCHER_BEHIND_UNTIL = 4 /* a quarter: it leaves the rest to the archive thread */
};

/*
 * The times of ids that found the sync ring full, for the sync worker to mark as incomplete: noted by
 * the lane, taken by the sync worker. Whoever looks at one holds it; the sync worker holds one at a
 * time, so the lane always finds another.
 */
struct dispatcher_gap {
    atomic_int state; /* enum gap_state of dispatcher.c */
    int64_t from_ns;
    int64_t to_ns;
};

/* Rings that are NULL belong to stages that are switched off. */
struct dispatcher {
    struct spmc_ring *archive;
    struct spmc_ring *filters[DISPATCHER_FILTERS_MAX];
    size_t filter_count;
    struct id_ring *sync;
    struct spmc_ring *event;
    struct stage_load *archive_load; /* of each stage, for its share of the budget */
    struct stage_load *filter_loads[DISPATCHER_FILTERS_MAX];
    struct stage_load *event_load;
    size_t lane;
    struct parking *spill; /* woken when the archive falls behind, see below; may be NULL */
    const struct frame_budget *budget;

    struct progress *progress;
    size_t slot_archive; /* slots for what is refused or dropped here */
    size_t slot_sync;
    size_t slot_event;
    size_t slot_filters[DISPATCHER_FILTERS_MAX];

    struct dispatcher_gap sync_gaps[DISPATCHER_GAPS];
    bool has_pushed; /* since the last flush */
};

/*
 * The archive is behind when its ring is filled beyond the share, or when the frames in flight are
 * beyond that share of the memory budget: what waits for the archive must not stop what arrives.
 */
static inline bool dispatcher_is_archive_behind(
        size_t depth, size_t capacity, const struct frame_budget *budget, size_t divisor)
{
    return depth > capacity / divisor ||
           (depth > 0 && frame_budget_used(budget) > frame_budget_limit(budget) / divisor);
}

void dispatcher_init(struct dispatcher *dispatcher);

void dispatcher_publish(struct dispatcher *dispatcher, struct envelope *CONSUMED envelope);

/*
 * Whether the archive's ring might have no room for count messages more: who publishes can leave the
 * processor to those who make some for a moment. Wakes the spill thread.
 */
bool dispatcher_is_archive_full(struct dispatcher *dispatcher, size_t count);

/* Wakes the stages that have got something since the last flush. Once a turn. */
void dispatcher_flush(struct dispatcher *dispatcher);

/* Times lost that no call has given yet; false when there are none. Thread: the sync worker. */
MUST_USE bool dispatcher_take_gap(struct dispatcher *dispatcher, int64_t *from_ns, int64_t *to_ns);
