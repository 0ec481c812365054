/* SPDX-License-Identifier: MIT */
#include "router/traffic.h"

#include <stdlib.h>

#include "base/memory.h"

const uint64_t traffic_size_bounds[TRAFFIC_SIZES] = {
        0, 1000, 3000, 5000, 15000, 50000, 75000, 100000, 125000, 150000, 500000, 700000, 1000000};

static size_t class_of(uint64_t bytes)
{
    size_t class = 0;
    while (class < TRAFFIC_SIZES && bytes > traffic_size_bounds[class]) {
        class ++;
    }
    return class;
}

void traffic_accepted(struct traffic *traffic, const struct topic *topic, uint64_t message_bytes,
        uint64_t payload_bytes)
{
    struct topic_traffic *of_topic = traffic_of(traffic, topic);
    traffic_add(&of_topic->messages, 1);
    traffic_add(&of_topic->payload_bytes, payload_bytes);
    traffic_add(&of_topic->net_bytes, message_bytes + topic->name.length);
    /* relaxed, as in traffic_add */
    if (payload_bytes > atomic_load_explicit(&of_topic->payload_largest, memory_order_relaxed)) {
        atomic_store_explicit(&of_topic->payload_largest, payload_bytes, memory_order_relaxed);
    }
    traffic_add(&traffic->sizes[class_of(payload_bytes)], 1);
}

void traffic_note_offset(struct traffic *traffic, int64_t offset_ns)
{
    /* relaxed: one writer; a reader that sees the count before the offset takes the one before it */
    uint64_t place = atomic_load_explicit(&traffic->offset_count, memory_order_relaxed);
    atomic_store_explicit(
            &traffic->offsets_ns[place % TRAFFIC_OFFSETS], offset_ns, memory_order_relaxed);
    atomic_store_explicit(&traffic->offset_count, place + 1, memory_order_relaxed);
}

static int compare_offsets(const void *a, const void *b)
{
    int64_t left = *(const int64_t *)a;
    int64_t right = *(const int64_t *)b;
    return (left > right) - (left < right);
}

int64_t traffic_median_offset(struct traffic *const traffics[], size_t count, size_t *samples)
{
    *samples = 0;
    int64_t *offsets = memory_allocate(count * TRAFFIC_OFFSETS * sizeof(*offsets));
    if (offsets == NULL) {
        return 0;
    }
    size_t filled = 0;
    for (size_t i = 0; i < count; i++) {
        /* relaxed: readings */
        uint64_t written = atomic_load_explicit(&traffics[i]->offset_count, memory_order_relaxed);
        size_t kept = written < TRAFFIC_OFFSETS ? (size_t)written : TRAFFIC_OFFSETS;
        for (size_t k = 0; k < kept; k++) {
            offsets[filled++] =
                    atomic_load_explicit(&traffics[i]->offsets_ns[k], memory_order_relaxed);
        }
    }
    int64_t median = 0;
    if (filled > 0) {
        qsort(offsets, filled, sizeof(*offsets), compare_offsets);
        median = offsets[(filled - 1) / 2];
    }
    memory_free(offsets);
    *samples = filled;
    return median;
}
