/* SPDX-License-Identifier: MIT */
#include "hash/refusal_cache.h"

#include <assert.h>
#include <stdbool.h>

#include "base/memory.h"

enum {
    WAYS = 4
};

struct refusal {
    struct wide_key key;
    uint64_t refused_ns;
    uint32_t reason; /* 0: free */
};

/* Two cache lines. */
struct bucket {
    struct refusal ways[WAYS];
};

struct refusal_cache {
    uint64_t window_ns;
    uint64_t last_refused_ns;
    bool is_used;
    size_t bucket_mask;
    struct bucket buckets[];
};

enum status refusal_cache_create(struct refusal_cache **out, size_t entries, uint64_t window_ns)
{
    assert(entries >= WAYS && (entries & (entries - 1)) == 0);
    size_t buckets = entries / WAYS;
    struct refusal_cache *cache =
            memory_allocate_zeroed(sizeof(*cache) + buckets * sizeof(struct bucket));
    if (cache == NULL) {
        return STATUS_NO_MEMORY;
    }
    cache->window_ns = window_ns;
    cache->bucket_mask = buckets - 1;
    *out = cache;
    return STATUS_OK;
}

void refusal_cache_destroy(struct refusal_cache **cache)
{
    memory_free(*cache);
    *cache = NULL;
}

static bool is_current(
        const struct refusal_cache *cache, const struct refusal *refusal, uint64_t now_ns)
{
    return refusal->reason != 0 && now_ns - refusal->refused_ns < cache->window_ns;
}

static bool has_key(const struct refusal *refusal, struct wide_key key)
{
    return refusal->key.low == key.low && refusal->key.high == key.high;
}

static size_t bucket_of(const struct refusal_cache *cache, struct wide_key key)
{
    return (size_t)key.low & cache->bucket_mask;
}

bool refusal_cache_may_have(const struct refusal_cache *cache, uint64_t key_low, uint64_t now_ns)
{
    /* Where nothing is refused, the bucket's cache lines are not looked at. */
    if (!cache->is_used || now_ns >= cache->last_refused_ns + cache->window_ns) {
        return false;
    }
    const struct bucket *bucket = &cache->buckets[(size_t)key_low & cache->bucket_mask];
    for (int i = 0; i < WAYS; i++) {
        if (bucket->ways[i].reason != 0 && bucket->ways[i].key.low == key_low) {
            return true;
        }
    }
    return false;
}

uint32_t refusal_cache_find(const struct refusal_cache *cache, struct wide_key key, uint64_t now_ns)
{
    const struct bucket *bucket = &cache->buckets[bucket_of(cache, key)];
    for (int i = 0; i < WAYS; i++) {
        const struct refusal *refusal = &bucket->ways[i];
        if (has_key(refusal, key) && is_current(cache, refusal, now_ns)) {
            return refusal->reason;
        }
    }
    return 0;
}

void refusal_cache_insert(
        struct refusal_cache *cache, struct wide_key key, uint32_t reason, uint64_t now_ns)
{
    assert(reason != 0);
    if (refusal_cache_find(cache, key, now_ns) != 0) {
        return;
    }
    /* What has never been used or is past its window is older than all that counts. */
    struct bucket *bucket = &cache->buckets[bucket_of(cache, key)];
    struct refusal *oldest = &bucket->ways[0];
    for (int i = 1; i < WAYS; i++) {
        if (bucket->ways[i].refused_ns < oldest->refused_ns) {
            oldest = &bucket->ways[i];
        }
    }
    cache->is_used = true;
    if (now_ns > cache->last_refused_ns) {
        cache->last_refused_ns = now_ns;
    }
    *oldest = (struct refusal){.key = key, .refused_ns = now_ns, .reason = reason};
}
