/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * /vac/waku/metadata/1.0.0, both ways: which cluster and which shards a node belongs to.
 *
 * Every request is answered, since other nodes leave one that does not answer. Only a peer that names
 * another cluster is disconnected: one that answers nothing, rubbish, or no shards is kept.
 *
 * Lifetime:  create before the loops run, destroy after the switch.
 * Thread:    metadata_ask on the connection's io thread, metadata_set_shard and _cluster on any.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/attributes.h"
#include "base/span.h"
#include "base/status.h"
#include "net/switch/switch.h"

#define METADATA_PROTOCOL_ID "/vac/waku/metadata/1.0.0"

enum {
    METADATA_MESSAGE_MAX = 16 * 1024,
    METADATA_SHARDS_MAX = 1024
};

/* What a peer said of itself. */
struct metadata_message {
    bool has_cluster;
    uint32_t cluster_id;
    size_t shard_count; /* what comes after METADATA_SHARDS_MAX is checked and passed over */
    uint16_t shards[METADATA_SHARDS_MAX];
};

struct metadata_options {
    struct net_switch *BORROWED net_switch;
    uint32_t cluster_id;
    const uint32_t *shards; /* copied */
    size_t shard_count;     /* at most METADATA_SHARDS_MAX */
    /* A peer has told, asked or asking. May be NULL. On its io thread; said is valid in the call. */
    void (*told)(void *context, struct connection *connection, const struct metadata_message *said);
    void *context;
};

struct metadata;

MUST_USE enum status metadata_create(struct metadata **out, const struct metadata_options *options);
void metadata_destroy(struct metadata **metadata);

/* The shard is said to others from now on, or no longer. More than METADATA_SHARDS_MAX are not said. */
void metadata_set_shard(struct metadata *metadata, uint32_t shard, bool takes_part);
uint32_t metadata_cluster(const struct metadata *metadata);

/*
 * Asks the peer, which has the protocol. Does nothing for a node without shards: js-waku takes such a
 * question for a reason to ignore us.
 */
void metadata_ask(struct metadata *metadata, struct connection *connection);

/* STATUS_BAD_FIELD and others when it is no such message: numbers beyond their range are none. */
MUST_USE enum status metadata_message_read(struct metadata_message *out, struct span message);
