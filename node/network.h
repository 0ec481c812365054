/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * A node's part in a libp2p network, assembled from options: identity, io loops, switch, identify,
 * ping, metadata, relay, the services, and the peers that it dials.
 *
 * Lifetime:  create (listens from then on), run the io roles, start, close, stop the io roles, stop
 *            whatever posts or releases frames, destroy.
 * Thread:    create to destroy on the node's; the rest on any between start and close.
 */

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "archive/archive_jobs.h"
#include "base/attributes.h"
#include "base/options.h"
#include "base/status.h"
#include "net/identity/identity.h"
#include "net/identity/multiaddr.h"
#include "net/peer_manager/peer_manager.h"
#include "net/protocols/filter.h"
#include "net/protocols/relay.h"
#include "net/switch/switch.h"
#include "queues/frame_budget.h"
#include "queues/inbox.h"
#include "queues/topic.h"
#include "router/intake.h"
#include "router/relay_link.h"
#include "workers/decode_worker.h"
#include "workers/worker.h"

struct network;
struct subscribe_client;
struct node_error;
struct push_client;
struct store_client;

struct network_options {
    const struct options *BORROWED options; /* read now, not kept */
    const struct intake *BORROWED intake;   /* complete before the io roles run */
    struct frame_budget *BORROWED budget;
    struct archive_jobs *BORROWED query_jobs;       /* NULL: there is no archive to ask */
    const struct filter_link *BORROWED filter_link; /* complete before the io roles run */
    struct inbox *BORROWED sync_jobs;
    /* Whether the archive takes more than what is live. Thread: any. */
    bool (*has_room)(void *context);
    void *room_context;
    int64_t newest_ns;         /* timestamp of the last archived message; 0: there is none */
    double graylist_threshold; /* of relay peers' scores */
};

MUST_USE enum status network_create(
        struct network **out, const struct network_options *options, struct node_error *error);
void network_destroy(struct network **network);

size_t network_loop_count(const struct network *network);

/* The role of the thread that runs a loop; name is the caller's. */
struct worker_role network_io_role(struct network *network, size_t loop, const char *name);

/* Dials; the io roles run. */
void network_start(struct network *network);

/*
 * Reads the certificate of secure WebSockets again, for connections from now on; nothing to do without
 * one. On failure the old one stays. Thread: one, any.
 */
MUST_USE enum status network_reload_certificate(struct network *network);

/* Stops listening and ends all connections in an orderly way; the io roles still run. */
void network_close(struct network *network);

/* What lanes send by; all NULL without relay. */
struct relay_port network_relay_port(const struct network *network);

/* The registry's mark of the topic has changed, its lane does not know yet: peers are told. */
void network_topic_changed(struct network *network, const struct topic *topic);

/* Peers that ask learn that the node takes part in the topic, or does not any more. Thread: any. */
void network_take_part(struct network *network, struct span topic, bool takes_part);

/* The pubsub topics that the options name; NULL behind the last. */
const char *BORROWED network_topic_at(const struct network *network, size_t i);

const struct identity *BORROWED network_identity(const struct network *network);
struct net_switch *BORROWED network_switch(const struct network *network);

struct push_client *BORROWED network_push_client(const struct network *network);
struct store_client *BORROWED network_store_client(const struct network *network);
struct peer_manager *BORROWED network_peer_manager(const struct network *network);

/* Dials whose outcome somebody waits for: network_close waits for them, too. Thread: any. */
atomic_size_t *BORROWED network_dials(struct network *network);

/* Whether it posts to query_jobs. */
bool network_has_store(const struct network *network);

/* Whether it has store-sync, and so posts to sync_jobs. */
bool network_has_sync(const struct network *network);

/* NULL without store-sync. */
struct store_sync *BORROWED network_store_sync(const struct network *network);

/* Who learns what became of messages that came in by lightpush; NULL: none do. */
decode_verdict *network_lightpush_verdict(const struct network *network, void **context);

struct subscribe_client *BORROWED network_subscribe_client(const struct network *network);

/* NULL: not served. */
struct filter *BORROWED network_filter(const struct network *network);

/* NULL without relay. */
struct relay *BORROWED network_relay(const struct network *network);

/* What the node is to be dialled by, with /p2p. False behind the last. */
MUST_USE bool network_address_at(const struct network *network, size_t i, struct multiaddr *out);
