/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Everything that metrics, health and the live page show of a running node, read at one moment. Each
 * number is right by itself; two of them may be a little apart in time.
 *
 * Ownership: names are the node's and live as long as it.
 * Thread:    any, between node_create and node_destroy. Nobody is waited for.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/attributes.h"
#include "base/ledger.h"
#include "base/metrics.h"
#include "base/status.h"
#include "net/peer_manager/peer_protocols.h"
#include "node/node.h"
#include "router/traffic.h"

enum {
    READING_THREADS_MAX = 128,
    READING_QUEUES_MAX = 512,
    READING_CPUS_SIZE = 24
};

struct thread_reading {
    const char *name;
    enum node_role role;
    bool is_pinned;               /* --pin gives its role processors of its own */
    char cpus[READING_CPUS_SIZE]; /* "0", "2-3"; cut when it is longer */
    uint64_t busy_ns;             /* in turns that had work, since the start */
    uint64_t total_ns;
};

struct queue_reading {
    const char *from; /* roles, as in node/pipeline.def */
    const char *to;
    const char *kind;
    size_t lane;
    size_t index; /* of the taker, where there are several */
    uint64_t depth;
    uint64_t capacity; /* 0: bounded in bytes only */
    uint64_t high_water;
};

struct topic_reading {
    const char *name; /* "other" for all topics beyond TRAFFIC_TOPICS_MAX - 1 */
    bool is_subscribed;
    uint64_t messages;
    uint64_t payload_bytes;
    uint64_t payload_largest;
    uint64_t gross_bytes;
    uint64_t net_bytes;
    uint64_t sent_bytes;
    uint64_t peers; /* as of the last heartbeat */
    uint64_t mesh_peers;
};

struct relay_reading {
    bool is_there;
    uint64_t peers;      /* connections that speak relay */
    uint64_t mesh_peers; /* in all topics together */
    uint64_t fanout_peers;
    uint64_t topic_peers; /* subscriptions of peers */
    uint64_t topics;      /* that the node takes part in */
    uint64_t topics_low;  /* of them, with a mesh of at least one and less than D_low peers */
    uint64_t topics_healthy;
    uint64_t cached;
    uint64_t cached_bytes;
    uint64_t outbound_messages; /* that wait for peers */
    uint64_t outbound_bytes;
    uint64_t outbound_limit;
    size_t mesh_low; /* D_low */
};

struct archive_reading {
    bool is_there;
    const char *engine;
    const char *address;
    enum status health;
    uint64_t failing_ns;          /* for how long; 0: not failing */
    uint64_t held;                /* messages received and not stored yet: its lag */
    uint64_t spilled;             /* of them, in the spill file */
    uint64_t ring_bytes;          /* of the messages in the ring */
    struct archive_totals totals; /* as of a second ago; message_bytes is not there */
};

struct node_reading {
    int64_t wall_ns;
    uint64_t monotonic_ns;
    uint64_t uptime_ns; /* since node_start; 0 before */
    bool is_running;
    uint64_t metrics[METRIC_COUNT];
    uint64_t held[LEDGER_STAGES];

    size_t thread_count;
    struct thread_reading threads[READING_THREADS_MAX];
    size_t queue_count;
    struct queue_reading queues[READING_QUEUES_MAX];
    size_t topic_count;
    struct topic_reading topics[TRAFFIC_TOPICS_MAX];
    uint64_t sizes[TRAFFIC_SIZES + 1];
    int64_t offset_median_ns;
    size_t offset_samples;

    uint64_t budget_used;
    uint64_t budget_limit;
    uint64_t budget_peak;
    uint64_t filter_bytes; /* of messages that wait for a filter thread */
    uint64_t event_bytes;
    uint64_t connections;
    uint64_t protocol_peers[PEER_PROTOCOLS_COUNTED][2]; /* net/peer_manager/peer_protocols.h */
    uint64_t upgrades;
    uint64_t filter_subscribers;
    uint64_t sync_ids;      /* in the set of store-sync */
    uint64_t subscriptions; /* of this node to pubsub topics, ever */
    uint64_t unsubscriptions;
    uint64_t unique_peers; /* that were ever connected; see node/live.h */
    struct relay_reading relay;
    struct archive_reading archive;
};

/* *out is large; not on the stack of a thread of the node. */
void node_read(struct node *node, struct node_reading *out);

/* Over all reasons. */
uint64_t reading_dropped(const struct node_reading *reading, enum ledger_stage stage);
uint64_t reading_sum(
        const struct node_reading *reading, enum ledger_stage stage, enum ledger_outcome outcome);
