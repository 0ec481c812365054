/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The filter protocol of a running node (12/WAKU2-FILTER), for its REST API and its admin interface:
 * as a client, subscribing with a service peer and taking what it pushes; as a server, who is
 * subscribed with us.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/attributes.h"
#include "base/span.h"
#include "base/status.h"
#include "net/identity/multiaddr.h"
#include "net/identity/peer_id.h"
#include "node/node.h"

/* As a client. */

enum node_filter_verb {
    NODE_FILTER_PING, /* SUBSCRIBER_PING: are we subscribed; keeps the subscription alive */
    NODE_FILTER_SUBSCRIBE,
    NODE_FILTER_UNSUBSCRIBE,
    NODE_FILTER_UNSUBSCRIBE_ALL
};

/* All is copied. */
struct node_filter_request {
    enum node_filter_verb verb;
    struct span pubsub_topic; /* empty: that of each content topic's shard (autosharding) */
    const struct span *content_topics; /* these three are for SUBSCRIBE and UNSUBSCRIBE */
    size_t content_topic_count;
    const struct multiaddr *peer; /* with /p2p; NULL: --filternode */
    uint64_t timeout_ms;          /* for connecting, and for each answer; 0: 5 s */
};

/*
 * What came of it. code is the service's status code: 200, 400, 404, 429, 503; or, as the reference
 * says it to its REST clients: 300 for an answer that makes no sense or none in time, 400 for a
 * request that no service would take, 503 without a service peer, 504 when it cannot be reached.
 * description is its text, never NULL. Thread: an io thread; must not block.
 */
typedef void node_filter_answered(void *context, uint32_t code, const char *description);

/*
 * Connects when there is no connection to the peer yet. answered comes exactly once, unless the call
 * itself fails: STATUS_NOT_FOUND: the node has no network; STATUS_NO_MEMORY. Where the content topics
 * belong to several shards it is one request each, and the last failure is what is told.
 * Thread: any, between node_start and node_stop.
 */
MUST_USE enum status node_filter_ask(struct node *node, const struct node_filter_request *request,
        node_filter_answered *answered, void *context);

/* As node_filter_ask, and waits. Not on a thread of the node's own. */
enum {
    NODE_FILTER_DESCRIPTION_SIZE = 256 /* with its final zero; longer ones are cut */
};
struct node_filter_answer {
    uint32_t code;
    char description[NODE_FILTER_DESCRIPTION_SIZE];
};
MUST_USE enum status node_filter_ask_and_wait(struct node *node,
        const struct node_filter_request *request, struct node_filter_answer *answer);

/*
 * A message that a service peer pushed: in its order, from peers that we have subscribed with, a
 * well-formed WakuMessage. The spans are valid in the call only. Thread: an io thread, several at a
 * time where several peers push; must not block.
 */
typedef void node_filter_received(void *context, struct span pubsub_topic, struct span message);

/* Once, at any time. What is pushed before there is a receiver is counted and thrown away. */
void node_filter_set_receiver(struct node *node, node_filter_received *received, void *context);

/* As a server. */

/* What became of the last push to a subscriber. */
enum node_filter_push_result {
    NODE_FILTER_PUSH_NONE,         /* there was none yet */
    NODE_FILTER_PUSH_SENT,         /* given to its stream */
    NODE_FILTER_PUSH_WAITING,      /* its queue holds it */
    NODE_FILTER_PUSH_DROPPED,      /* its queue was full, or it waited too long */
    NODE_FILTER_PUSH_NOT_CONNECTED /* it has no connection to us */
};

struct node_filter_criterion {
    struct span pubsub_topic;
    struct span content_topic;
};

struct node_filter_subscriber {
    struct peer_id peer;
    bool is_connected;
    uint64_t age_ms;    /* since it has subscribed */
    uint64_t silent_ms; /* since it was heard of: it is dropped at filter-subscription-timeout */
    uint64_t queue_bytes;
    uint64_t queue_messages;
    uint64_t sent;    /* messages, since it has subscribed */
    uint64_t dropped; /* messages it did not get, not connected included */
    enum node_filter_push_result last_push;
    uint64_t last_push_ms; /* ago; 0 when there was none */
    size_t criterion_count;
    const struct node_filter_criterion *criteria;
};

/* "sent", "not_connected", ... */
const char *BORROWED node_filter_push_result_text(enum node_filter_push_result result);

/* Where a walk over all subscribers stands; all zero before the first. */
struct node_filter_cursor {
    size_t thread;
    uint64_t id;
};

/*
 * The next subscriber, the caller's; *out NULL behind the last. Each call asks a filter thread for one
 * and waits for it, so that a large table holds nobody up; who comes or goes meanwhile is seen or not.
 * STATUS_NOT_FOUND: the node serves no filter. Thread: any but the node's own, between node_start and
 * node_stop.
 */
MUST_USE enum status node_filter_next_subscriber(
        struct node *node, struct node_filter_cursor *cursor, struct node_filter_subscriber **out);
void node_filter_subscriber_destroy(struct node_filter_subscriber **subscriber);

/* Thread: any. */
size_t node_filter_subscriber_count(const struct node *node);
