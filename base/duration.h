/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * How long something takes, as a histogram of counters: a DURATION row of base/metrics.def. Every class
 * counts all that is not above its bound, as Prometheus wants it.
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
