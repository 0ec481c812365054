/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Counters without contention: every thread owns one row and is its only writer; whoever reads adds
 * the rows up. A sum may be slightly behind, never torn.
 *
 * Ownership:  struct metrics belongs to a node; a row lives as long as its metrics, so that the
 *             counts of threads that have ended stay in the sum.
 * Thread:     metrics_add on any thread. A thread without a row (metrics_attach_thread not called)
 *             counts into one row of the process that all such threads share.
 */

#include <stdalign.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "base/attributes.h"
#include "base/status.h"

enum metric {
#define METRIC(id, name, labels, kind, help) METRIC_##id,
#define LEDGER(stage, outcome, reason, help) LEDGER_##stage##_##reason,
#include "base/metrics.def"
    METRIC_COUNT
};

enum {
    /* the classes of a DURATION */
    METRIC_COUNT_OF_DURATION = METRIC_ARCHIVE_INSERT_COUNT - METRIC_ARCHIVE_INSERT_LE_5MS
};

struct metrics;

struct metrics_row {
    alignas(CACHE_LINE) _Atomic uint64_t values[METRIC_COUNT];
    struct metrics_row *next; /* constant once the row is listed */
};

extern _Thread_local struct metrics_row *metrics_row_of_thread;

void metrics_add_shared(enum metric metric, uint64_t amount);

/* Counts on the row of the calling thread. */
static inline void metrics_add(enum metric metric, uint64_t amount)
{
    struct metrics_row *row = metrics_row_of_thread;
    if (row == NULL) {
        metrics_add_shared(metric, amount);
        return;
    }
    /* relaxed load and store, not fetch_add: nobody else writes this row */
    uint64_t now = atomic_load_explicit(&row->values[metric], memory_order_relaxed);
    atomic_store_explicit(&row->values[metric], now + amount, memory_order_relaxed);
}

MUST_USE enum status metrics_create(struct metrics **out);

/* All attached threads must have detached or ended. */
void metrics_destroy(struct metrics **metrics);

/* Gives the calling thread a row of its own in metrics. */
MUST_USE enum status metrics_attach_thread(struct metrics *metrics);
void metrics_detach_thread(void);

/*
 * Between the two the calling thread counts into the shared row: for load generators, whose own work
 * is not the router's.
 */
struct metrics_row *metrics_suspend_thread(void);
void metrics_resume_thread(struct metrics_row *row);

/* The sum over all rows of metrics; with NULL, the row of the threads that have none. */
uint64_t metrics_sum(const struct metrics *metrics, enum metric metric);
