/* SPDX-License-Identifier: MIT */
#pragma once

/* The ids of topic names that were used last, so that a put rarely asks the index for them. */

#include <stdint.h>

#include "base/attributes.h"
#include "base/span.h"

enum {
    TOPIC_CACHE_SLOTS = 256,
    TOPIC_CACHE_NAME_BYTES = 128 /* longer names are not remembered */
};

struct topic_cache_slot {
    int64_t id; /* 0: free */
    size_t length;
    uint8_t name[TOPIC_CACHE_NAME_BYTES];
};

struct topic_cache {
    struct topic_cache_slot slots[TOPIC_CACHE_SLOTS];
};

void topic_cache_clear(struct topic_cache *cache);

/* 0 when it is not known. */
MUST_USE int64_t topic_cache_find(const struct topic_cache *cache, struct span name);
void topic_cache_add(struct topic_cache *cache, struct span name, int64_t id);
