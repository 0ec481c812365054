/* SPDX-License-Identifier: MIT */
#include "router/unwanted_ids.h"

#include "hash/fast_key.h"

static uint64_t key_of(const uint8_t *id)
{
    return fast_key_of_bytes(span_of(id, MESSAGE_ID_BYTES));
}

void unwanted_ids_fini(struct unwanted_ids *ids)
{
    peer_map_fini(&ids->by_key);
}

bool unwanted_ids_add(struct unwanted_ids *ids, const uint8_t id[MESSAGE_ID_BYTES], size_t max)
{
    if (ids->in_heartbeat >= max) {
        return false;
    }
    ids->in_heartbeat++;
    return peer_map_put(&ids->by_key, key_of(id), (void *)(uintptr_t)(ids->heartbeat + 1));
}

bool unwanted_ids_contain(const struct unwanted_ids *ids, const uint8_t id[MESSAGE_ID_BYTES])
{
    return ids->by_key.count > 0 && peer_map_find(&ids->by_key, key_of(id)) != NULL;
}

void unwanted_ids_shift(struct unwanted_ids *ids, unsigned history)
{
    ids->heartbeat++;
    ids->in_heartbeat = 0;
    size_t position = 0;
    struct peer_slot *slot;
    while ((slot = peer_map_next(&ids->by_key, &position)) != NULL) {
        uint64_t heartbeat = (uint64_t)(uintptr_t)slot->value - 1;
        if (ids->heartbeat - heartbeat >= history) {
            (void)peer_map_take(&ids->by_key, slot->key);
            peer_map_step_back(&position);
        }
    }
}
