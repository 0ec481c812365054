/* SPDX-License-Identifier: MIT */
#include "net/peer_manager/peer_connections.h"

#include <string.h>

#include "base/memory.h"

struct peer_facts *peer_facts_create(
        struct span agent, const struct span protocols[], size_t protocol_count)
{
    size_t text = agent.length + 1;
    for (size_t i = 0; i < protocol_count; i++) {
        text += protocols[i].length + 1;
    }
    struct peer_facts *facts =
            memory_allocate_zeroed(sizeof(*facts) + protocol_count * sizeof(char *) + text);
    if (facts == NULL) {
        return NULL;
    }
    char *end = (char *)&facts->protocols[protocol_count];
    facts->agent = end;
    memcpy(end, agent.length > 0 ? agent.bytes : (const uint8_t *)"", agent.length);
    end += agent.length + 1;
    for (size_t i = 0; i < protocol_count; i++) {
        facts->protocols[i] = end;
        memcpy(end, protocols[i].length > 0 ? protocols[i].bytes : (const uint8_t *)"",
                protocols[i].length);
        end += protocols[i].length + 1;
    }
    facts->protocol_count = protocol_count;
    return facts;
}

enum status peer_connections_init(struct peer_connections *connections)
{
    memset(connections, 0, sizeof(*connections));
    TAILQ_INIT(&connections->all);
    TAILQ_INIT(&connections->unknown);
    return hash_table_init(&connections->by_id);
}

void peer_connections_fini(struct peer_connections *connections)
{
    struct peer_connection *connection;
    while ((connection = TAILQ_FIRST(&connections->all)) != NULL) {
        peer_connections_remove(connections, connection);
    }
    hash_table_fini(&connections->by_id);
}

struct peer_connection *peer_connections_add(
        struct peer_connections *connections, const struct switch_peer *admitted, uint64_t now_ms)
{
    struct peer_connection *connection = memory_allocate_zeroed(sizeof(*connection));
    if (connection == NULL) {
        return NULL;
    }
    connection->id = admitted->connection;
    connection->peer = admitted->peer;
    connection->remote = admitted->remote;
    connection->is_outbound = admitted->is_outbound;
    connection->kind = PEER_UNKNOWN;
    connection->since_ms = now_ms;
    hash_table_insert(&connections->by_id, &connection->by_id, connection->id);
    TAILQ_INSERT_TAIL(&connections->all, connection, link);
    TAILQ_INSERT_TAIL(&connections->unknown, connection, unknown_link);
    peer_counts_add(&connections->counts, PEER_UNKNOWN, connection->is_outbound);
    connections->count++;
    return connection;
}

static void count_protocols(struct peer_connections *connections,
        const struct peer_connection *connection, bool is_more)
{
    const struct peer_facts *facts = connection->facts;
    if (facts != NULL) {
        peer_protocols_change(&connections->protocols, facts->protocols, facts->protocol_count,
                connection->is_outbound, is_more);
    }
}

void peer_connections_set_facts(struct peer_connections *connections,
        struct peer_connection *connection, struct peer_facts *facts)
{
    count_protocols(connections, connection, false);
    memory_free(connection->facts);
    connection->facts = facts;
    count_protocols(connections, connection, true);
}

void peer_connections_remove(
        struct peer_connections *connections, struct peer_connection *connection)
{
    peer_counts_remove(&connections->counts, connection->kind, connection->is_outbound);
    count_protocols(connections, connection, false);
    if (connection->kind == PEER_UNKNOWN) {
        TAILQ_REMOVE(&connections->unknown, connection, unknown_link);
    }
    TAILQ_REMOVE(&connections->all, connection, link);
    hash_table_remove(&connections->by_id, &connection->by_id);
    connections->count--;
    memory_free(connection->facts);
    memory_free(connection->metadata);
    memory_free(connection);
}

_Static_assert(offsetof(struct peer_connection, by_id) == 0, "a connection is found by its link");

struct peer_connection *peer_connections_find(
        const struct peer_connections *connections, uint64_t id)
{
    struct hash_link *link = hash_table_first(&connections->by_id, id);
    while (link != NULL && ((struct peer_connection *)link)->id != id) {
        link = hash_table_next(link);
    }
    return (struct peer_connection *)link;
}

struct peer_connection *peer_connections_find_peer(
        const struct peer_connections *connections, const struct peer_id *peer)
{
    struct peer_connection *connection;
    TAILQ_FOREACH(connection, &connections->all, link)
    {
        if (peer_id_equal(&connection->peer, peer)) {
            return connection;
        }
    }
    return NULL;
}

void peer_connections_set_kind(struct peer_connections *connections,
        struct peer_connection *connection, enum peer_kind kind)
{
    if (connection->kind == kind) {
        return;
    }
    if (connection->kind == PEER_UNKNOWN) {
        TAILQ_REMOVE(&connections->unknown, connection, unknown_link);
    }
    if (kind == PEER_UNKNOWN) {
        TAILQ_INSERT_TAIL(&connections->unknown, connection, unknown_link);
    }
    peer_counts_remove(&connections->counts, connection->kind, connection->is_outbound);
    connection->kind = kind;
    peer_counts_add(&connections->counts, kind, connection->is_outbound);
}
