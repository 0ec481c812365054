/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * An event count on a futex: how one thread sleeps until another has put work in a queue, without a
 * lock and without a system call while nobody sleeps.
 *
 *     sleeper                                   waker
 *     ticket = parking_prepare(p)               put work in the queue
 *     if (queue has work) parking_cancel(p, ticket)
 *                                               parking_wake(p)
 *     else parking_wait(p, ticket, timeout)
 *
 * A wake between prepare and wait is never lost. Several threads (255 at most) may sleep on one
 * parking; wake wakes them all.
 *
 * Every prepare is followed by one cancel or one wait with its ticket.
 *
 * Thread: prepare/cancel/wait on the sleeping threads, wake on any.
 */

#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/attributes.h"

struct parking {
    alignas(CACHE_LINE) _Atomic uint32_t state; /* the futex word; its parts: see parking.c */
};

void parking_init(struct parking *parking);
MUST_USE uint32_t parking_prepare(struct parking *parking);
void parking_cancel(struct parking *parking, uint32_t ticket);

/* False when timeout_ns passed first; UINT64_MAX waits for ever. The thread must be RCU-offline. */
bool parking_wait(struct parking *parking, uint32_t ticket, uint64_t timeout_ns);

void parking_wake(struct parking *parking);
