/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * How far each stage has come, for closed-loop producers (replay, flood, benchmarks, a caller that
 * waits): every thread that finishes messages of a stage adds them once a turn, in a slot of its own.
 *
 * A message is finished once its fate at intake is known and, when it was new, once every stage has
 * delivered, refused or dropped it.
 *
 * Thread:  progress_add on the slot's one thread; add_stage and add_slot before the threads run; the
 *          rest on any.
 */

#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/attributes.h"
#include "queues/parking.h"

enum {
    PROGRESS_STAGES_MAX = 32,
    PROGRESS_SLOTS_MAX = 384,
    PROGRESS_INTAKE = 0 /* the stage whose count is messages that went no further */
};

struct progress_slot {
    alignas(CACHE_LINE) _Atomic uint64_t finished;
    size_t stage; /* constant once the threads run */
};

struct progress {
    struct parking parking; /* here sleeps who waits for anything that a stage gives back */
    struct parking reached; /* and here who waits for a count */
    alignas(CACHE_LINE) _Atomic uint64_t wanted; /* the lowest of those counts; UINT64_MAX: none */
    struct progress_slot slots[PROGRESS_SLOTS_MAX];
    size_t slot_count;
    size_t stage_count;
};

/* Knows PROGRESS_INTAKE only. */
void progress_init(struct progress *progress);
size_t progress_add_stage(struct progress *progress);
size_t progress_add_slot(struct progress *progress, size_t stage);

void progress_add(struct progress *progress, size_t slot, uint64_t count);

/*
 * After one or several progress_add: wakes who sleeps on the parking, and, when the count is reached that
 * somebody waits for, who sleeps in progress_wait. So a batch wakes a waiter once, not once a stage.
 */
void progress_wake(struct progress *progress);

/* Wakes all who wait, whatever the count: something else has happened that they should look at. */
void progress_alert(struct progress *progress);

/*
 * Sleeps until every stage is done with count messages, or an alert, or for no reason; false when
 * timeout_ns (UINT64_MAX: none) has passed. The thread must be RCU-offline.
 */
bool progress_wait(struct progress *progress, uint64_t count, uint64_t timeout_ns);

/* Messages that every stage is done with. */
uint64_t progress_finished(const struct progress *progress);
