/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * What the system says about this process, under the names that Prometheus clients use.
 *
 * Thread: any.
 */

#include <stdint.h>

struct process_figures {
    double cpu_seconds;
    double start_time_seconds; /* since 1970 */
    uint64_t virtual_bytes;
    uint64_t resident_bytes;
    uint64_t open_fds;
    uint64_t max_fds;
    uint64_t threads;
};

/* What cannot be read is 0. */
void process_figures_read(struct process_figures *out);
