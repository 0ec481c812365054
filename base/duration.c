/* SPDX-License-Identifier: MIT */
#include "base/duration.h"

#include "base/clock.h"

#define MS(number) ((number) * (uint64_t)NANOSECONDS_PER_MILLISECOND)

const uint64_t duration_bounds_ns[DURATION_CLASSES] = {MS(5), MS(10), MS(25), MS(50), MS(75),
        MS(100), MS(250), MS(500), MS(750), MS(1000), MS(2500), MS(5000), MS(7500), MS(10000),
        MS(15000), MS(20000), MS(30000)};

void histogram_observe(
        enum metric first, const uint64_t *bounds, size_t bound_count, uint64_t value)
{
    for (size_t i = bound_count; i > 0 && value <= bounds[i - 1]; i--) {
        metrics_add((enum metric)((size_t)first + i - 1), 1);
    }
    metrics_add((enum metric)((size_t)first + bound_count), 1);
    metrics_add((enum metric)((size_t)first + bound_count + 1), value);
}

void duration_observe(enum metric first, uint64_t each_ns, uint64_t count)
{
    for (size_t i = DURATION_CLASSES; i > 0 && each_ns <= duration_bounds_ns[i - 1]; i--) {
        metrics_add((enum metric)((size_t)first + i - 1), count);
    }
    metrics_add((enum metric)((size_t)first + DURATION_CLASSES), count);
    metrics_add((enum metric)((size_t)first + DURATION_CLASSES + 1),
            each_ns * count / NANOSECONDS_PER_MICROSECOND);
}
