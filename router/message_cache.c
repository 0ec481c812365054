/* SPDX-License-Identifier: MIT */
#include "router/message_cache.h"

#include <assert.h>
#include <string.h>

#include "base/memory.h"
#include "hash/fast_key.h"
#include "router/peer_map.h"

struct asker {
    uint64_t peer;
    unsigned count;
};

struct entry {
    struct envelope *envelope;
    struct entry *newer;          /* of all; entries leave in the order they came */
    struct entry *newer_in_topic; /* and these two of the same topic */
    struct entry *older_in_topic;
    struct entry *next_same; /* another one with the same key */
    uint64_t key;
    uint64_t heartbeat; /* in which it came */
    struct asker *askers;
    unsigned asker_count;
    unsigned asker_capacity;
};

struct topic_entries {
    struct entry *newest;
    struct entry *oldest;
};

struct message_cache {
    struct message_cache_options options;
    struct peer_map by_id;    /* by key of the id: the first of a chain */
    struct peer_map by_topic; /* by index: topic_entries, never empty */
    struct entry *newest;
    struct entry *oldest;
    size_t count;
    size_t bytes;
    uint64_t heartbeat;
    uint64_t evicted;
};

enum status message_cache_create(
        struct message_cache **out, const struct message_cache_options *options)
{
    struct message_cache *cache = memory_allocate_zeroed(sizeof(*cache));
    if (cache == NULL) {
        return STATUS_NO_MEMORY;
    }
    cache->options = *options;
    *out = cache;
    return STATUS_OK;
}

/* Small messages cost more for what is around them than for their bytes. */
static size_t cost_of(const struct envelope *envelope)
{
    return envelope_pinned_bytes(envelope) + sizeof(struct entry);
}

static size_t cost_of_askers(const struct entry *entry)
{
    return entry->asker_capacity * sizeof(struct asker);
}

static uint64_t key_of(const uint8_t *id)
{
    return fast_key_of_bytes(span_of(id, MESSAGE_ID_BYTES));
}

/* New entries come first, so the oldest of a chain is its last. */
static void unlink_from_chain(struct message_cache *cache, struct entry *oldest)
{
    struct entry *before = peer_map_find(&cache->by_id, oldest->key);
    assert(oldest->next_same == NULL);
    if (before == oldest) {
        (void)peer_map_take(&cache->by_id, oldest->key);
        return;
    }
    while (before->next_same != oldest) {
        before = before->next_same;
    }
    before->next_same = NULL;
}

static void drop_topic_if_empty(
        struct message_cache *cache, uint32_t topic, struct topic_entries *entries)
{
    if (entries != NULL && entries->oldest == NULL) {
        (void)peer_map_take(&cache->by_topic, topic);
        memory_free(entries);
    }
}

/* The oldest of all is the oldest of its topic. */
static void unlink_from_topic(struct message_cache *cache, struct entry *oldest)
{
    uint32_t topic = oldest->envelope->topic->index;
    struct topic_entries *entries = peer_map_find(&cache->by_topic, topic);
    assert(entries->oldest == oldest);
    entries->oldest = oldest->newer_in_topic;
    if (entries->oldest != NULL) {
        entries->oldest->older_in_topic = NULL;
    }
    drop_topic_if_empty(cache, topic, entries);
}

static void remove_oldest(struct message_cache *cache)
{
    struct entry *entry = cache->oldest;
    unlink_from_chain(cache, entry);
    unlink_from_topic(cache, entry);
    cache->oldest = entry->newer;
    if (cache->oldest == NULL) {
        cache->newest = NULL;
    }
    cache->count--;
    cache->bytes -= cost_of(entry->envelope) + cost_of_askers(entry);
    envelope_unref(entry->envelope);
    memory_free(entry->askers);
    memory_free(entry);
}

void message_cache_destroy(struct message_cache **cache)
{
    if (*cache == NULL) {
        return;
    }
    while ((*cache)->oldest != NULL) {
        remove_oldest(*cache);
    }
    memory_free(*cache);
    *cache = NULL;
}

static void make_room(struct message_cache *cache, size_t bytes)
{
    while (cache->oldest != NULL && cache->bytes + bytes > cache->options.bytes_max) {
        remove_oldest(cache);
        cache->evicted++;
    }
}

static struct topic_entries *find_or_add_topic(struct message_cache *cache, uint32_t topic)
{
    struct topic_entries *entries = peer_map_find(&cache->by_topic, topic);
    if (entries == NULL) {
        entries = memory_allocate_zeroed(sizeof(*entries));
        if (entries != NULL && !peer_map_put(&cache->by_topic, topic, entries)) {
            memory_free(entries);
            entries = NULL;
        }
    }
    return entries;
}

static void link_into_topic(struct topic_entries *entries, struct entry *entry)
{
    if (entries->oldest != NULL) {
        entry->older_in_topic = entries->newest;
        entries->newest->newer_in_topic = entry;
    } else {
        entries->oldest = entry;
    }
    entries->newest = entry;
}

