/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Which pubsub topics the connected peers are subscribed to, by name: also those that this node takes
 * no part in (yet), so that a topic that is joined later finds its peers.
 *
 * Bounded by the topics a peer may name; a name that no peer has any more is forgotten.
 * Thread: one (lane 0's).
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/attributes.h"
#include "base/span.h"
#include "base/status.h"

struct peer_topics;

/* topics_per_peer_max: 256 by default (PEER_TOPICS_MAX); those past it are refused. */
enum {
    PEER_TOPICS_MAX = 256
};
MUST_USE enum status peer_topics_create(struct peer_topics **out, size_t topics_per_peer_max);
void peer_topics_destroy(struct peer_topics **topics);

/*
 * STATUS_OK: it was not subscribed before. STATUS_ALREADY_THERE. STATUS_LIMIT_REACHED: it has as many
 * as it may have. STATUS_BAD_TOPIC: no name, or a longer one than any topic here may have.
 */
MUST_USE enum status peer_topics_subscribe(
        struct peer_topics *topics, uint64_t peer, struct span name);

/* False when it was not subscribed. */
bool peer_topics_unsubscribe(struct peer_topics *topics, uint64_t peer, struct span name);

/* The peer has left. */
void peer_topics_drop(struct peer_topics *topics, uint64_t peer);

/* The peers subscribed to name, in no particular order; good until the next change. */
struct peer_list_view {
    const uint64_t *peers;
    size_t count;
};
struct peer_list_view peer_topics_find(const struct peer_topics *topics, struct span name);

/* The i-th topic of a peer, from 0; false past the last. */
MUST_USE bool peer_topics_at(
        const struct peer_topics *topics, uint64_t peer, size_t i, struct span *out);

size_t peer_topics_name_count(const struct peer_topics *topics);
size_t peer_topics_peer_count(const struct peer_topics *topics);
