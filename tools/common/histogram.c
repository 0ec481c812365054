/* SPDX-License-Identifier: MIT */
#include "tools/common/histogram.h"

enum {
    SUB_BITS = 7 /* 2 to that power is HISTOGRAM_SUB_BUCKETS */
};

/* How far a value is shifted so that its SUB_BITS + 1 leading bits remain. */
static unsigned shift_of(uint64_t value)
{
    unsigned bits = value == 0 ? 0 : 64U - (unsigned)__builtin_clzll(value);
    return bits > SUB_BITS + 1 ? bits - (SUB_BITS + 1) : 0;
}

/* The leading bit of what remains is set whenever there is a shift: buckets follow each other. */
static size_t bucket_of(uint64_t value)
{
    unsigned shift = shift_of(value);
    return (size_t)(value >> shift) + (size_t)shift * HISTOGRAM_SUB_BUCKETS;
}

static uint64_t last_of(size_t bucket)
{
    if (bucket / 2 < HISTOGRAM_SUB_BUCKETS) {
        return bucket;
    }
    unsigned shift = (unsigned)(bucket / HISTOGRAM_SUB_BUCKETS) - 1;
    uint64_t leading = bucket - (size_t)shift * HISTOGRAM_SUB_BUCKETS;
    return (leading << shift) + ((1ULL << shift) - 1);
}

void histogram_add(struct histogram *histogram, uint64_t value)
{
    histogram->counts[bucket_of(value)]++;
    if (histogram->count == 0 || value < histogram->min) {
        histogram->min = value;
    }
    if (value > histogram->max) {
        histogram->max = value;
    }
    histogram->count++;
}

uint64_t histogram_at(const struct histogram *histogram, double share)
{
    double wanted = share * (double)histogram->count;
    uint64_t below = 0;
    if (histogram->count == 0) {
        return 0;
    }
    for (size_t i = 0; i < HISTOGRAM_BUCKETS; i++) {
        below += histogram->counts[i];
        if (below > 0 && (double)below >= wanted) {
            uint64_t last = last_of(i);
            return last < histogram->max ? last : histogram->max;
        }
    }
    return histogram->max;
}

void histogram_merge(struct histogram *into, const struct histogram *from)
{
    for (size_t i = 0; i < HISTOGRAM_BUCKETS; i++) {
        into->counts[i] += from->counts[i];
    }
    if (from->count > 0 && (into->count == 0 || from->min < into->min)) {
        into->min = from->min;
    }
    into->max = from->max > into->max ? from->max : into->max;
    into->count += from->count;
}
