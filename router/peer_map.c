/* SPDX-License-Identifier: MIT */
#include "router/peer_map.h"

#include "base/memory.h"

enum {
    FIRST_CAPACITY = 8
};

void peer_map_fini(struct peer_map *map)
{
    memory_free(map->slots);
    *map = (struct peer_map){.slots = NULL};
}

/* Fibonacci hashing: neighbouring keys end up far apart. */
static size_t home_of(const struct peer_map *map, uint64_t key)
{
    return (size_t)((key * UINT64_C(0x9E3779B97F4A7C15)) >> 32) & (map->capacity - 1);
}

/* The slot of key, or the free one where it would go. At least a quarter of the slots are free. */
static size_t slot_of(const struct peer_map *map, uint64_t key)
{
    size_t slot = home_of(map, key);
    while (map->slots[slot].value != NULL && map->slots[slot].key != key) {
        slot = (slot + 1) & (map->capacity - 1);
    }
    return slot;
}

void *peer_map_find(const struct peer_map *map, uint64_t key)
{
    return map->count == 0 ? NULL : map->slots[slot_of(map, key)].value;
}

static bool grow(struct peer_map *map)
{
    struct peer_map grown = {
            .capacity = map->capacity == 0 ? FIRST_CAPACITY : map->capacity * 2,
            .count = map->count,
    };
    grown.slots = memory_allocate_zeroed(grown.capacity * sizeof(grown.slots[0]));
    if (grown.slots == NULL) {
        return false;
    }
    for (size_t i = 0; i < map->capacity; i++) {
        if (map->slots[i].value != NULL) {
            grown.slots[slot_of(&grown, map->slots[i].key)] = map->slots[i];
        }
    }
    memory_free(map->slots);
    *map = grown;
    return true;
}

bool peer_map_put(struct peer_map *map, uint64_t key, void *value)
{
    size_t slot = map->count == 0 ? 0 : slot_of(map, key);
    if (map->count > 0 && map->slots[slot].value != NULL) {
        map->slots[slot].value = value;
        return true;
    }
    if ((map->count + 1) * 4 > map->capacity * 3 && !grow(map)) {
        return false;
    }
    slot = slot_of(map, key);
    map->count++;
    map->slots[slot] = (struct peer_slot){.key = key, .value = value};
    return true;
}

/* Moves back what was pushed past the freed slot, so that no search ends too early. */
static void close_gap(struct peer_map *map, size_t gap)
{
    size_t mask = map->capacity - 1;
    size_t slot = gap;
    for (;;) {
        slot = (slot + 1) & mask;
        if (map->slots[slot].value == NULL) {
            break;
        }
        size_t home = home_of(map, map->slots[slot].key);
        if (((slot - home) & mask) >= ((slot - gap) & mask)) {
            map->slots[gap] = map->slots[slot];
            gap = slot;
        }
    }
    map->slots[gap].value = NULL;
}

void *peer_map_take(struct peer_map *map, uint64_t key)
{
    if (map->count == 0) {
        return NULL;
    }
    size_t slot = slot_of(map, key);
    void *value = map->slots[slot].value;
    if (value == NULL) {
        return NULL;
    }
    map->count--;
    if (map->count == 0) {
        peer_map_fini(map);
    } else {
        close_gap(map, slot);
    }
    return value;
}

struct peer_slot *peer_map_next(const struct peer_map *map, size_t *position)
{
    while (*position < map->capacity) {
        struct peer_slot *slot = &map->slots[(*position)++];
        if (slot->value != NULL) {
            return slot;
        }
    }
    return NULL;
}

void peer_map_step_back(size_t *position)
{
    (*position)--;
}
