/* SPDX-License-Identifier: MIT */
#include "router/peer_topics.h"

#include <assert.h>
#include <string.h>

#include "base/memory.h"
#include "hash/fast_key.h"
#include "router/peer_map.h"
#include "router/topic_registry.h"

enum {
    FIRST_CAPACITY = 4
};

/* A name that at least one peer is subscribed to. */
struct name {
    struct name *next; /* another one with the same key */
    uint64_t key;
    uint64_t *peers;
    size_t count;
    size_t capacity;
    size_t length;
    uint8_t bytes[];
};

struct peer {
    struct name **names;
    size_t count;
    size_t capacity;
};

struct peer_topics {
    size_t per_peer_max;
    struct peer_map names; /* by key: the first of a chain */
    struct peer_map peers;
    size_t name_count;
};

enum status peer_topics_create(struct peer_topics **out, size_t topics_per_peer_max)
{
    struct peer_topics *topics = memory_allocate_zeroed(sizeof(*topics));
    if (topics == NULL) {
        return STATUS_NO_MEMORY;
    }
    topics->per_peer_max = topics_per_peer_max;
    *out = topics;
    return STATUS_OK;
}

void peer_topics_destroy(struct peer_topics **topics)
{
    struct peer_topics *old = *topics;
    if (old == NULL) {
        return;
    }
    while (old->peers.count > 0) {
        size_t position = 0;
        peer_topics_drop(old, peer_map_next(&old->peers, &position)->key);
    }
    memory_free(old);
    *topics = NULL;
}

static struct name *find_name(const struct peer_topics *topics, struct span name)
{
    struct name *found = peer_map_find(&topics->names, fast_key_of_bytes(name));
    while (found != NULL && !span_equal(span_of(found->bytes, found->length), name)) {
        found = found->next;
    }
    return found;
}

static struct name *add_name(struct peer_topics *topics, struct span name)
{
    struct name *added = memory_allocate_zeroed(sizeof(*added) + name.length);
    if (added == NULL) {
        return NULL;
    }
    memcpy(added->bytes, name.bytes, name.length);
    added->length = name.length;
    added->key = fast_key_of_bytes(name);
    added->next = peer_map_find(&topics->names, added->key);
    if (!peer_map_put(&topics->names, added->key, added)) {
        memory_free(added);
        return NULL;
    }
    topics->name_count++;
    return added;
}

static void unlink_name(struct peer_topics *topics, struct name *name)
{
    struct name *first = peer_map_find(&topics->names, name->key);
    if (first != name) {
        while (first->next != name) {
            first = first->next;
        }
        first->next = name->next;
    } else if (name->next == NULL) {
        (void)peer_map_take(&topics->names, name->key);
    } else {
        bool is_put = peer_map_put(&topics->names, name->key, name->next);
        assert(is_put); /* it replaces */
        (void)is_put;
    }
}

static void drop_name_if_unused(struct peer_topics *topics, struct name *name)
{
    if (name->count > 0) {
        return;
    }
    unlink_name(topics, name);
    topics->name_count--;
    memory_free(name->peers);
    memory_free(name);
}

/* Room for one more; *items and *capacity as changed. */
static bool reserve(void **items, size_t *capacity, size_t count, size_t item_bytes)
{
    if (count < *capacity) {
        return true;
    }
    size_t grown = *capacity == 0 ? FIRST_CAPACITY : *capacity * 2;
    void *block = memory_resize(*items, grown * item_bytes);
    if (block == NULL) {
        return false;
    }
    *items = block;
    *capacity = grown;
    return true;
}

static bool reserve_both(struct peer *peer, struct name *name)
{
    void *names = peer->names;
    void *peers = name->peers;
    bool is_done = reserve(&names, &peer->capacity, peer->count, sizeof(void *)) &&
                   reserve(&peers, &name->capacity, name->count, sizeof(uint64_t));
    peer->names = names;
    name->peers = peers;
    return is_done;
}

static size_t position_in(const struct peer *peer, const struct name *name)
{
    size_t i = 0;
    while (i < peer->count && peer->names[i] != name) {
        i++;
    }
    return i;
}

