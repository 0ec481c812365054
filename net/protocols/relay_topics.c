/* SPDX-License-Identifier: MIT */
#include "net/protocols/relay_topics.h"

#include "base/memory.h"
#include "hash/fast_key.h"

enum {
    FIRST_CAPACITY = 8
};

void relay_topics_fini(struct relay_topics *topics)
{
    memory_free(topics->keys);
    *topics = (struct relay_topics){0};
}

/* The place of key, or where it belongs. */
static uint32_t place_of(const struct relay_topics *topics, uint64_t key)
{
    uint32_t low = 0;
    uint32_t high = topics->count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (topics->keys[middle] < key) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static bool is_at(const struct relay_topics *topics, uint32_t place, uint64_t key)
{
    return place < topics->count && topics->keys[place] == key;
}

static bool make_room(struct relay_topics *topics)
{
    if (topics->count < topics->capacity) {
        return true;
    }
    uint32_t capacity = topics->capacity == 0 ? FIRST_CAPACITY : topics->capacity * 2;
    uint64_t *keys = memory_resize(topics->keys, capacity * sizeof(*keys));
    if (keys == NULL) {
        return false;
    }
    topics->keys = keys;
    topics->capacity = capacity;
    return true;
}

bool relay_topics_add(struct relay_topics *topics, struct span name)
{
    uint64_t key = fast_key_of_bytes(name);
    uint32_t place = place_of(topics, key);
    if (is_at(topics, place, key)) {
        return true;
    }
    if (topics->count == RELAY_TOPICS_MAX || !make_room(topics)) {
        return false;
    }
    memmove(topics->keys + place + 1, topics->keys + place,
            (topics->count - place) * sizeof(*topics->keys));
    topics->keys[place] = key;
    topics->count++;
    return true;
}

void relay_topics_remove(struct relay_topics *topics, struct span name)
{
    uint64_t key = fast_key_of_bytes(name);
    uint32_t place = place_of(topics, key);
    if (is_at(topics, place, key)) {
        topics->count--;
        memmove(topics->keys + place, topics->keys + place + 1,
                (topics->count - place) * sizeof(*topics->keys));
    }
}

bool relay_topics_has(const struct relay_topics *topics, struct span name)
{
    uint64_t key = fast_key_of_bytes(name);
    return is_at(topics, place_of(topics, key), key);
}
