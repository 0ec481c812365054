/* SPDX-License-Identifier: MIT */
#pragma once

/* CPU time and memory of a process on this machine, from /proc, and which one listens on a port. */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct process_reading {
    uint64_t cpu_ns; /* user and system, of all its threads */
    uint64_t rss_bytes;
    uint64_t peak_rss_bytes;
    uint64_t threads;
};

/* False: there is no such process, or it may not be looked at. */
bool process_read(struct process_reading *out, pid_t pid);

/* 0: nobody listens on that TCP port, or its process may not be looked at. */
pid_t process_find_listener(uint16_t port);
