/* SPDX-License-Identifier: MIT */
#include "queues/frame_budget.h"

#include <assert.h>
#include <stdalign.h>
#include <stdatomic.h>

#include "base/memory.h"
#include "base/metrics.h"

/*
 * charge holds the bytes charged and, in its top bit, that a charge was refused since the waiters were
 * last woken. Being one word, a refusal and the releases around it have one order: a release after the
 * refusal sees the bit, and a charge tried after a release sees its room. So the bit costs nothing
 * while there is credit, and waiters are woken only when somebody was refused.
 *
 * Ordering: all accesses are relaxed. The numbers guard no other memory, and the order between them and
 * a waiter's sleep is that of parking.c: a waiter that prepared before the wake is woken, and one that
 * prepares after it sees the charge as the waker left it (ANNOUNCE).
 */
#define WAITING (SIZE_MAX ^ (SIZE_MAX >> 1))

struct frame_budget {
    alignas(CACHE_LINE) atomic_size_t charge; /* written by everyone */
    atomic_size_t peak;                       /* written when it grows */

    alignas(CACHE_LINE) size_t limit; /* these are constant once threads run */
    size_t partial_limit;
    size_t low_water;
    size_t waiter_count;
    struct waiter {
        void (*wake)(void *context);
        void *context;
    } waiters[FRAME_BUDGET_MAX_WAITERS];
};

enum status frame_budget_create(struct frame_budget **out, size_t limit_bytes, size_t reserve_bytes)
{
    if (limit_bytes <= reserve_bytes || limit_bytes > PTRDIFF_MAX) {
        return STATUS_BAD_ARGUMENT;
    }
    struct frame_budget *budget = memory_allocate_aligned(CACHE_LINE, sizeof(*budget));
    if (budget == NULL) {
        return STATUS_NO_MEMORY;
    }
    atomic_init(&budget->charge, 0);
    atomic_init(&budget->peak, 0);
    budget->limit = limit_bytes;
    budget->partial_limit = limit_bytes - reserve_bytes;
    budget->low_water = budget->partial_limit - budget->partial_limit / 4;
    budget->waiter_count = 0;
    *out = budget;
    return STATUS_OK;
}

void frame_budget_destroy(struct frame_budget **budget)
{
    if (*budget == NULL) {
        return;
    }
    assert(frame_budget_used(*budget) == 0);
    memory_free(*budget);
    *budget = NULL;
}

static void note_peak(struct frame_budget *budget, size_t used)
{
    /* relaxed: see top */
    size_t peak = atomic_load_explicit(&budget->peak, memory_order_relaxed);
    /* Ends because a failure means that another thread raised it. */
    while (used > peak) {
        if (atomic_compare_exchange_weak_explicit(
                    &budget->peak, &peak, used, memory_order_relaxed, memory_order_relaxed)) {
            return;
        }
    }
}

/* False when limit has no room; the refusal is then on record in the charge. */
static bool charge_up_to(struct frame_budget *budget, size_t limit, size_t bytes)
{
    bool has_room;
    size_t next;
    /* relaxed: see top */
    size_t now = atomic_load_explicit(&budget->charge, memory_order_relaxed);
    /* Ends because a failure means that another thread charged, released or was refused. */
    do {
        size_t used = now & ~WAITING;
        has_room = used <= limit && bytes <= limit - used;
        next = has_room ? now + bytes : now | WAITING;
    } while (next != now && !atomic_compare_exchange_weak_explicit(&budget->charge, &now, next,
                                    memory_order_relaxed, memory_order_relaxed));
    if (has_room) {
        note_peak(budget, next & ~WAITING);
    }
    return has_room;
}

bool frame_budget_try_charge(
        struct frame_budget *budget, enum frame_budget_class class, size_t bytes)
{
    size_t limit = class == FRAME_BUDGET_PARTIAL ? budget->partial_limit : budget->limit;
    if (charge_up_to(budget, limit, bytes)) {
        return true;
    }
    metrics_add(METRIC_FRAMES_WITHOUT_CREDIT, 1);
    return false;
}

void frame_budget_release(struct frame_budget *budget, size_t bytes)
{
    /* relaxed: see top */
    size_t before = atomic_fetch_sub_explicit(&budget->charge, bytes, memory_order_relaxed);
    assert((before & ~WAITING) >= bytes);
    if ((before & WAITING) == 0 || (before & ~WAITING) - bytes >= budget->low_water) {
        return;
    }
    before = atomic_fetch_and_explicit(&budget->charge, ~WAITING, memory_order_relaxed);
    if ((before & WAITING) == 0) {
        return; /* another release took the bit and wakes */
    }
    for (size_t i = 0; i < budget->waiter_count; i++) {
        budget->waiters[i].wake(budget->waiters[i].context);
    }
}

size_t frame_budget_used(const struct frame_budget *budget)
{
    /* relaxed: see top */
    return atomic_load_explicit(&budget->charge, memory_order_relaxed) & ~WAITING;
}

size_t frame_budget_limit(const struct frame_budget *budget)
{
    return budget->limit;
}

size_t frame_budget_peak(const struct frame_budget *budget)
{
    /* relaxed: see top */
    return atomic_load_explicit(&budget->peak, memory_order_relaxed);
}

static void wake_parking(void *context)
{
    parking_wake(context);
}

enum status frame_budget_add_waiter(struct frame_budget *budget, struct parking *parking)
{
    return frame_budget_add_waker(budget, wake_parking, parking);
}

enum status frame_budget_add_waker(
        struct frame_budget *budget, void (*wake)(void *context), void *context)
{
    if (budget->waiter_count == FRAME_BUDGET_MAX_WAITERS) {
        return STATUS_LIMIT_REACHED;
    }
    budget->waiters[budget->waiter_count++] = (struct waiter){.wake = wake, .context = context};
    return STATUS_OK;
}

void frame_budget_remove_waker(struct frame_budget *budget, const void *context)
{
    size_t kept = 0;
    for (size_t i = 0; i < budget->waiter_count; i++) {
        if (budget->waiters[i].context != context) {
            budget->waiters[kept++] = budget->waiters[i];
        }
    }
    budget->waiter_count = kept;
}
