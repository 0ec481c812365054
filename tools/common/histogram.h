/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * How often which duration occurred, in buckets that are exact below HISTOGRAM_SUB_BUCKETS and at most
 * 1/128 wide of their value above, so that any percentile of any number of values fits in 58 KiB.
 *
 * Thread: one.
 */

#include <stddef.h>
#include <stdint.h>

enum {
    HISTOGRAM_SUB_BUCKETS = 128,
    HISTOGRAM_BUCKETS = HISTOGRAM_SUB_BUCKETS * 58 /* all of uint64_t */
};

/* All zero is empty. */
struct histogram {
    uint64_t counts[HISTOGRAM_BUCKETS];
    uint64_t count;
    uint64_t max;
    uint64_t min; /* of an empty one: 0 */
};

void histogram_add(struct histogram *histogram, uint64_t value);

/*
 * The least value that at least the share (0 to 1) of all values do not exceed, rounded up to the end
 * of its bucket but never above the largest; 0 when there is none.
 */
uint64_t histogram_at(const struct histogram *histogram, double share);
void histogram_merge(struct histogram *into, const struct histogram *from);