static struct peer *find_or_add_peer(struct peer_topics *topics, uint64_t id)
{
    struct peer *peer = peer_map_find(&topics->peers, id);
    if (peer == NULL) {
        peer = memory_allocate_zeroed(sizeof(*peer));
        if (peer != NULL && !peer_map_put(&topics->peers, id, peer)) {
            memory_free(peer);
            peer = NULL;
        }
    }
    return peer;
}

static void drop_peer_if_unused(struct peer_topics *topics, uint64_t id, struct peer *peer)
{
    if (peer->count == 0) {
        (void)peer_map_take(&topics->peers, id);
        memory_free(peer->names);
        memory_free(peer);
    }
}

static enum status subscribe_peer(
        struct peer_topics *topics, uint64_t id, struct peer *peer, struct span text)
{
    struct name *name = find_name(topics, text);
    if (name != NULL && position_in(peer, name) < peer->count) {
        return STATUS_ALREADY_THERE;
    }
    if (peer->count >= topics->per_peer_max) {
        return STATUS_LIMIT_REACHED;
    }
    name = name != NULL ? name : add_name(topics, text);
    if (name == NULL) {
        return STATUS_NO_MEMORY;
    }
    if (!reserve_both(peer, name)) {
        drop_name_if_unused(topics, name);
        return STATUS_NO_MEMORY;
    }
    peer->names[peer->count++] = name;
    name->peers[name->count++] = id;
    return STATUS_OK;
}

enum status peer_topics_subscribe(struct peer_topics *topics, uint64_t peer, struct span name)
{
    if (name.length == 0 || name.length > TOPIC_NAME_MAX_BYTES) {
        return STATUS_BAD_TOPIC;
    }
    struct peer *found = find_or_add_peer(topics, peer);
    if (found == NULL) {
        return STATUS_NO_MEMORY;
    }
    enum status status = subscribe_peer(topics, peer, found, name);
    drop_peer_if_unused(topics, peer, found);
    return status;
}

static void remove_peer_from(struct name *name, uint64_t id)
{
    size_t i = 0;
    while (name->peers[i] != id) {
        i++;
    }
    name->peers[i] = name->peers[--name->count];
}

bool peer_topics_unsubscribe(struct peer_topics *topics, uint64_t peer, struct span name)
{
    struct peer *found = peer_map_find(&topics->peers, peer);
    struct name *left = found == NULL ? NULL : find_name(topics, name);
    size_t position = left == NULL ? 0 : position_in(found, left);
    if (left == NULL || position == found->count) {
        return false;
    }
    found->names[position] = found->names[--found->count];
    remove_peer_from(left, peer);
    drop_name_if_unused(topics, left);
    drop_peer_if_unused(topics, peer, found);
    return true;
}

void peer_topics_drop(struct peer_topics *topics, uint64_t peer)
{
    struct peer *found = peer_map_find(&topics->peers, peer);
    if (found == NULL) {
        return;
    }
    while (found->count > 0) {
        struct name *name = found->names[--found->count];
        remove_peer_from(name, peer);
        drop_name_if_unused(topics, name);
    }
    drop_peer_if_unused(topics, peer, found);
}

struct peer_list_view peer_topics_find(const struct peer_topics *topics, struct span name)
{
    const struct name *found = find_name(topics, name);
    if (found == NULL) {
        return (struct peer_list_view){.count = 0};
    }
    return (struct peer_list_view){.peers = found->peers, .count = found->count};
}

bool peer_topics_at(const struct peer_topics *topics, uint64_t peer, size_t i, struct span *out)
{
    const struct peer *found = peer_map_find(&topics->peers, peer);
    if (found == NULL || i >= found->count) {
        return false;
    }
    *out = span_of(found->names[i]->bytes, found->names[i]->length);
    return true;
}

size_t peer_topics_name_count(const struct peer_topics *topics)
{
    return topics->name_count;
}

size_t peer_topics_peer_count(const struct peer_topics *topics)
{
    return topics->peers.count;
}
