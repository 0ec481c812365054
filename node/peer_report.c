/* SPDX-License-Identifier: MIT */
#include "node/peer_report.h"

#include <string.h>

#include "base/memory.h"

enum {
    BLOCK_BYTES = 64 * 1024,
    ALIGNMENT = 16,
    ADDRESSES_MAX = 1 + PEER_ADDRESSES_MAX + PEER_FACTS_ADDRESSES_MAX
};

struct peer_report_block {
    struct peer_report_block *next;
    size_t used;
    size_t size;
    _Alignas(ALIGNMENT) uint8_t bytes[];
};

struct peer_report *peer_report_create(void)
{
    return memory_allocate_zeroed(sizeof(struct peer_report));
}

bool peer_report_grow(void **items, size_t *capacity, size_t count, size_t size)
{
    if (count < *capacity) {
        return true;
    }
    size_t wanted = *capacity == 0 ? 64 : *capacity * 2;
    void *grown = memory_resize(*items, wanted * size);
    if (grown == NULL) {
        return false;
    }
    *items = grown;
    *capacity = wanted;
    return true;
}

void *peer_report_take(struct peer_report *list, size_t size)
{
    struct peer_report_block *block = list->blocks;
    size = (size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    if (block == NULL || block->size - block->used < size) {
        size_t room = size > BLOCK_BYTES ? size : BLOCK_BYTES;
        block = memory_allocate(sizeof(*block) + room);
        if (block == NULL) {
            return NULL;
        }
        block->next = list->blocks;
        block->used = 0;
        block->size = room;
        list->blocks = block;
    }
    void *bytes = block->bytes + block->used;
    block->used += size;
    return bytes;
}

static const char *copy_text(struct peer_report *list, const char *text)
{
    size_t size = strlen(text) + 1;
    char *copy = peer_report_take(list, size);
    if (copy != NULL) {
        memcpy(copy, text, size);
    }
    return copy;
}

void peer_report_destroy(struct peer_report *list)
{
    if (list == NULL) {
        return;
    }
    while (list->blocks != NULL) {
        struct peer_report_block *block = list->blocks;
        list->blocks = block->next;
        memory_free(block);
    }
    memory_free(list->list.peers);
    memory_free(list->connections);
    memory_free(list);
}

_Static_assert(offsetof(struct peer_report, list) == 0, "a list is the beginning of its owner");

void node_peer_list_destroy(struct node_peer_list **list)
{
    peer_report_destroy((struct peer_report *)*list);
    *list = NULL;
}

static void add_address(
        struct multiaddr *out, size_t *count, struct multiaddr address, const struct peer_id *peer)
{
    if (multiaddr_set_peer(&address, peer) != STATUS_OK) {
        return;
    }
    for (size_t i = 0; i < *count; i++) {
        if (multiaddr_equal(&out[i], &address)) {
            return;
        }
    }
    out[(*count)++] = address;
}

/* Where we dialled it, then what it is known by, and last where it came from. */
static bool set_addresses(
        struct peer_report *list, struct node_peer *peer, const struct peer_view *view)
{
    struct multiaddr found[ADDRESSES_MAX];
    size_t count = 0;
    if (view->connection != NULL && view->connection->is_outbound) {
        add_address(found, &count, view->connection->remote, &peer->id);
    }
    for (size_t i = view->record == NULL ? 0 : view->record->address_count; i > 0; i--) {
        add_address(found, &count, view->record->addresses[i - 1], &peer->id);
    }
    const struct peer_facts *facts = view->connection == NULL ? NULL : view->connection->facts;
    for (size_t i = 0; facts != NULL && i < facts->address_count; i++) {
        add_address(found, &count, facts->addresses[i], &peer->id);
    }
    if (view->connection != NULL && !view->connection->is_outbound) {
        add_address(found, &count, view->connection->remote, &peer->id);
    }
    struct multiaddr *copy = peer_report_take(list, count * sizeof(*copy));
    if (copy == NULL) {
        return false;
    }
    memcpy(copy, found, count * sizeof(*copy));
    peer->addresses = copy;
    peer->address_count = count;
    return true;
}

static bool set_facts(
        struct peer_report *list, struct node_peer *peer, const struct peer_facts *facts)
{
    peer->agent = "";
    if (facts == NULL) {
        return true;
    }
    const char **protocols = peer_report_take(list, facts->protocol_count * sizeof(*protocols));
    peer->agent = copy_text(list, facts->agent);
    if (protocols == NULL || peer->agent == NULL) {
        return false;
    }
    for (size_t i = 0; i < facts->protocol_count; i++) {
        protocols[i] = copy_text(list, facts->protocols[i]);
        if (protocols[i] == NULL) {
            return false;
        }
    }
    peer->protocols = protocols;
    peer->protocol_count = facts->protocol_count;
    return true;
}

static bool set_metadata(
        struct peer_report *list, struct node_peer *peer, const struct peer_metadata *metadata)
{
    if (metadata == NULL) {
        return true;
    }
    uint16_t *shards = peer_report_take(list, metadata->shard_count * sizeof(*shards));
    if (shards == NULL) {
        return false;
    }
    memcpy(shards, metadata->shards, metadata->shard_count * sizeof(*shards));
    peer->has_cluster = metadata->has_cluster;
    peer->cluster_id = metadata->cluster_id;
    peer->shards = shards;
    peer->shard_count = metadata->shard_count;
    return true;
}

static enum node_peer_state state_of(const struct peer_view *view)
{
    if (view->connection != NULL) {
        return NODE_PEER_CONNECTED;
    }
    if (view->record->failures > 0) {
        return NODE_PEER_CANNOT_CONNECT;
    }
    return view->record->was_connected ? NODE_PEER_CAN_CONNECT : NODE_PEER_NOT_CONNECTED;
}

bool peer_report_add(struct peer_report *list, const struct peer_view *view)
{
    size_t count = list->list.count;
    if (!peer_report_grow((void **)&list->list.peers, &list->peer_capacity, count,
                sizeof(struct node_peer)) ||
            !peer_report_grow((void **)&list->connections, &list->connection_capacity, count,
                    sizeof(uint64_t))) {
        return false;
    }
    const struct peer_connection *connection = view->connection;
    struct node_peer peer = {
            .id = connection != NULL ? connection->peer : view->record->id,
            .state = state_of(view),
            .origin = view->record != NULL ? view->record->origin : PEER_ORIGIN_INBOUND,
            .is_outbound = connection != NULL && connection->is_outbound,
    };
    if (!set_addresses(list, &peer, view) ||
            !set_facts(list, &peer, connection != NULL ? connection->facts : NULL) ||
            !set_metadata(list, &peer, connection != NULL ? connection->metadata : NULL)) {
        return false;
    }
    list->connections[count] = connection != NULL ? connection->id : 0;
    list->list.peers[count] = peer;
    list->list.count = count + 1;
    return true;
}
