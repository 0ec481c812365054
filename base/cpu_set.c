/* SPDX-License-Identifier: MIT */
#include "base/cpu_set.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>

static bool parse_number(int *out, const char **cursor)
{
    if (!isdigit((unsigned char)**cursor)) {
        return false;
    }
    char *end;
    unsigned long value = strtoul(*cursor, &end, 10);
    if (value >= CPU_SETSIZE) {
        return false;
    }
    *out = (int)value;
    *cursor = end;
    return true;
}

/* "3" or "3-5" */
static bool parse_range(struct cpu_set *set, const char **cursor)
{
    int first;
    if (!parse_number(&first, cursor)) {
        return false;
    }
    int last = first;
    if (**cursor == '-') {
        (*cursor)++;
        if (!parse_number(&last, cursor) || last < first) {
            return false;
        }
    }
    for (int cpu = first; cpu <= last; cpu++) {
        cpu_set_add(set, cpu);
    }
    return true;
}

enum status cpu_set_parse(struct cpu_set *out, const char *text)
{
    struct cpu_set set;
    cpu_set_clear(&set);
    const char *cursor = text;
    for (;;) {
        if (!parse_range(&set, &cursor)) {
            return STATUS_BAD_ARGUMENT;
        }
        if (*cursor == '\0') {
            *out = set;
            return STATUS_OK;
        }
        if (*cursor++ != ',') {
            return STATUS_BAD_ARGUMENT;
        }
    }
}

enum status cpu_set_allowed(struct cpu_set *out)
{
    return sched_getaffinity(0, sizeof(out->mask), &out->mask) == 0 ? STATUS_OK : STATUS_SYSTEM;
}

bool cpu_set_contains(const struct cpu_set *set, int cpu)
{
    return cpu >= 0 && cpu < CPU_SETSIZE && CPU_ISSET((size_t)cpu, &set->mask);
}

void cpu_set_add(struct cpu_set *set, int cpu)
{
    CPU_SET((size_t)cpu, &set->mask);
}

void cpu_set_clear(struct cpu_set *set)
{
    CPU_ZERO(&set->mask);
}

int cpu_set_count(const struct cpu_set *set)
{
    return CPU_COUNT(&set->mask);
}

int cpu_set_next(const struct cpu_set *set, int start)
{
    for (int cpu = start; cpu < CPU_SETSIZE; cpu++) {
        if (cpu_set_contains(set, cpu)) {
            return cpu;
        }
    }
    return -1;
}

bool cpu_set_within(const struct cpu_set *set, const struct cpu_set *allowed, int *missing)
{
    for (int cpu = cpu_set_next(set, 0); cpu >= 0; cpu = cpu_set_next(set, cpu + 1)) {
        if (!cpu_set_contains(allowed, cpu)) {
            *missing = cpu;
            return false;
        }
    }
    return true;
}

void cpu_set_format(char *out, size_t capacity, const struct cpu_set *set)
{
    size_t used = 0;
    out[0] = '\0';
    for (int cpu = cpu_set_next(set, 0); cpu >= 0 && used < capacity;
            cpu = cpu_set_next(set, cpu + 1)) {
        int last = cpu;
        while (cpu_set_contains(set, last + 1)) {
            last++;
        }
        const char *comma = used > 0 ? "," : "";
        int written = last > cpu
                              ? snprintf(out + used, capacity - used, "%s%d-%d", comma, cpu, last)
                              : snprintf(out + used, capacity - used, "%s%d", comma, cpu);
        used += (size_t)written;
        cpu = last;
    }
}
