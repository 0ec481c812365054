/* SPDX-License-Identifier: MIT */
#include "queues/progress.h"

#include <assert.h>

/*
 * Ordering:
 *
 *   FINISHED  release store of a slot -> acquire load; who sees the count sees the stage's work.
 *   WANTED    every access to wanted after init is a read-modify-write with acquire and release, so all
 *             of them have one order, and each sees what was done before those in front of it.
 *
 * Why no wake is lost: a waiter announces itself at the parking, lowers wanted, looks at the count and
 * sleeps. A stage adds to its slot and then reads wanted. If that read comes before the waiter's
 * lowering, the waiter's look sees the slot, and those of all stages whose read came earlier; if the
 * last of them reached the count, it does not sleep. If the read comes after, the stage sees all slots
 * added to before and a wanted that is low enough, or one that another stage has taken back since: that
 * one wakes the parking after it, where the waiter has been announced before.
 */

void progress_init(struct progress *progress)
{
    parking_init(&progress->parking);
    parking_init(&progress->reached);
    atomic_init(&progress->wanted, UINT64_MAX);
    progress->slot_count = 0;
    progress->stage_count = 1;
    for (size_t i = 0; i < PROGRESS_SLOTS_MAX; i++) {
        atomic_init(&progress->slots[i].finished, 0);
        progress->slots[i].stage = PROGRESS_INTAKE;
    }
}

size_t progress_add_stage(struct progress *progress)
{
    assert(progress->stage_count < PROGRESS_STAGES_MAX);
    return progress->stage_count++;
}

size_t progress_add_slot(struct progress *progress, size_t stage)
{
    assert(progress->slot_count < PROGRESS_SLOTS_MAX);
    assert(stage < progress->stage_count);
    progress->slots[progress->slot_count].stage = stage;
    return progress->slot_count++;
}

void progress_add(struct progress *progress, size_t slot, uint64_t count)
{
    _Atomic uint64_t *finished = &progress->slots[slot].finished;
    /* relaxed: only this thread writes it */
    uint64_t now = atomic_load_explicit(finished, memory_order_relaxed);
    atomic_store_explicit(finished, now + count, memory_order_release); /* FINISHED */
}

uint64_t progress_finished(const struct progress *progress)
{
    uint64_t sums[PROGRESS_STAGES_MAX] = {0};
    for (size_t i = 0; i < progress->slot_count; i++) {
        const struct progress_slot *slot = &progress->slots[i];
        sums[slot->stage] +=
                atomic_load_explicit(&slot->finished, memory_order_acquire); /* FINISHED */
    }
    uint64_t slowest = UINT64_MAX;
    for (size_t stage = 1; stage < progress->stage_count; stage++) {
        slowest = sums[stage] < slowest ? sums[stage] : slowest;
    }
    return sums[PROGRESS_INTAKE] + (slowest == UINT64_MAX ? 0 : slowest);
}

void progress_wake(struct progress *progress)
{
    parking_wake(&progress->parking);
    /* Adds nothing: a read-modify-write has a place in the order of wanted, a load has none. */
    uint64_t wanted =
            atomic_fetch_add_explicit(&progress->wanted, 0, memory_order_acq_rel); /* WANTED */

    /* Ends because a failure means that another stage or waiter got through. */
    while (wanted != UINT64_MAX && progress_finished(progress) >= wanted) {
        if (atomic_compare_exchange_weak_explicit(&progress->wanted, &wanted, UINT64_MAX,
                    memory_order_acq_rel, memory_order_acquire)) { /* WANTED */
            parking_wake(&progress->reached);
            return;
        }
    }
}

void progress_alert(struct progress *progress)
{
    parking_wake(&progress->parking);
    parking_wake(&progress->reached);
}

static void want(struct progress *progress, uint64_t count)
{
    /* relaxed: only a first guess for the exchange */
    uint64_t now = atomic_load_explicit(&progress->wanted, memory_order_relaxed);
    /* Ends because a failure means that a stage or another waiter got through. The same value is
     * written again, too: it is the place in the order that counts. */
    while (!atomic_compare_exchange_weak_explicit(&progress->wanted, &now,
            now < count ? now : count, memory_order_acq_rel, memory_order_relaxed)) { /* WANTED */
    }
}

bool progress_wait(struct progress *progress, uint64_t count, uint64_t timeout_ns)
{
    uint32_t ticket = parking_prepare(&progress->reached);
    want(progress, count);
    if (progress_finished(progress) >= count) {
        parking_cancel(&progress->reached, ticket);
        return true;
    }
    return parking_wait(&progress->reached, ticket, timeout_ns);
}
