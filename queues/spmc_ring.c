/* SPDX-License-Identifier: MIT */
#include "queues/spmc_ring.h"

#include <assert.h>
#include <ck_ring.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdint.h>

#include "base/memory.h"
#include "base/tsan.h"

/*
 * The ring itself is ck_ring's: one counter of pushes, one of pops, and consumers that claim a slot by
 * compare-exchange after they have copied it. The producer counts a slot as free only when the counter
 * of pops has passed it, so it never overwrites one whose reference is still to be handed out.
 *
 * Ordering is CK's too, made with inline assembly that TSan does not see:
 *
 *   CARGO  push -> pop of the same reference. The consumer sees the envelope as it was pushed. Told to
 *          TSan with the envelope's own address, so that nothing else seems ordered by it.
 *
 * CK 0.7.1 orders the read of the pop counter and the write of the slot by nothing but the strong order
 * of x86; processors with weaker ordering need a later CK.
 */
#if !defined(__x86_64__) && !defined(SLUICE_CK_HAS_WEAK_ORDER_BARRIERS)
#error "ck_ring of Concurrency Kit 0.7.1 lacks barriers that this processor needs: use a later one"
#endif

enum {
    CAPACITY_MAX = 1 << 30
};

struct spmc_ring {
    alignas(CACHE_LINE) struct ck_ring ring;

    alignas(CACHE_LINE) atomic_uint high_water; /* written by the producer */

    alignas(CACHE_LINE) struct parking *parking; /* constant after create */
    struct ck_ring_buffer slots[];
};

enum status spmc_ring_create(struct spmc_ring **out, size_t capacity, struct parking *parking)
{
    if (capacity < 2 || capacity > CAPACITY_MAX || (capacity & (capacity - 1)) != 0) {
        return STATUS_BAD_ARGUMENT;
    }
    struct spmc_ring *ring =
            memory_allocate_aligned(CACHE_LINE, sizeof(*ring) + capacity * sizeof(ring->slots[0]));
    if (ring == NULL) {
        return STATUS_NO_MEMORY;
    }
    ck_ring_init(&ring->ring, (unsigned)capacity);
    atomic_init(&ring->high_water, 0);
    ring->parking = parking;
    *out = ring;
    return STATUS_OK;
}

void spmc_ring_destroy(struct spmc_ring **ring)
{
    if (*ring == NULL) {
        return;
    }
    assert(spmc_ring_depth_estimate(*ring) == 0);
    memory_free(*ring);
    *ring = NULL;
}

bool spmc_ring_try_push(struct spmc_ring *ring, struct envelope *envelope)
{
    unsigned depth;           /* before this push */
    TSAN_HAND_OVER(envelope); /* CARGO */
    if (!ck_ring_enqueue_spmc_size(&ring->ring, ring->slots, envelope, &depth)) {
        return false;
    }
    /* relaxed: only this thread writes it, and readers want no more than a number */
    if (depth + 1 > atomic_load_explicit(&ring->high_water, memory_order_relaxed)) {
        atomic_store_explicit(&ring->high_water, depth + 1, memory_order_relaxed);
    }
    return true;
}

void spmc_ring_wake(struct spmc_ring *ring)
{
    if (ring->parking != NULL) {
        parking_wake(ring->parking);
    }
}

struct envelope *spmc_ring_try_pop(struct spmc_ring *ring)
{
    struct envelope *envelope;
    if (!ck_ring_dequeue_spmc(&ring->ring, ring->slots, &envelope)) {
        return NULL;
    }
    TSAN_TAKE_OVER(envelope); /* CARGO */
    return envelope;
}

size_t spmc_ring_depth_estimate(const struct spmc_ring *ring)
{
    return ck_ring_size(&ring->ring);
}

size_t spmc_ring_high_water(const struct spmc_ring *ring)
{
    /* relaxed: a number that orders nothing */
    return atomic_load_explicit(&ring->high_water, memory_order_relaxed);
}

size_t spmc_ring_capacity(const struct spmc_ring *ring)
{
    return ck_ring_capacity(&ring->ring);
}
