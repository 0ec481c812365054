/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Publishing through another node (19/WAKU2-LIGHTPUSH), for the REST API of a node: a push goes to
 * --lightpushnode, or to a connected peer that says it serves lightpush.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/attributes.h"
#include "base/span.h"
#include "base/status.h"
#include "net/identity/multiaddr.h"
#include "net/protocols/lightpush_message.h"
#include "node/node.h"

enum {
    NODE_PUSH_TIMEOUT_MS = 5000,
    NODE_PUSH_DESCRIPTION_SIZE = LIGHTPUSH_DESCRIPTION_MAX + 1
};

/* All is copied. */
struct node_push {
    enum lightpush_version version;
    struct span pubsub_topic;     /* empty: that of the content topic's shard (autosharding) */
    struct span message;          /* a serialised WakuMessage */
    const struct multiaddr *peer; /* with /p2p; NULL: --lightpushnode, else who serves */
    uint64_t timeout_ms;          /* for all of it; 0: NODE_PUSH_TIMEOUT_MS */
};

/*
 * What came of it, in the status codes of lightpush v3, as the reference gives them to its REST
 * clients:
 *
 *   200        published to relay_peer_count peers (legacy: it does not say how many)
 *   4xx, 5xx   the service's own code; a legacy service has 429 and, for all else, 503
 *   420        no pubsub topic, and the content topic has no shard
 *   500        the answer is malformed or belongs to another request
 *   503        no service peer, or no answer in time
 *   505        the service peer cannot be reached, or had nobody to relay to
 */
struct node_push_outcome {
    uint32_t code;
    bool has_relay_peer_count;
    uint32_t relay_peer_count;
    char description[NODE_PUSH_DESCRIPTION_SIZE]; /* "" when there is none; longer ones are cut */
};

/* Thread: an io thread; must not block. outcome is valid in the call. */
typedef void node_pushed(void *context, const struct node_push_outcome *outcome);

/*
 * done comes exactly once, unless the call itself fails: STATUS_NOT_FOUND: the node has no network;
 * STATUS_NO_MEMORY; STATUS_BUSY: as many pushes are under way as --lightpush-limit allows.
 * Thread: any, between node_start and node_stop.
 */
MUST_USE enum status node_push(
        struct node *node, const struct node_push *push, node_pushed *done, void *context);

/* As node_push, and waits. Not on a thread of the node's own. */
MUST_USE enum status node_push_and_wait(
        struct node *node, const struct node_push *push, struct node_push_outcome *outcome);
