/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The connections that stand, with what their peers told of themselves, and the count of each kind.
 *
 * Thread: one, but peer_facts_create.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "base/attributes.h"
#include "base/span.h"
#include "base/status.h"
#include "net/identity/multiaddr.h"
#include "net/identity/peer_id.h"
#include "net/peer_manager/peer_protocols.h"
#include "net/peer_manager/peer_slots.h"
#include "net/switch/hash_table.h"
#include "net/switch/switch.h"

enum {
    PEER_FACTS_ADDRESSES_MAX = 4
};

/* What identify brought; one block. */
struct peer_facts {
    bool has_protocols; /* false: what was told before still holds */
    struct multiaddr addresses[PEER_FACTS_ADDRESSES_MAX]; /* with /p2p */
    size_t address_count;
    const char *agent;
    size_t protocol_count;
    const char *protocols[];
};

/* Texts are cut at a zero byte in them. NULL: no memory. Thread: any. */
MUST_USE struct peer_facts *peer_facts_create(
        struct span agent, const struct span protocols[], size_t protocol_count);

/* What metadata brought; one block. */
struct peer_metadata {
    bool has_cluster;
    uint32_t cluster_id;
    size_t shard_count;
    uint16_t shards[];
};

struct peer_connection {
    struct hash_link by_id;
    TAILQ_ENTRY(peer_connection) link;
    TAILQ_ENTRY(peer_connection) unknown_link; /* while its kind is not known */
    uint64_t id;
    struct peer_id peer;
    struct multiaddr remote; /* as it shows on the socket, without /p2p */
    enum peer_kind kind;
    bool is_outbound;
    uint64_t since_ms;
    struct peer_facts *facts;       /* NULL: not told yet */
    struct peer_metadata *metadata; /* likewise */
};

TAILQ_HEAD(peer_connection_list, peer_connection);

struct peer_connections {
    struct hash_table by_id;
    struct peer_connection_list all;
    struct peer_connection_list unknown; /* the longest known first */
    struct peer_counts counts;
    struct peer_protocols protocols; /* of the facts that are told */
    size_t count;
};

MUST_USE enum status peer_connections_init(struct peer_connections *connections);
void peer_connections_fini(struct peer_connections *connections);

/* NULL: no memory. */
MUST_USE struct peer_connection *BORROWED peer_connections_add(
        struct peer_connections *connections, const struct switch_peer *admitted, uint64_t now_ms);
void peer_connections_remove(
        struct peer_connections *connections, struct peer_connection *connection);

struct peer_connection *BORROWED peer_connections_find(
        const struct peer_connections *connections, uint64_t id);

/* Looks at all of them. */
struct peer_connection *BORROWED peer_connections_find_peer(
        const struct peer_connections *connections, const struct peer_id *peer);

/* Instead of what was told before. */
void peer_connections_set_facts(struct peer_connections *connections,
        struct peer_connection *connection, struct peer_facts *CONSUMED facts);

void peer_connections_set_kind(struct peer_connections *connections,
        struct peer_connection *connection, enum peer_kind kind);
