/* SPDX-License-Identifier: MIT */
#include "archive/topic_cache.h"

#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

static size_t slot_of(struct span name)
{
    return (size_t)(XXH3_64bits(name.bytes, name.length) % TOPIC_CACHE_SLOTS);
}

void topic_cache_clear(struct topic_cache *cache)
{
    for (size_t i = 0; i < TOPIC_CACHE_SLOTS; i++) {
        cache->slots[i].id = 0;
    }
}

int64_t topic_cache_find(const struct topic_cache *cache, struct span name)
{
    const struct topic_cache_slot *slot = &cache->slots[slot_of(name)];
    bool is_same = slot->id != 0 && span_equal(span_of(slot->name, slot->length), name);
    return is_same ? slot->id : 0;
}

void topic_cache_add(struct topic_cache *cache, struct span name, int64_t id)
{
    if (name.length == 0 || name.length > TOPIC_CACHE_NAME_BYTES) {
        return;
    }
    struct topic_cache_slot *slot = &cache->slots[slot_of(name)];
    slot->id = id;
    slot->length = name.length;
    memcpy(slot->name, name.bytes, name.length);
}
