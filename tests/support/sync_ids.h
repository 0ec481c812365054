/* SPDX-License-Identifier: MIT */
#pragma once

/* Message ids made up for the tests of store-sync, and what a sync set says of them, computed plainly. */

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/span.h"
#include "hash/fast_key.h"
#include "router/sync_set.h"

/* splitmix64: the same numbers in every run. */
static inline uint64_t next_random(uint64_t *state)
{
    uint64_t z = (*state += UINT64_C(0x9E3779B97F4A7C15));
    z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
    return z ^ (z >> 31);
}

static inline struct id_record make_record(
        int64_t timestamp_ns, uint64_t number, const struct topic *topic, const char *content_topic)
{
    struct id_record record = {
            .timestamp_ns = timestamp_ns,
            .topic = topic,
            .content_topic_key = fast_key_of_bytes(span_of_text(content_topic)),
    };
    for (size_t i = 0; i < sizeof(record.hash); i += 8) {
        uint64_t word = next_random(&number);
        memcpy(record.hash + i, &word, 8);
    }
    return record;
}

static inline struct id_key key_of(const struct id_record *record)
{
    struct id_key key = {.timestamp_ns = record->timestamp_ns};
    memcpy(key.hash, record->hash, sizeof(key.hash));
    return key;
}

static inline int compare_plainly(const void *a, const void *b)
{
    const struct id_key *left = a;
    const struct id_key *right = b;
    if (left->timestamp_ns != right->timestamp_ns) {
        return left->timestamp_ns < right->timestamp_ns ? -1 : 1;
    }
    return memcmp(left->hash, right->hash, sizeof(left->hash));
}

static inline struct id_key bound_at(int64_t timestamp_ns, uint8_t fill)
{
    struct id_key key = {.timestamp_ns = timestamp_ns};
    memset(key.hash, fill, sizeof(key.hash));
    return key;
}
