/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The filter service (12/WAKU2-FILTER): peers subscribe to content topics, and every message of theirs
 * is pushed to them as it was received, behind a small header, on one long-lived stream a peer.
 *
 *   200   done
 *   400   malformed or too large request; no request id; an unknown type; no content topics, too many,
 *         or one that is empty or longer than 1,024 bytes; no pubsub topic and none to be had from a
 *         content topic; a pubsub topic that is of another cluster, beyond the network's shards, or no
 *         shard and none that this node takes part in
 *   404   no subscription (ping, unsubscribe, unsubscribe all)
 *   429   the peer has made as many requests as it may, or has as many under way
 *   503   a limit of the subscription table, too many requests of all peers, or no memory
 *
 * A shard of our network is taken even while the node takes no part in it: it may join it later, and
 * pushes begin then.
 *
 * A subscriber is its peer id: it may come back on another connection and goes on getting messages.
 * What comes while it has none is dropped, counted. Pushes keep the order in which the filter thread
 * has got the messages. A peer's queue is bounded in bytes and age and its oldest messages go first; a
 * peer that takes nothing for the stuck timeout while something waits loses its subscription.
 *
 * A client that ends its push stream soon after a message is served with a stream a message from then
 * on, one at a time, on that connection. What was written to the stream that it ended, behind the first
 * message, is pushed once more.
 *
 * Lifetime: create before the loops run, destroy after the switch and before the loops, when no thread
 *           runs any more that posts and all subscribers have been released.
 * Thread:   create and destroy as above; pending and held on any; the port and release as they say.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/attributes.h"
#include "base/status.h"
#include "net/identity/peer_id.h"
#include "net/switch/switch.h"
#include "router/filter_link.h"
#include "router/intake.h"
#include "router/rate_limit.h"

struct filter;
struct filter_subscriber;
struct relay_budget;

/* What is 0 has no default: all but rate and network_shards are to be set. */
struct filter_client;

struct filter_options {
    struct net_switch *BORROWED net_switch;
    struct io_loop *const *loops; /* the switch's; the array is not kept */
    size_t loop_count;
    const struct intake *BORROWED intake; /* for its topics; complete before the loops run */
    const struct filter_link *BORROWED filter_link; /* likewise */
    struct relay_budget *BORROWED outbound;
    size_t queue_bytes_max; /* messages that wait for one subscriber */
    uint64_t queue_age_max_ms;
    uint64_t stuck_timeout_ms;
    size_t topics_per_request_max;
    size_t peers_max; /* of the tables; for the description of 503 */
    size_t connection_requests_max;
    size_t requests_max;
    struct rate_limit rate; /* of one peer */
    uint16_t cluster_id;
    uint16_t network_shards; /* for autosharding; 0: a request names its topic */
    const struct filter_client *BORROWED
            client; /* takes pushes that come on our push streams; NULL: no */
};

MUST_USE enum status filter_create(struct filter **out, const struct filter_options *options);
void filter_destroy(struct filter **filter);

/* What the filter threads push by; good as long as filter. Thread: theirs. */
struct filter_port filter_port(struct filter *filter);

/* release_context of the subscription tables; NULL is passed over. Thread: any. */
void filter_release_subscriber(void *subscriber);

/* Requests that are not over. */
size_t filter_pending(struct filter *filter);

/* Messages between the filter threads and the peers' streams: held of the ledger FILTER_OUT. */
uint64_t filter_held(const struct filter *filter);

enum filter_push_result {
    FILTER_PUSH_NONE,
    FILTER_PUSH_SENT,
    FILTER_PUSH_WAITING,
    FILTER_PUSH_DROPPED,
    FILTER_PUSH_NOT_CONNECTED
};

/* A subscriber as it is now. */
struct filter_subscriber_state {
    struct peer_id peer;
    uint64_t connection;    /* 0: none */
    uint64_t subscribed_ns; /* monotonic, as are all */
    uint64_t queue_bytes;
    uint64_t queue_messages;
    uint64_t sent;
    uint64_t dropped;
    enum filter_push_result last_push;
    uint64_t last_push_ns; /* 0: there was none */
};

/* subscriber: the context of an entry in a table. Thread: the table's filter thread. */
void filter_subscriber_read(
        const struct filter_subscriber *subscriber, struct filter_subscriber_state *out);
