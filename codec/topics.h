/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The names of pubsub topics (static shards) and of content topics, and autosharding, which leads
 * from the one to the other.
 *
 * Thread: any; no state.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/attributes.h"
#include "base/span.h"
#include "base/status.h"

enum {
    SHARD_TOPIC_MAX_BYTES = 32, /* of a formatted shard, NUL included */
    CLUSTER_SHARDS_MAX = 1024   /* by 51/WAKU2-RELAY-SHARDING */
};

struct shard {
    uint16_t cluster;
    uint16_t index;
};

/*
 * "/waku/2/rs/<cluster>/<shard>", both decimal, at most 65535 and without leading zeros, so that two
 * names never mean one shard; anything else is STATUS_BAD_TOPIC.
 */
MUST_USE enum status shard_parse(struct shard *out, struct span topic);

/* NUL-terminated; returns the length without it. */
size_t shard_format(char out[SHARD_TOPIC_MAX_BYTES], struct shard shard);

/* The parts point into the topic that was parsed. */
struct content_topic {
    struct span application;
    struct span version;
    struct span name;
    struct span encoding;
    bool has_generation;
};

/*
 * "/<application>/<version>/<name>/<encoding>", none of them empty, optionally after
 * "/<generation>" in decimal digits. STATUS_UNSUPPORTED for a generation other than 0,
 * STATUS_BAD_TOPIC for any other form. Only autosharding asks for this form: a message may carry
 * any content topic (see waku_message_check).
 */
MUST_USE enum status content_topic_parse(struct content_topic *out, struct span topic);

/*
 * The shard of a content topic in a network of shard_count shards (above 0): the last 8 bytes of
 * SHA-256(application, version), big endian, modulo shard_count. STATUS_SYSTEM when OpenSSL fails.
 */
MUST_USE enum status content_topic_shard(
        uint16_t *out, const struct content_topic *topic, uint16_t shard_count);