static void link_as_newest(struct message_cache *cache, struct entry *entry)
{
    if (cache->newest != NULL) {
        cache->newest->newer = entry;
    } else {
        cache->oldest = entry;
    }
    cache->newest = entry;
    cache->count++;
    cache->bytes += cost_of(entry->envelope);
}

void message_cache_add(struct message_cache *cache, struct envelope *envelope)
{
    size_t bytes = cost_of(envelope);
    if (bytes > cache->options.bytes_max) {
        return;
    }
    make_room(cache, bytes);
    struct entry *entry = memory_allocate_zeroed(sizeof(*entry));
    if (entry == NULL) {
        return;
    }
    entry->envelope = envelope;
    entry->heartbeat = cache->heartbeat;
    entry->key = key_of(envelope->id);
    entry->next_same = peer_map_find(&cache->by_id, entry->key);
    struct topic_entries *entries = find_or_add_topic(cache, envelope->topic->index);
    if (entries == NULL || !peer_map_put(&cache->by_id, entry->key, entry)) {
        drop_topic_if_empty(cache, envelope->topic->index, entries);
        memory_free(entry);
        return;
    }
    link_into_topic(entries, entry);
    envelope_ref(envelope);
    link_as_newest(cache, entry);
}

static bool has_id(const struct entry *entry, const uint8_t *id)
{
    return memcmp(entry->envelope->id, id, MESSAGE_ID_BYTES) == 0;
}

/* Its bytes may take the cache above its cap until the next message comes. */
static struct asker *add_asker(struct message_cache *cache, struct entry *entry, uint64_t peer)
{
    if (entry->asker_count == cache->options.askers_max) {
        return NULL;
    }
    if (entry->asker_count == entry->asker_capacity) {
        unsigned capacity = entry->asker_capacity == 0 ? 2 : entry->asker_capacity * 2;
        struct asker *grown = memory_resize(entry->askers, capacity * sizeof(*grown));
        if (grown == NULL) {
            return NULL;
        }
        cache->bytes += (capacity - entry->asker_capacity) * sizeof(*grown);
        entry->askers = grown;
        entry->asker_capacity = capacity;
    }
    struct asker *asker = &entry->askers[entry->asker_count++];
    *asker = (struct asker){.peer = peer};
    return asker;
}

static bool may_have(struct message_cache *cache, struct entry *entry, uint64_t peer)
{
    struct asker *asker = NULL;
    for (unsigned i = 0; i < entry->asker_count; i++) {
        if (entry->askers[i].peer == peer) {
            asker = &entry->askers[i];
        }
    }
    if (asker == NULL) {
        asker = add_asker(cache, entry, peer);
    }
    if (asker == NULL || asker->count == cache->options.asks_max) {
        return false;
    }
    asker->count++;
    return true;
}

struct envelope *message_cache_ask(struct message_cache *cache, const uint8_t id[MESSAGE_ID_BYTES],
        uint64_t peer, size_t *step)
{
    struct entry *entry = peer_map_find(&cache->by_id, key_of(id));
    for (size_t i = 0; entry != NULL; i++, entry = entry->next_same) {
        if (i >= *step && has_id(entry, id) && may_have(cache, entry, peer)) {
            *step = i + 1;
            return entry->envelope;
        }
    }
    return NULL;
}

bool message_cache_contains(
        const struct message_cache *cache, const struct topic *topic, const uint8_t *id)
{
    const struct entry *entry = peer_map_find(&cache->by_id, key_of(id));
    while (entry != NULL && (entry->envelope->topic != topic || !has_id(entry, id))) {
        entry = entry->next_same;
    }
    return entry != NULL;
}

size_t message_cache_list(const struct message_cache *cache, const struct topic *topic,
        uint8_t (*out)[MESSAGE_ID_BYTES], size_t max)
{
    size_t count = 0;
    const struct topic_entries *entries = peer_map_find(&cache->by_topic, topic->index);
    const struct entry *entry = entries == NULL ? NULL : entries->newest;
    while (entry != NULL && count < max &&
            cache->heartbeat - entry->heartbeat < cache->options.gossip) {
        memcpy(out[count++], entry->envelope->id, MESSAGE_ID_BYTES);
        entry = entry->older_in_topic;
    }
    return count;
}

void message_cache_shift(struct message_cache *cache)
{
    cache->heartbeat++;
    while (cache->oldest != NULL &&
            cache->heartbeat - cache->oldest->heartbeat >= cache->options.history) {
        remove_oldest(cache);
    }
}

size_t message_cache_count(const struct message_cache *cache)
{
    return cache->count;
}

size_t message_cache_bytes(const struct message_cache *cache)
{
    return cache->bytes;
}

uint64_t message_cache_evicted(const struct message_cache *cache)
{
    return cache->evicted;
}
