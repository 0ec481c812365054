/* SPDX-License-Identifier: MIT */
#pragma once

/* The two clocks: wall time stamps messages, monotonic time measures every interval. */

#include <stdint.h>

enum {
    NANOSECONDS_PER_MICROSECOND = 1000,
    NANOSECONDS_PER_MILLISECOND = 1000000,
    NANOSECONDS_PER_SECOND = 1000000000
};

/* Nanoseconds since 1970. May step in both directions. */
int64_t clock_wall_ns(void);

/* Nanoseconds since an arbitrary start; never goes back. */
uint64_t clock_monotonic_ns(void);

/* CPU time used by the calling thread, nanoseconds. */
uint64_t clock_thread_cpu_ns(void);
