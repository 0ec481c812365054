/* SPDX-License-Identifier: MIT */
#pragma once

/* What a network is made of, read from options. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/attributes.h"
#include "base/options.h"
#include "base/status.h"
#include "net/identity/identity.h"
#include "net/identity/multiaddr.h"
#include "net/protocols/metadata.h"
#include "net/switch/switch_options.h"
#include "node/store_settings.h"
#include "router/rate_limit.h"

struct node_error;

enum {
    NETWORK_LISTENERS_MAX = 2,
    NETWORK_EXTERNAL_MAX = 16,
    NETWORK_STATIC_NODES_MAX = 256
};

struct network_settings {
    struct identity *identity; /* the caller's to destroy */
    size_t io_threads;
    struct multiaddr listen[NETWORK_LISTENERS_MAX];
    size_t listen_count;
    const char *certificate_file; /* NULL: no TLS; like all texts it belongs to the options */
    const char *certificate_key_file;

    bool has_external_host; /* announced in place of the address listened on */
    struct multiaddr_endpoint external_host;
    struct multiaddr external[NETWORK_EXTERNAL_MAX];
    size_t external_count;
    bool only_external;

    struct multiaddr static_nodes[NETWORK_STATIC_NODES_MAX];
    size_t static_node_count;

    const char *relay_service_ratio;
    size_t peer_store_capacity;
    const char *peer_file; /* NULL: peers are not kept */

    struct switch_options limits; /* only what bounds connections is set */
    const char *agent;            /* NULL: the default */

    uint32_t cluster_id;
    uint32_t shards[METADATA_SHARDS_MAX];
    size_t shard_count;
    bool has_relay;
    size_t message_bytes_max;
    size_t queue_bytes_max;
    size_t outbound_bytes_max;
    uint64_t message_age_max_ms;
    size_t peer_bytes_max; /* 0: the relay's default */
    size_t peer_events_max;

    uint16_t network_shards; /* 0: static sharding */
    struct rate_limits rates;
    bool has_push_service;
    struct multiaddr push_service;
    bool has_lightpush;
    size_t pushes_max;
    size_t connection_pushes_max;
    bool has_store;
    size_t queries_max;
    size_t connection_queries_max;
    size_t answer_bytes_max;
    size_t answers_bytes_max;
    uint64_t query_timeout_ms;
    struct store_settings stores;
    uint64_t query_range_ms;
    bool has_filter_service;
    struct multiaddr filter_service; /* of ours as a client */
    bool has_filter;
    size_t filter_queue_bytes_max;
    uint64_t filter_queue_age_ms;
    uint64_t filter_stuck_ms;
    size_t filter_topics_per_request;
    size_t filter_peers_max;
    size_t filter_connection_requests_max;
    size_t filter_requests_max;
};

/* Whether it can be read, without a key or a file being made. */
MUST_USE enum status network_settings_check(
        const struct options *options, struct node_error *error);

/* On failure there is nothing to destroy. */
MUST_USE enum status network_settings_read(
        struct network_settings *out, const struct options *options, struct node_error *error);
