/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * A bounded ring of envelope references from exactly one producer thread to one or several consumer
 * threads, on Concurrency Kit's ck_ring. Each reference reaches one consumer.
 *
 * Progress:   try_push is wait-free, try_pop lock-free. Neither allocates, locks or enters the kernel.
 * Ownership:  a successful push moves the reference into the ring, a pop moves it out.
 * Lifetime:   create before the threads start; destroy after all have joined, empty.
 *
 *                    producer   consumers   any thread
 *   try_push            x
 *   wake                x                       x
 *   try_pop                         x
 *   depth_estimate      x           x           x
 */

#include <stdbool.h>
#include <stddef.h>

#include "base/attributes.h"
#include "base/status.h"
#include "queues/parking.h"

struct envelope;
struct spmc_ring;

/*
 * capacity must be a power of two, at least 2; one slot of it stays empty. parking is what the
 * consumers sleep on (several rings may share one); NULL: they do not sleep.
 */
MUST_USE enum status spmc_ring_create(
        struct spmc_ring **out, size_t capacity, struct parking *BORROWED parking);
void spmc_ring_destroy(struct spmc_ring **ring);

/* False when full: nothing is overwritten, the reference still belongs to the caller. */
MUST_USE bool spmc_ring_try_push(struct spmc_ring *ring, struct envelope *CONSUMED envelope);

/* After one or several pushes. */
void spmc_ring_wake(struct spmc_ring *ring);

/* NULL when empty. */
MUST_USE struct envelope *spmc_ring_try_pop(struct spmc_ring *ring);

size_t spmc_ring_depth_estimate(const struct spmc_ring *ring);

/* The deepest that the producer ever saw it. */
size_t spmc_ring_high_water(const struct spmc_ring *ring);
size_t spmc_ring_capacity(const struct spmc_ring *ring);
