/* SPDX-License-Identifier: MIT */
#pragma once

/* Readings of the process before and after a measured section: heap, resident peak, CPU, copies. */

#include <stdbool.h>
#include <stdint.h>

struct meter {
    uint64_t wall_ns;
    uint64_t cpu_ns;        /* of the whole process */
    double allocated_bytes; /* jemalloc's (0 in builds without it) and of frames in the frame heap */
    double active_bytes;    /* jemalloc's and all that the frame heap holds; so is the next */
    double resident_bytes;
    double held_bytes; /* jemalloc's allocated and all that the frame heap holds */
    double rss_bytes;  /* the kernel's count */
    uint64_t
            wrapped_copies; /* memcpy and memmove of 1 KiB and more; 0 in builds without the wrap */
};

void meter_read(struct meter *out);

/* The kernel's peak of resident memory starts again from what is resident now. */
void meter_reset_peak(void);
double meter_peak_rss_mb(void);

/* True in the build that wraps memcpy and memmove. */
bool meter_counts_copies(void);
