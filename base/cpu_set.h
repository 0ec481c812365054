/* SPDX-License-Identifier: MIT */
#pragma once

/* A set of processors as text ("0", "2-3", "0,4-7") and as the kernel's affinity mask. */

#include <sched.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/attributes.h"
#include "base/status.h"

struct cpu_set {
    cpu_set_t mask;
};

/* STATUS_BAD_ARGUMENT when text is no list of processor numbers below CPU_SETSIZE. */
MUST_USE enum status cpu_set_parse(struct cpu_set *out, const char *text);

/* The processors this process may run on. */
MUST_USE enum status cpu_set_allowed(struct cpu_set *out);

bool cpu_set_contains(const struct cpu_set *set, int cpu);
void cpu_set_add(struct cpu_set *set, int cpu);
void cpu_set_clear(struct cpu_set *set);
int cpu_set_count(const struct cpu_set *set);

/* The first member from start on, or -1. */
int cpu_set_next(const struct cpu_set *set, int start);

/* True when every member of set is one of allowed; otherwise *missing is the first that is not. */
bool cpu_set_within(const struct cpu_set *set, const struct cpu_set *allowed, int *missing);

/* Writes the shortest list form; capacity 0 is not allowed. */
void cpu_set_format(char *out, size_t capacity, const struct cpu_set *set);
