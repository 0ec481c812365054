/* SPDX-License-Identifier: MIT */
#pragma once

/* One row of the fan-out benchmark, and the two shapes of network that it measures. */

#include <stddef.h>
#include <stdint.h>

#include "base/attributes.h"
#include "base/status.h"
#include "node/node.h"

enum {
    FANOUT_CLUSTER = 66,
    FANOUT_WINDOW = 64 /* messages that somebody may still get */
};

#define FANOUT_TOPIC "/waku/2/rs/66/0"

struct fanout_plan {
    size_t payload_bytes;
    size_t receivers;
    uint64_t messages;
    const char *pin;
};

struct fanout_result {
    uint64_t deliveries; /* a message at one receiver, once */
    double seconds;
    double bytes;           /* of messages delivered */
    double cpu_seconds;     /* of the nodes; of light peers, none */
    uint64_t sha256_passes; /* message hashes and ids of the nodes */
    uint64_t arrivals;      /* messages that came in at the nodes, copies too */
    uint64_t decodes;
};

/* One light publisher, one node, light receivers, all on one more thread. */
MUST_USE enum status fanout_star(struct fanout_result *out, const struct fanout_plan *plan);

/* plan->receivers + 1 nodes, each connected to all others, which publish in turn. */
MUST_USE enum status fanout_mesh(struct fanout_result *out, const struct fanout_plan *plan);

/* common.c: a node on a free port of 127.0.0.1 that is connected to the addresses (NULL behind them). */
struct fanout_node {
    struct options *options;
    struct node *node;
    char address[1024];
};
MUST_USE enum status fanout_start_node(struct fanout_node *out, const struct fanout_plan *plan,
        const struct node_hooks *hooks, const char *const addresses[]);
void fanout_stop_node(struct fanout_node *node);

uint64_t fanout_process_cpu_ns(void);

/* What the node has counted is added. */
void fanout_add_counts(
        struct fanout_result *out, const struct node *node, const uint64_t before[METRIC_COUNT]);
void fanout_read_counts(uint64_t out[METRIC_COUNT], const struct node *node);
