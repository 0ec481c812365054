/* SPDX-License-Identifier: MIT */
#include "queues/progress.h"

#include <assert.h>

void progress_init(struct progress *progress)
{
    parking_init(&progress->parking);
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

/* FINISHED: release store -> acquire load; who sees the count sees the stage's work. */
void progress_add(struct progress *progress, size_t slot, uint64_t count)
{
    _Atomic uint64_t *finished = &progress->slots[slot].finished;
    /* relaxed: only this thread writes it */
    uint64_t now = atomic_load_explicit(finished, memory_order_relaxed);
    atomic_store_explicit(finished, now + count, memory_order_release); /* FINISHED */
}

void progress_wake(struct progress *progress)
{
    parking_wake(&progress->parking);
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
