/* SPDX-License-Identifier: MIT */
#include "admin/log_ring.h"

#include <stdalign.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/*
 * tail counts the slots that producers have claimed, head those the taker has emptied. The turn of a
 * slot says who may touch it: it equals the position of the push that may fill it, that position + 1
 * while it is full, and the position of the next round once it is empty again. Positions only grow;
 * they are compared by signed difference, so wrap-around is harmless.
 *
 * Ordering (every acquire or release below carries the name of its pair):
 *
 *   FILLED   release store of turn by the producer -> acquire load by the taker.
 *            The taker sees the whole line.
 *   EMPTIED  release store of turn by the taker -> acquire load by a producer.
 *            The taker has copied the old line before the next one overwrites it.
 */
struct log_slot {
    _Atomic uint64_t turn;
    struct log_record record;
};

struct log_ring {
    alignas(CACHE_LINE) _Atomic uint64_t tail; /* written by producers */

    alignas(CACHE_LINE) uint64_t head; /* the taker's alone */

    alignas(CACHE_LINE) uint64_t mask; /* constant after create */
    struct log_slot slots[];
};

enum status log_ring_create(struct log_ring **out, size_t capacity)
{
    if (capacity < 2 || (capacity & (capacity - 1)) != 0 || capacity > UINT32_MAX) {
        return STATUS_BAD_ARGUMENT;
    }
    size_t size = sizeof(struct log_ring) + capacity * sizeof(struct log_slot);
    size = (size + CACHE_LINE - 1) / CACHE_LINE * CACHE_LINE;
    struct log_ring *ring = aligned_alloc(CACHE_LINE, size);
    if (ring == NULL) {
        return STATUS_NO_MEMORY;
    }
    memset(ring, 0, size);
    ring->mask = capacity - 1;
    atomic_init(&ring->tail, 0);
    for (size_t i = 0; i < capacity; i++) {
        atomic_init(&ring->slots[i].turn, i);
    }
    *out = ring;
    return STATUS_OK;
}

void log_ring_destroy(struct log_ring **ring)
{
    free(*ring);
    *ring = NULL;
}

bool log_ring_try_push(struct log_ring *ring, const struct log_record *record)
{
    /* relaxed: the slot's turn decides whether this view of tail is of use */
    uint64_t position = atomic_load_explicit(&ring->tail, memory_order_relaxed);
    struct log_slot *slot;
    /* Ends when a slot is claimed or the ring is found full: every turn follows another's success. */
    for (;;) {
        slot = &ring->slots[position & ring->mask];
        uint64_t turn = atomic_load_explicit(&slot->turn, memory_order_acquire); /* EMPTIED */
        int64_t ahead = (int64_t)(turn - position);
        if (ahead < 0) {
            return false;
        }
        /* relaxed: the claim hands nothing over; the slot's turn does. A failure reloads position */
        if (ahead == 0 && atomic_compare_exchange_weak_explicit(&ring->tail, &position,
                                  position + 1, memory_order_relaxed, memory_order_relaxed)) {
            break;
        }
        if (ahead > 0) {
            /* relaxed: as above */
            position = atomic_load_explicit(&ring->tail, memory_order_relaxed);
        }
    }
    slot->record = *record;
    atomic_store_explicit(&slot->turn, position + 1, memory_order_release); /* FILLED */
    return true;
}

bool log_ring_try_pop(struct log_ring *ring, struct log_record *out)
{
    struct log_slot *slot = &ring->slots[ring->head & ring->mask];
    uint64_t turn = atomic_load_explicit(&slot->turn, memory_order_acquire); /* FILLED */
    if (turn != ring->head + 1) {
        return false;
    }
    *out = slot->record;
    atomic_store_explicit(
            &slot->turn, ring->head + ring->mask + 1, memory_order_release); /* EMPTIED */
    ring->head++;
    return true;
}

bool log_ring_has_next(const struct log_ring *ring)
{
    const struct log_slot *slot = &ring->slots[ring->head & ring->mask];
    /* relaxed: the pop that follows reads it again */
    return atomic_load_explicit(&slot->turn, memory_order_relaxed) == ring->head + 1;
}
