/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The client side of filter: finds a service peer, connects to it where there is no connection yet,
 * asks, says what came of it, and hands over what is pushed (node/filter.h).
 *
 * Lifetime: create before the loops run; outlives the switch. Destroyed when nothing is pending.
 */

#include <stddef.h>
#include <stdint.h>

#include "base/attributes.h"
#include "base/status.h"
#include "net/protocols/filter_client.h"
#include "net/protocols/identify.h"
#include "net/switch/switch.h"
#include "node/filter.h"

struct subscribe_client;

struct subscribe_client_options {
    struct net_switch *BORROWED net_switch;
    const struct multiaddr *service; /* with /p2p, copied; NULL: a connected peer that serves */
    size_t message_bytes_max;
    uint16_t cluster_id;
    uint16_t network_shards; /* for autosharding; 0: a request names its topic */
};

MUST_USE enum status subscribe_client_create(
        struct subscribe_client **out, const struct subscribe_client_options *options);
void subscribe_client_destroy(struct subscribe_client **client);

/* Takes what is pushed; good as long as client. */
const struct filter_client *BORROWED subscribe_client_filter(const struct subscribe_client *client);

/* As node_filter_set_receiver. */
void subscribe_client_set_receiver(
        struct subscribe_client *client, node_filter_received *received, void *context);

/* Thread: the connection's io thread. */
void subscribe_client_note_peer(struct subscribe_client *client, struct connection *connection,
        const struct identify_info *info);

/* As node_filter_ask. */
MUST_USE enum status subscribe_client_ask(struct subscribe_client *client,
        const struct node_filter_request *request, node_filter_answered *answered, void *context);

/* Requests that are not over. Thread: any. */
size_t subscribe_client_pending(struct subscribe_client *client);
