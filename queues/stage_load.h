/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The bytes of frames that a stage holds back through the rings of all lanes: from the push until its
 * worker is done with the envelope, so what a blocked worker has in hand counts as well.
 *
 * Thread: add on the lane's thread, remove on the stage's, bytes on any.
 */

#include <stdalign.h>
#include <stdatomic.h>
#include <stddef.h>

#include "base/attributes.h"
#include "queues/envelope.h"

enum {
    STAGE_LOAD_LANES_MAX = 16
};

/* Both only grow; relaxed throughout: they order nothing, and what was removed a moment ago may count
 * a moment longer. */
struct lane_load {
    alignas(CACHE_LINE) atomic_size_t added;   /* written by the lane */
    alignas(CACHE_LINE) atomic_size_t removed; /* written by the stage */
};

struct stage_load {
    struct lane_load lanes[STAGE_LOAD_LANES_MAX];
    size_t lane_count; /* constant once the threads run */
};

static inline size_t stage_load_of(const struct envelope *envelope)
{
    return frame_charge(frame_length(envelope->frame));
}

static inline void stage_load_add(struct stage_load *load, size_t lane, size_t bytes)
{
    atomic_fetch_add_explicit(&load->lanes[lane].added, bytes, memory_order_relaxed);
}

static inline void stage_load_remove(struct stage_load *load, size_t lane, size_t bytes)
{
    atomic_fetch_add_explicit(&load->lanes[lane].removed, bytes, memory_order_relaxed);
}

static inline size_t stage_load_of_lane(const struct stage_load *load, size_t lane)
{
    /* removed first: what is removed was added before, so the difference is never negative */
    size_t removed = atomic_load_explicit(&load->lanes[lane].removed, memory_order_relaxed);
    size_t added = atomic_load_explicit(&load->lanes[lane].added, memory_order_relaxed);
    return added > removed ? added - removed : 0;
}

static inline size_t stage_load_bytes(const struct stage_load *load)
{
    size_t bytes = 0;
    for (size_t lane = 0; lane < load->lane_count; lane++) {
        bytes += stage_load_of_lane(load, lane);
    }
    return bytes;
}
