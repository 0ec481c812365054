/* SPDX-License-Identifier: MIT */
#include "router/promises.h"

#include <string.h>

#include "base/memory.h"
#include "hash/fast_key.h"

struct promise {
    struct promise *newer;
    struct promise *next_same; /* another one with the same key */
    uint64_t key;
    uint64_t peer;
    uint64_t deadline_ns;
    bool is_kept; /* and no longer in the map */
    uint8_t id[MESSAGE_ID_BYTES];
};

static uint64_t key_of(const uint8_t *id)
{
    return fast_key_of_bytes(span_of(id, MESSAGE_ID_BYTES));
}

void promises_add(struct promises *promises, uint64_t peer, const uint8_t id[MESSAGE_ID_BYTES],
        uint64_t deadline_ns)
{
    struct promise *promise = memory_allocate_zeroed(sizeof(*promise));
    if (promise == NULL) {
        return;
    }
    promise->key = key_of(id);
    promise->peer = peer;
    promise->deadline_ns = deadline_ns;
    memcpy(promise->id, id, MESSAGE_ID_BYTES);
    promise->next_same = peer_map_find(&promises->by_id, promise->key);
    if (!peer_map_put(&promises->by_id, promise->key, promise)) {
        memory_free(promise);
        return;
    }
    if (promises->newest != NULL) {
        promises->newest->newer = promise;
    } else {
        promises->oldest = promise;
    }
    promises->newest = promise;
    promises->count++;
}

void promises_keep(struct promises *promises, const uint8_t id[MESSAGE_ID_BYTES])
{
    uint64_t key = key_of(id);
    struct promise *promise = peer_map_find(&promises->by_id, key);
    if (promise == NULL || memcmp(promise->id, id, MESSAGE_ID_BYTES) != 0) {
        return;
    }
    (void)peer_map_take(&promises->by_id, key);
    while (promise != NULL) {
        promise->is_kept = true;
        promise = promise->next_same;
    }
}

static void unlink_from_chain(struct promises *promises, struct promise *promise)
{
    struct promise *before = peer_map_find(&promises->by_id, promise->key);
    if (before == promise) {
        /* the oldest of a chain is its last: nothing follows */
        (void)peer_map_take(&promises->by_id, promise->key);
        return;
    }
    while (before->next_same != promise) {
        before = before->next_same;
    }
    before->next_same = NULL;
}

static struct promise *take_oldest(struct promises *promises)
{
    struct promise *promise = promises->oldest;
    promises->oldest = promise->newer;
    if (promises->oldest == NULL) {
        promises->newest = NULL;
    }
    promises->count--;
    if (!promise->is_kept) {
        unlink_from_chain(promises, promise);
    }
    return promise;
}

bool promises_take_broken(struct promises *promises, uint64_t now_ns, uint64_t *peer)
{
    bool is_broken = false;
    while (!is_broken && promises->oldest != NULL && promises->oldest->deadline_ns <= now_ns) {
        struct promise *promise = take_oldest(promises);
        is_broken = !promise->is_kept;
        *peer = promise->peer;
        memory_free(promise);
    }
    return is_broken;
}

void promises_fini(struct promises *promises)
{
    while (promises->oldest != NULL) {
        memory_free(take_oldest(promises));
    }
    peer_map_fini(&promises->by_id);
}
