/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The two kinds of processes of the filter benchmark: a node with a publisher, and subscribers, many a
 * process. They speak by memory that all see and by a pipe that carries the node's address.
 */

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/span.h"
#include "tools/common/histogram.h"

#define FILTER_BENCH_PUBSUB "/waku/2/rs/16/0"

enum {
    FILTER_BENCH_GROUPS = 2, /* those that read, and those that are stopped */
    FILTER_BENCH_TOPIC_BYTES = 48,
    FILTER_BENCH_EACH_MAX = 100, /* content topics of a subscriber: what one request may ask for */
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
    struct histogram first_ns; /* of these the first ones of each subscriber */
    struct histogram turns_ns; /* of their thread */
};

struct filter_bench_shared {
    struct filter_bench_group groups[FILTER_BENCH_GROUPS];
};

/* Which subscribers a process has: from first on, count, on each content topics of all topics. */
struct filter_bench_part {
    size_t first;
    size_t count;
    size_t each;
    size_t topics;
};

/* The content topic with that number. */
void filter_bench_topic(char out[FILTER_BENCH_TOPIC_BYTES], size_t number);

/* The content topic that subscriber has in that place, below each. */
size_t filter_bench_topic_of(const struct filter_bench_part *part, size_t subscriber, size_t place);

/*
 * Connects the subscribers of a part to the address that comes by descriptor; returns when it is told
 * that it is over.
 */
void filter_bench_subscribe(
        struct filter_bench_group *group, int descriptor, const struct filter_bench_part *part);

/*
 * How old messages were when the node had sealed them for the socket, since publishing: written by its
 * io thread, once that is told to.
 */
extern atomic_bool filter_bench_is_measuring;
extern struct histogram filter_bench_written_ns;

/* The time of publishing that a message of this benchmark carries; false: it is none. */
bool filter_bench_read_head(uint64_t out[2], struct span *content_topic, struct span message);
