/* SPDX-License-Identifier: MIT */
#include "net/peer_manager/peer_store.h"

#include <string.h>

#include "base/memory.h"

struct peer_store {
    struct peer_store_options options;
    struct peer_record **peers;
    size_t count;
    struct hash_table by_id;
    uint64_t random;
};

enum status peer_store_create(struct peer_store **out, const struct peer_store_options *options)
{
    struct peer_store *store = memory_allocate_zeroed(sizeof(*store));
    if (store == NULL) {
        return STATUS_NO_MEMORY;
    }
    store->options = *options;
    if (store->options.capacity == 0) {
        store->options.capacity = PEER_STORE_CAPACITY;
    }
    store->random = options->seed | 1;
    store->peers = memory_allocate_zeroed(store->options.capacity * sizeof(struct peer_record *));
    if (store->peers == NULL || hash_table_init(&store->by_id) != STATUS_OK) {
        memory_free(store->peers);
        memory_free(store);
        return STATUS_NO_MEMORY;
    }
    *out = store;
    return STATUS_OK;
}

void peer_store_destroy(struct peer_store **store)
{
    if (*store == NULL) {
        return;
    }
    for (size_t i = 0; i < (*store)->count; i++) {
        memory_free((*store)->peers[i]);
    }
    hash_table_fini(&(*store)->by_id);
    memory_free((*store)->peers);
    memory_free(*store);
    *store = NULL;
}

_Static_assert(offsetof(struct peer_record, by_id) == 0, "a peer is found by its link");

static uint64_t hash_of(const struct peer_store *store, const struct peer_id *id)
{
    return peer_id_hash(id, store->options.seed);
}

struct peer_record *peer_store_find(const struct peer_store *store, const struct peer_id *id)
{
    struct hash_link *link = hash_table_first(&store->by_id, hash_of(store, id));
    while (link != NULL && !peer_id_equal(&((struct peer_record *)link)->id, id)) {
        link = hash_table_next(link);
    }
    return (struct peer_record *)link;
}

size_t peer_store_count(const struct peer_store *store)
{
    return store->count;
}

struct peer_record *peer_store_at(const struct peer_store *store, size_t i)
{
    return i < store->count ? store->peers[i] : NULL;
}

static void remove_at(struct peer_store *store, size_t i)
{
    hash_table_remove(&store->by_id, &store->peers[i]->by_id);
    memory_free(store->peers[i]);
    store->count--;
    store->peers[i] = store->peers[store->count];
}

static bool is_removable(const struct peer_record *peer)
{
    return !peer->is_static && peer->connection == 0 && !peer->is_dialling;
}

/* More failures, or longer not heard of. */
static bool is_less_promising(const struct peer_record *a, const struct peer_record *b)
{
    if (a->failures != b->failures) {
        return a->failures > b->failures;
    }
    return a->heard_ms < b->heard_ms;
}

static bool make_room(struct peer_store *store)
{
    size_t worst = store->count;
    if (store->count < store->options.capacity) {
        return true;
    }
    for (size_t i = 0; i < store->count; i++) {
        if (is_removable(store->peers[i]) &&
                (worst == store->count ||
                        is_less_promising(store->peers[i], store->peers[worst]))) {
            worst = i;
        }
    }
    if (worst == store->count) {
        return false;
    }
    remove_at(store, worst);
    return true;
}

static void add_address(struct peer_record *peer, const struct multiaddr *address)
{
    for (size_t i = 0; i < peer->address_count; i++) {
        if (multiaddr_equal(&peer->addresses[i], address)) {
            return;
        }
    }
    if (peer->address_count == PEER_ADDRESSES_MAX) {
        memmove(peer->addresses, peer->addresses + 1,
                (PEER_ADDRESSES_MAX - 1) * sizeof(peer->addresses[0]));
        peer->address_count--;
    }
    peer->addresses[peer->address_count++] = *address;
}

static struct peer_record *add_peer(
        struct peer_store *store, const struct peer_id *id, uint64_t now_ms)
{
    struct peer_record *peer = memory_allocate_zeroed(sizeof(*peer));
    if (peer != NULL) {
        peer->id = *id;
        peer->heard_ms = now_ms;
        peer->due_ms = now_ms;
        store->peers[store->count++] = peer;
        hash_table_insert(&store->by_id, &peer->by_id, hash_of(store, id));
    }
    return peer;
}

