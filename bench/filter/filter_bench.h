/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The two kinds of processes of the filter benchmark: a node with a publisher, and subscribers, many a
 * process. They speak by memory that all see and by a pipe that carries the node's address.
 */

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "tools/common/histogram.h"

#define FILTER_BENCH_PUBSUB "/waku/2/rs/16/0"

enum {
    FILTER_BENCH_GROUPS = 2, /* those that read, and those that are stopped */
    FILTER_BENCH_TOPIC_BYTES = 48,
    FILTER_BENCH_HEAD_BYTES = 16 /* of a payload: number and monotonic time of publishing */
};

/* What one process of subscribers tells, and is told. */
struct filter_bench_group {
    _Atomic size_t subscribed;
    _Atomic size_t received;
    _Atomic size_t out_of_order;
    _Atomic size_t lost; /* connections */
    atomic_bool is_over;
    atomic_bool is_done; /* latencies are complete */
    struct histogram latencies_ns;
};

struct filter_bench_shared {
    struct filter_bench_group groups[FILTER_BENCH_GROUPS];
};

/* The content topic with that number. */
void filter_bench_topic(char out[FILTER_BENCH_TOPIC_BYTES], size_t number);

/*
 * Connects count subscribers to the address that comes by descriptor, each to the content topic of its
 * position (from first on) modulo topics; returns when it is told that it is over.
 */
void filter_bench_subscribe(struct filter_bench_group *group, int descriptor, size_t first,
        size_t count, size_t topics);
