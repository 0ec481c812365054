/* SPDX-License-Identifier: MIT */
#include "base/metrics.h"

#include <assert.h>
#include <stdlib.h>

/*
 * ROWS: release compare-exchange of first -> acquire load of first. Whoever walks the list sees
 * each row zeroed and linked.
 */
struct metrics {
    _Atomic(struct metrics_row *) first;
};

_Thread_local struct metrics_row *metrics_row_of_thread;

static struct metrics_row shared_row;

void metrics_add_shared(enum metric metric, uint64_t amount)
{
    /* relaxed: a count orders nothing */
    atomic_fetch_add_explicit(&shared_row.values[metric], amount, memory_order_relaxed);
}

enum status metrics_create(struct metrics **out)
{
    struct metrics *metrics = calloc(1, sizeof(*metrics));
    if (metrics == NULL) {
        return STATUS_NO_MEMORY;
    }
    atomic_init(&metrics->first, NULL);
    *out = metrics;
    return STATUS_OK;
}

void metrics_destroy(struct metrics **metrics)
{
    if (*metrics == NULL) {
        return;
    }
    struct metrics_row *row = atomic_load_explicit(&(*metrics)->first, memory_order_acquire);
    while (row != NULL) { /* ROWS */
        struct metrics_row *next = row->next;
        free(row);
        row = next;
    }
    free(*metrics);
    *metrics = NULL;
}

enum status metrics_attach_thread(struct metrics *metrics)
{
    assert(metrics_row_of_thread == NULL);
    size_t whole = (sizeof(struct metrics_row) + CACHE_LINE - 1) / CACHE_LINE * CACHE_LINE;
    struct metrics_row *row = aligned_alloc(CACHE_LINE, whole);
    if (row == NULL) {
        return STATUS_NO_MEMORY;
    }
    for (size_t i = 0; i < METRIC_COUNT; i++) {
        atomic_init(&row->values[i], 0);
    }
    /* relaxed: the exchange below orders; it ends because a failure means another thread got in */
    row->next = atomic_load_explicit(&metrics->first, memory_order_relaxed);
    while (!atomic_compare_exchange_weak_explicit(&metrics->first, &row->next, row,
            memory_order_release, memory_order_relaxed)) { /* ROWS */
    }
    metrics_row_of_thread = row;
    return STATUS_OK;
}

void metrics_detach_thread(void)
{
    metrics_row_of_thread = NULL;
}

struct metrics_row *metrics_suspend_thread(void)
{
    struct metrics_row *row = metrics_row_of_thread;
    metrics_row_of_thread = NULL;
    return row;
}

void metrics_resume_thread(struct metrics_row *row)
{
    metrics_row_of_thread = row;
}

uint64_t metrics_sum(const struct metrics *metrics, enum metric metric)
{
    /* relaxed loads of the values: a sum may be slightly behind */
    if (metrics == NULL) {
        return atomic_load_explicit(&shared_row.values[metric], memory_order_relaxed);
    }
    uint64_t sum = 0;
    const struct metrics_row *row = atomic_load_explicit(&metrics->first, memory_order_acquire);
    for (; row != NULL; row = row->next) { /* ROWS */
        sum += atomic_load_explicit(&row->values[metric], memory_order_relaxed);
    }
    return sum;
}
