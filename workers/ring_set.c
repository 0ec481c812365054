/* SPDX-License-Identifier: MIT */
#include "workers/ring_set.h"

size_t ring_set_drain(struct ring_set *set, struct envelope **out, size_t capacity)
{
    size_t filled = 0;
    for (size_t tried = 0; tried < set->count && filled < capacity; tried++) {
        struct spmc_ring *ring = set->rings[set->next];
        set->next = (set->next + 1) % set->count;
        struct envelope *envelope;
        while (filled < capacity && (envelope = spmc_ring_try_pop(ring)) != NULL) {
            out[filled++] = envelope;
        }
    }
    return filled;
}

void ring_set_release(struct ring_set *set, struct envelope *envelope)
{
    if (set->load != NULL) {
        stage_load_remove(set->load, envelope->topic->lane, stage_load_of(envelope));
    }
    envelope_unref(envelope);
}

bool ring_set_is_empty(const struct ring_set *set)
{
    return ring_set_depth(set) == 0;
}

size_t ring_set_depth(const struct ring_set *set)
{
    size_t depth = 0;
    for (size_t i = 0; i < set->count; i++) {
        depth += spmc_ring_depth_estimate(set->rings[i]);
    }
    return depth;
}
