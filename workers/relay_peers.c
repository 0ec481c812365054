/* SPDX-License-Identifier: MIT */
#include "workers/relay_peers.h"

#include <string.h>

#include "base/memory.h"

/* The first position whose key is not below key. */
static size_t position_of(const struct relay_peer *sorted, size_t count, uint64_t key)
{
    size_t low = 0;
    size_t high = count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (sorted[middle].key < key) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

/* All zero when there is none. */
static struct relay_peer find(const struct relay_peer *sorted, size_t count, uint64_t key)
{
    size_t i = position_of(sorted, count, key);
    return i < count && sorted[i].key == key ? sorted[i] : (struct relay_peer){0};
}

static void insert(struct relay_peer *sorted, size_t count, struct relay_peer peer)
{
    size_t i = position_of(sorted, count, peer.key);
    memmove(sorted + i + 1, sorted + i, (count - i) * sizeof(*sorted));
    sorted[i] = peer;
}

static void take_out(struct relay_peer *sorted, size_t count, uint64_t key)
{
    size_t i = position_of(sorted, count, key);
    memmove(sorted + i, sorted + i + 1, (count - i - 1) * sizeof(*sorted));
}

static bool reserve(struct relay_peers *peers)
{
    if (peers->count < peers->capacity) {
        return true;
    }
    size_t capacity = peers->capacity == 0 ? 16 : peers->capacity * 2;
    struct relay_peer *by_peer = memory_resize(peers->by_peer, capacity * sizeof(*by_peer));
    if (by_peer == NULL) {
        return false;
    }
    peers->by_peer = by_peer;
    struct relay_peer *by_connection =
            memory_resize(peers->by_connection, capacity * sizeof(*by_connection));
    if (by_connection == NULL) {
        return false;
    }
    peers->by_connection = by_connection;
    peers->capacity = capacity;
    return true;
}

bool relay_peers_add(
        struct relay_peers *peers, uint64_t peer, uint64_t connection, uint64_t admission)
{
    relay_peers_remove(peers, peer);
    if (!reserve(peers)) {
        return false;
    }
    insert(peers->by_peer, peers->count,
            (struct relay_peer){.key = peer, .value = connection, .admission = admission});
    insert(peers->by_connection, peers->count,
            (struct relay_peer){.key = connection, .value = peer});
    peers->count++;
    return true;
}

void relay_peers_remove(struct relay_peers *peers, uint64_t peer)
{
    uint64_t connection = relay_peers_connection_of(peers, peer);
    if (connection != 0) {
        take_out(peers->by_peer, peers->count, peer);
        take_out(peers->by_connection, peers->count, connection);
        peers->count--;
    }
}

void relay_peers_fini(struct relay_peers *peers)
{
    memory_free(peers->by_peer);
    memory_free(peers->by_connection);
    memset(peers, 0, sizeof(*peers));
}

uint64_t relay_peers_connection_of(const struct relay_peers *peers, uint64_t peer)
{
    return find(peers->by_peer, peers->count, peer).value;
}

uint64_t relay_peers_peer_of(const struct relay_peers *peers, uint64_t connection)
{
    return find(peers->by_connection, peers->count, connection).value;
}

uint64_t relay_peers_admission_of(const struct relay_peers *peers, uint64_t peer)
{
    return find(peers->by_peer, peers->count, peer).admission;
}
