/* SPDX-License-Identifier: MIT */
#include "queues/id_ring.h"

#include <assert.h>
#include <stdalign.h>
#include <stdatomic.h>

#include "base/memory.h"

/*
 * tail counts pushes and head counts pops. Both only grow, so they are compared by unsigned difference
 * and wrap-around is harmless. The slot of position p belongs to the producer until tail passes p, and
 * to the consumer until head passes p.
 *
 * Ordering:
 *
 *   PUBLISH  release store of tail -> acquire load of tail. The consumer sees the record written to the
 *            slot before.
 *   RECYCLE  release store of head -> acquire load of head. The consumer has copied the record out
 *            before the producer overwrites its slot.
 */
struct id_ring {
    alignas(CACHE_LINE) atomic_size_t tail; /* these are written by the producer */
    size_t head_seen;
    atomic_size_t high_water;

    alignas(CACHE_LINE) atomic_size_t head; /* these are written by the consumer */
    size_t tail_seen;

    alignas(CACHE_LINE) size_t capacity; /* constant after create */
    struct parking *parking;
    struct id_record slots[];
};

enum status id_ring_create(struct id_ring **out, size_t capacity, struct parking *parking)
{
    if (capacity < 2 || capacity > SIZE_MAX / 2 / sizeof(struct id_record) ||
            (capacity & (capacity - 1)) != 0) {
        return STATUS_BAD_ARGUMENT;
    }
    struct id_ring *ring =
            memory_allocate_aligned(CACHE_LINE, sizeof(*ring) + capacity * sizeof(ring->slots[0]));
    if (ring == NULL) {
        return STATUS_NO_MEMORY;
    }
    atomic_init(&ring->tail, 0);
    atomic_init(&ring->head, 0);
    atomic_init(&ring->high_water, 0);
    ring->head_seen = 0;
    ring->tail_seen = 0;
    ring->capacity = capacity;
    ring->parking = parking;
    *out = ring;
    return STATUS_OK;
}

void id_ring_destroy(struct id_ring **ring)
{
    if (*ring == NULL) {
        return;
    }
    assert(id_ring_depth_estimate(*ring) == 0);
    memory_free(*ring);
    *ring = NULL;
}

static struct id_record *slot_at(struct id_ring *ring, size_t position)
{
    return &ring->slots[position & (ring->capacity - 1)];
}

static void note_depth(struct id_ring *ring, size_t depth)
{
    /* relaxed: only the producer writes it, and readers want no more than a number */
    if (depth > atomic_load_explicit(&ring->high_water, memory_order_relaxed)) {
        atomic_store_explicit(&ring->high_water, depth, memory_order_relaxed);
    }
}

bool id_ring_try_push(struct id_ring *ring, const struct id_record *record)
{
    /* relaxed: only this thread writes tail */
    size_t tail = atomic_load_explicit(&ring->tail, memory_order_relaxed);

    /* The consumer's line is read only when the old view of it says "full" or "deeper than ever". */
    if (tail - ring->head_seen >=
            atomic_load_explicit(&ring->high_water, memory_order_relaxed)) { /* own variable */
        ring->head_seen = atomic_load_explicit(&ring->head, memory_order_acquire); /* RECYCLE */
        if (tail - ring->head_seen == ring->capacity) {
            return false;
        }
        note_depth(ring, tail + 1 - ring->head_seen);
    }

    *slot_at(ring, tail) = *record;
    atomic_store_explicit(&ring->tail, tail + 1, memory_order_release); /* PUBLISH */
    return true;
}

void id_ring_wake(struct id_ring *ring)
{
    if (ring->parking != NULL) {
        parking_wake(ring->parking);
    }
}

bool id_ring_try_pop(struct id_ring *ring, struct id_record *out)
{
    /* relaxed: only this thread writes head */
    size_t head = atomic_load_explicit(&ring->head, memory_order_relaxed);
    if (head == ring->tail_seen) {
        ring->tail_seen = atomic_load_explicit(&ring->tail, memory_order_acquire); /* PUBLISH */
        if (head == ring->tail_seen) {
            return false;
        }
    }

    *out = *slot_at(ring, head);
    atomic_store_explicit(&ring->head, head + 1, memory_order_release); /* RECYCLE */
    return true;
}

size_t id_ring_depth_estimate(const struct id_ring *ring)
{
    /* relaxed: an estimate orders nothing; head first, so that it is never ahead of tail here */
    size_t head = atomic_load_explicit(&ring->head, memory_order_relaxed);
    size_t tail = atomic_load_explicit(&ring->tail, memory_order_relaxed);
    size_t depth = tail - head;
    return depth <= ring->capacity ? depth : ring->capacity;
}

size_t id_ring_high_water(const struct id_ring *ring)
{
    /* relaxed: a number that orders nothing */
    return atomic_load_explicit(&ring->high_water, memory_order_relaxed);
}

size_t id_ring_capacity(const struct id_ring *ring)
{
    return ring->capacity;
}
