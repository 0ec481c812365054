/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The client side of lightpush: finds a service peer, connects to it where there is no connection
 * yet, asks, and says what came of it (node/lightpush.h).
 *
 * Lifetime: create before the loops run; outlives the switch. Destroyed when nothing is pending.
 */

#include <stddef.h>
#include <stdint.h>

#include "base/attributes.h"
#include "base/status.h"
#include "net/protocols/identify.h"
#include "net/switch/switch.h"
#include "node/lightpush.h"

struct push_client;

struct push_client_options {
    struct net_switch *BORROWED net_switch;
    const struct multiaddr *service; /* with /p2p, copied; NULL: any peer that serves */
    size_t pushes_max;               /* under way at a time */
    uint16_t cluster_id;
    uint16_t network_shards; /* for autosharding; 0: a push names its topic */
};

MUST_USE enum status push_client_create(
        struct push_client **out, const struct push_client_options *options);
void push_client_destroy(struct push_client **client);

/* NULL: none is named. */
const struct multiaddr *BORROWED push_client_service(const struct push_client *client);

/* Thread: the connection's io thread. */
void push_client_note_peer(struct push_client *client, struct connection *connection,
        const struct identify_info *info);

/* As node_push. */
MUST_USE enum status push_client_push(
        struct push_client *client, const struct node_push *push, node_pushed *done, void *context);

/* Pushes that are not over. Thread: any. */
size_t push_client_pending(struct push_client *client);
