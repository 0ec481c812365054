/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The peers of a running node, for those who show them (REST, the C API), and the command to dial one.
 *
 * What is known of peers is spread over the control thread (addresses, origin), the io threads
 * (scores, latency) and the lanes (meshes). Each gives its part when its turn comes; nobody waits for
 * it but the caller.
 *
 * Ownership:  a list belongs to the caller and points to nothing outside itself.
 * Thread:     any but the node's own, between node_start and node_stop. STATUS_NOT_FOUND: the node has
 *             no network.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/attributes.h"
#include "base/status.h"
#include "net/identity/multiaddr.h"
#include "net/identity/peer_id.h"
#include "net/peer_manager/peer_manager.h"
#include "node/node.h"

/* In the words of the reference's REST API: NotConnected, CannotConnect, CanConnect, Connected. */
enum node_peer_state {
    NODE_PEER_NOT_CONNECTED,  /* never tried */
    NODE_PEER_CANNOT_CONNECT, /* the last attempts failed */
    NODE_PEER_CAN_CONNECT,    /* was connected before */
    NODE_PEER_CONNECTED
};

/* A text or a list that is not known is empty. */
struct node_peer {
    struct peer_id id;
    const struct multiaddr *addresses; /* with /p2p; the best to dial first */
    size_t address_count;
    const char *const *protocols; /* that it said it speaks */
    size_t protocol_count;
    const char *agent;
    enum node_peer_state state;
    enum peer_origin origin;
    bool is_outbound; /* the direction, of a connected one */
    bool has_cluster; /* it has told its metadata */
    uint32_t cluster_id;
    const uint16_t *shards; /* of its metadata */
    size_t shard_count;
    bool has_score; /* a relay stream with it is agreed */
    double score;
    const char *const *mesh_topics; /* whose mesh of ours it is in */
    size_t mesh_topic_count;
    uint64_t latency_ns; /* of the last ping; 0: not measured */
};

struct node_peer_list {
    size_t count;
    struct node_peer *peers; /* connected ones first */
};

/*
 * Waits for all parts at most timeout_ms. STATUS_TIMED_OUT: a thread of the node is held up; no list
 * then.
 */
MUST_USE enum status node_peers_list(
        struct node *node, struct node_peer_list **out, uint64_t timeout_ms);
void node_peer_list_destroy(struct node_peer_list **list);

/*
 * Connects to address, which ends in /p2p, whatever the slots say, and keeps it as a peer that was
 * asked for. done comes exactly once, on the control thread, unless the call itself fails:
 * STATUS_OK also when a connection stands already; else why there is none.
 */
MUST_USE enum status node_dial(struct node *node, const struct multiaddr *address,
        void (*done)(void *context, enum status status), void *context);

/* As node_dial, and waits for the outcome, which the handshake's deadline bounds. */
MUST_USE enum status node_dial_and_wait(struct node *node, const struct multiaddr *address);
