/* SPDX-License-Identifier: MIT */
#include "router/time_gaps.h"

#include <string.h>

static void erase(struct time_gaps *gaps, size_t first, size_t count)
{
    memmove(&gaps->gaps[first], &gaps->gaps[first + count],
            (gaps->count - first - count) * sizeof(gaps->gaps[0]));
    gaps->count -= count;
}

static void insert(struct time_gaps *gaps, size_t position, struct sync_gap gap)
{
    memmove(&gaps->gaps[position + 1], &gaps->gaps[position],
            (gaps->count - position) * sizeof(gaps->gaps[0]));
    gaps->gaps[position] = gap;
    gaps->count++;
}

static void join_closest(struct time_gaps *gaps)
{
    size_t closest = 0;
    uint64_t shortest = UINT64_MAX;
    for (size_t i = 0; i + 1 < gaps->count; i++) {
        uint64_t between = (uint64_t)gaps->gaps[i + 1].from_ns - (uint64_t)gaps->gaps[i].to_ns;
        if (between < shortest) {
            shortest = between;
            closest = i;
        }
    }
    gaps->gaps[closest].to_ns = gaps->gaps[closest + 1].to_ns;
    erase(gaps, closest + 1, 1);
}

/* The first gap that ends at or after from_ns. */
static size_t first_reaching(const struct time_gaps *gaps, int64_t from_ns)
{
    size_t i = 0;
    while (i < gaps->count && gaps->gaps[i].to_ns < from_ns) {
        i++;
    }
    return i;
}

void time_gaps_add(struct time_gaps *gaps, struct sync_gap gap)
{
    /* One nanosecond wider on both sides, so that neighbours without anything between them join. */
    int64_t from_ns = gap.from_ns > INT64_MIN ? gap.from_ns - 1 : gap.from_ns;
    int64_t to_ns = gap.to_ns < INT64_MAX ? gap.to_ns + 1 : gap.to_ns;
    size_t first = first_reaching(gaps, from_ns);
    size_t end = first;
    while (end < gaps->count && gaps->gaps[end].from_ns <= to_ns) {
        if (gaps->gaps[end].from_ns < gap.from_ns) {
            gap.from_ns = gaps->gaps[end].from_ns;
        }
        if (gaps->gaps[end].to_ns > gap.to_ns) {
            gap.to_ns = gaps->gaps[end].to_ns;
        }
        end++;
    }
    erase(gaps, first, end - first);
    insert(gaps, first, gap);
    if (gaps->count > TIME_GAPS_MAX) {
        join_closest(gaps);
    }
}

void time_gaps_remove(struct time_gaps *gaps, struct sync_gap gap)
{
    size_t i = first_reaching(gaps, gap.from_ns);
    while (i < gaps->count && gaps->gaps[i].from_ns <= gap.to_ns) {
        struct sync_gap old = gaps->gaps[i];
        erase(gaps, i, 1);
        if (old.from_ns < gap.from_ns) {
            insert(gaps, i++, (struct sync_gap){old.from_ns, gap.from_ns - 1});
        }
        if (old.to_ns > gap.to_ns) {
            insert(gaps, i++, (struct sync_gap){gap.to_ns + 1, old.to_ns});
        }
    }
    if (gaps->count > TIME_GAPS_MAX) {
        join_closest(gaps);
    }
}
