/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Which topics a peer has announced, known to this node or not, so that a topic can be joined later.
 * Names come from the peer, so only a keyed hash of each is kept, and of at most RELAY_TOPICS_MAX.
 *
 * Thread: one.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/attributes.h"
#include "base/span.h"

enum {
    RELAY_TOPICS_MAX = 1024 /* 8 KiB a peer; as many as a node takes part in by default */
};

/* All zero is empty. */
struct relay_topics {
    uint64_t *keys; /* ascending */
    uint32_t count;
    uint32_t capacity;
};

void relay_topics_fini(struct relay_topics *topics);

/* False when it is not remembered: the set is full, or there is no memory. */
MUST_USE bool relay_topics_add(struct relay_topics *topics, struct span name);
void relay_topics_remove(struct relay_topics *topics, struct span name);
bool relay_topics_has(const struct relay_topics *topics, struct span name);
