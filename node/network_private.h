/* SPDX-License-Identifier: MIT */
#pragma once

/* The inside of struct network, for node/network*.c only. */

#include <stdatomic.h>

#include "net/identity/multiaddr.h"
#include "net/peer_manager/peer_manager.h"
#include "net/protocols/filter.h"
#include "net/protocols/relay.h"
#include "net/protocols/relay_queue.h"
#include "net/switch/switch.h"
#include "net/transport/tls.h"
#include "node/io_role.h"
#include "node/network.h"
#include "node/network_settings.h"

struct identify;
struct lightpush;
struct metadata;
struct store;
struct store_resume;
struct store_sync;

enum {
    NETWORK_IO_THREADS_MAX = 64,
    NETWORK_TOPICS_MAX = METADATA_SHARDS_MAX + 256
};

struct network {
    struct identity *identity;
    struct tls_context *tls;
    char *certificate_file; /* these two with tls */
    char *certificate_key_file;
    struct io_role roles[NETWORK_IO_THREADS_MAX];
    size_t loop_count;
    struct net_switch *net_switch;
    struct identify *identify;
    struct metadata *metadata;
    struct relay_budget outbound; /* relay's and filter's queues */
    struct relay *relay;
    struct filter *filter;       /* NULL: not served */
    struct lightpush *lightpush; /* NULL: not served; likewise */
    struct store *store;
    struct store_sync *store_sync;
    struct store_resume *store_resume;
    struct push_client *push_client;
    struct subscribe_client *subscribe_client;
    struct store_client *store_client;
    atomic_size_t dials; /* that somebody asked for, and that are not over */
    struct peer_manager *peer_manager;
    struct multiaddr static_nodes[NETWORK_STATIC_NODES_MAX];
    size_t static_node_count;
    struct multiaddr addresses[NETWORK_EXTERNAL_MAX + NETWORK_LISTENERS_MAX];
    size_t address_count;
    char *topics[NETWORK_TOPICS_MAX];
    size_t topic_count;
};

/* node/network_switch.c: io loops and switch, where it listens, what the node is to be dialled by. */
void network_list_loops(const struct network *network, struct io_loop *out[NETWORK_IO_THREADS_MAX]);
MUST_USE enum status network_make_switch(
        struct network *network, const struct network_settings *settings, struct node_error *error);
MUST_USE enum status network_listen(
        struct network *network, const struct network_settings *settings, struct node_error *error);
MUST_USE enum status network_collect_addresses(
        struct network *network, const struct network_settings *settings);

/* node/network_protocols.c: the peer manager and all that is served and asked by a protocol. */
MUST_USE enum status network_make_protocols(struct network *network,
        const struct network_settings *settings, const struct network_options *options,
        struct node_error *error);

/* Requests that other threads still work on come back to their io thread, which has to be there. */
bool network_has_pending(const struct network *network);
