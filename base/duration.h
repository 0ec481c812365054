/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Histograms of counters: how long something takes (a DURATION row of base/metrics.def), or how many of
 * something there are. Every class counts all that is not above its bound, as Prometheus wants it.
 *
 * Thread: any (see base/metrics.h).
 */

#include <stddef.h>
#include <stdint.h>

#include "base/metrics.h"

enum {
    DURATION_CLASSES = METRIC_COUNT_OF_DURATION
};

/* Upper bounds in nanoseconds: the reference's; what is above the last is in the count only. */
extern const uint64_t duration_bounds_ns[DURATION_CLASSES];

/* first: METRIC_<id>_LE_5MS. count events that took each_ns each. */
void duration_observe(enum metric first, uint64_t each_ns, uint64_t count);

/* The same for one number: first is followed by as many classes as there are bounds, count and sum. */
void histogram_observe(
        enum metric first, const uint64_t *bounds, size_t bound_count, uint64_t value);
