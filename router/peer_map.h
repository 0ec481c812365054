/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * A hash map from 64-bit keys to pointers for one thread: what the relay's decisions keep by peer.
 *
 * Keys come from this process (ids of peers, keyed hashes), so nobody outside can make them collide.
 * An empty map holds no memory. Thread: one.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/attributes.h"

struct peer_slot {
    uint64_t key;
    void *value; /* NULL: free */
};

struct peer_map {
    struct peer_slot *slots;
    size_t capacity; /* a power of two, or 0 */
    size_t count;
};

/* All zero is an empty map. The values are the caller's. */
void peer_map_fini(struct peer_map *map);

void *BORROWED peer_map_find(const struct peer_map *map, uint64_t key);

/* value must not be NULL; replaces what was there, which always succeeds. False: no memory. */
MUST_USE bool peer_map_put(struct peer_map *map, uint64_t key, void *value);

/* Takes the value out, NULL when there is none. */
void *peer_map_take(struct peer_map *map, uint64_t key);

/*
 * The first used slot at or after *position, which moves behind it; NULL: no more. After taking out
 * the key of that slot, peer_map_step_back lets the walk go on without missing one (it may show
 * another one twice).
 */
struct peer_slot *BORROWED peer_map_next(const struct peer_map *map, size_t *position);
void peer_map_step_back(size_t *position);