enum status peer_store_add(struct peer_store *store, const struct multiaddr *address,
        enum peer_origin origin, uint64_t now_ms)
{
    struct peer_id id;
    if (!multiaddr_peer(&id, address)) {
        return STATUS_BAD_ADDRESS;
    }
    struct peer_record *peer = peer_store_find(store, &id);
    bool is_new = peer == NULL;
    if (is_new && !make_room(store)) {
        return STATUS_LIMIT_REACHED;
    }
    if (is_new) {
        peer = add_peer(store, &id, now_ms);
    }
    if (peer == NULL) {
        return STATUS_NO_MEMORY;
    }
    bool says_more =
            origin == PEER_ORIGIN_STATIC || (origin == PEER_ORIGIN_REQUESTED && !peer->is_static);
    if (is_new || says_more) {
        peer->origin = origin;
    }
    peer->is_static = peer->is_static || origin == PEER_ORIGIN_STATIC;
    add_address(peer, address);
    return STATUS_OK;
}

enum status peer_store_remove(struct peer_store *store, const struct peer_id *id)
{
    for (size_t i = 0; i < store->count; i++) {
        if (peer_id_equal(&store->peers[i]->id, id)) {
            remove_at(store, i);
            return STATUS_OK;
        }
    }
    return STATUS_NOT_FOUND;
}

/* xorshift64: it spreads attempts over time and protects nothing. */
static uint64_t next_random(struct peer_store *store)
{
    store->random ^= store->random << 13;
    store->random ^= store->random >> 7;
    store->random ^= store->random << 17;
    return store->random;
}

void peer_store_failed(struct peer_store *store, struct peer_record *peer, uint64_t now_ms)
{
    uint64_t delay_ms = store->options.backoff_first_ms;
    uint64_t max_ms =
            peer->is_static ? store->options.static_backoff_max_ms : store->options.backoff_max_ms;
    for (unsigned i = 0; i < peer->failures && delay_ms < max_ms; i++) {
        delay_ms *= 2;
    }
    if (delay_ms > max_ms) {
        delay_ms = max_ms;
    }
    /* From half of it to all of it, so that peers of a node that restarts do not come in step. */
    peer->due_ms = now_ms + delay_ms / 2 + next_random(store) % (delay_ms / 2 + 1);
    peer->failures++;
    peer->is_dialling = false;
    if (peer->address_count > 0) {
        peer->next_address = (peer->next_address + 1) % peer->address_count;
    }
}

void peer_store_lost(struct peer_store *store, struct peer_record *peer, uint64_t now_ms)
{
    if (now_ms - peer->heard_ms >= PEER_SHORT_MS) {
        peer->failures = 0;
    }
    peer_store_failed(store, peer, now_ms);
}

void peer_store_avoid(struct peer_record *peer, uint64_t until_ms)
{
    if (peer->due_ms < until_ms) {
        peer->due_ms = until_ms;
    }
}

void peer_store_succeeded(struct peer_record *peer, uint64_t now_ms)
{
    peer->heard_ms = now_ms;
    peer->is_dialling = false;
    peer->was_connected = true;
}

static bool is_candidate(const struct peer_record *peer, bool wants_more)
{
    return peer->connection == 0 && !peer->is_dialling && peer->address_count > 0 &&
           (peer->is_static || wants_more);
}

struct peer_record *peer_store_next(
        const struct peer_store *store, bool wants_more, uint64_t now_ms)
{
    struct peer_record *best = NULL;
    for (size_t i = 0; i < store->count; i++) {
        struct peer_record *peer = store->peers[i];
        if (!is_candidate(peer, wants_more) || peer->due_ms > now_ms) {
            continue;
        }
        bool is_better = best == NULL || (peer->is_static && !best->is_static) ||
                         (peer->is_static == best->is_static && peer->due_ms < best->due_ms);
        if (is_better) {
            best = peer;
        }
    }
    return best;
}

uint64_t peer_store_next_due_ms(const struct peer_store *store, bool wants_more)
{
    uint64_t due_ms = UINT64_MAX;
    for (size_t i = 0; i < store->count; i++) {
        const struct peer_record *peer = store->peers[i];
        if (is_candidate(peer, wants_more) && peer->due_ms < due_ms) {
            due_ms = peer->due_ms;
        }
    }
    return due_ms;
}
