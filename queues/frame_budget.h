/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The bytes of frames in flight, all queues together (--memory-budget).
 *
 * A part of the limit is reserved: partial frames (bytes still arriving) may fill only the rest, so
 * that complete frames and local publishes always find room and can leave again.
 *
 * Progress:  try_charge and release are lock-free. Once a charge was refused, the release that brings
 *            the charge below the low-water mark (three quarters of what partial frames may fill), or
 *            finds it there, wakes the waiters. No wake is lost by a waiter that tries again between
 *            parking_prepare and parking_wait.
 * Thread:    any.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/attributes.h"
#include "base/status.h"
#include "queues/parking.h"

struct frame_budget;

enum {
    FRAME_BUDGET_MAX_WAITERS = 64
};

enum frame_budget_class {
    FRAME_BUDGET_PARTIAL, /* up to limit - reserve */
    FRAME_BUDGET_COMPLETE /* up to limit */
};

/* STATUS_BAD_ARGUMENT unless limit_bytes > reserve_bytes and limit_bytes <= PTRDIFF_MAX. */
MUST_USE enum status frame_budget_create(
        struct frame_budget **out, size_t limit_bytes, size_t reserve_bytes);

/* Nothing may be charged any more. */
void frame_budget_destroy(struct frame_budget **budget);

/*
 * False and METRIC_FRAMES_WITHOUT_CREDIT when the class has no room for all of bytes. More than the
 * class's whole room never fits: no release makes that waiting end.
 */
MUST_USE bool frame_budget_try_charge(
        struct frame_budget *budget, enum frame_budget_class class, size_t bytes);
void frame_budget_release(struct frame_budget *budget, size_t bytes);

size_t frame_budget_used(const struct frame_budget *budget);
size_t frame_budget_limit(const struct frame_budget *budget);

/* The most that was ever charged. */
size_t frame_budget_peak(const struct frame_budget *budget);

/*
 * Waiters are parkings (queues/parking.h) of threads that found no credit; all are woken together. At
 * most FRAME_BUDGET_MAX_WAITERS may be added (STATUS_LIMIT_REACHED), before the threads start.
 */
MUST_USE enum status frame_budget_add_waiter(
        struct frame_budget *budget, struct parking *BORROWED parking);

/*
 * The same for a thread that sleeps in something else than a parking: wake is called on the thread
 * that releases, must not block, and has to reach a thread that is about to sleep.
 */
MUST_USE enum status frame_budget_add_waker(
        struct frame_budget *budget, void (*wake)(void *context), void *context);

/* Takes back what was added with that context. Nothing may be charged or released meanwhile. */
void frame_budget_remove_waker(struct frame_budget *budget, const void *context);
