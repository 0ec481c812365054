/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The criteria of the subscription table: a map from (pubsub topic, content topic) to the list of
 * subscribers. Part of router/subscriptions, which is the only one that uses it.
 *
 * Thread: as router/subscriptions.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/attributes.h"
#include "base/rcu.h"
#include "base/span.h"
#include "base/status.h"
#include "hash/shared_map.h"
#include "router/subscriptions.h"

enum {
    CRITERION_TOPIC_MAX_BYTES = 1024
};

/*
 * The entries that lists of one criterion share: a longer list adds behind the end of those before
 * it, which do not look there, so that adding copies only when the block is full.
 */
struct entry_block {
    struct rcu_head reclaim;
    size_t capacity;
    struct subscriber_entry entries[];
};

struct criterion_list {
    struct subscriber_list face;
    struct entry_block *block;
    struct rcu_head reclaim;
};

struct criterion {
    struct shared_map_node node;
    struct criterion_list *list; /* published; NULL: nobody */
    struct criterion_list *next; /* the writer's: prepared, not yet published */
    uint64_t stamp;              /* the writer's: the last request that named it */
    struct rcu_head reclaim;
    struct span pubsub_topic; /* these two point into key */
    struct span content_topic;
    size_t key_length;
    uint8_t key[];
};

/* Neither is empty nor longer than CRITERION_TOPIC_MAX_BYTES. */
bool criterion_is_valid(struct span pubsub_topic, struct span content_topic);

bool criterion_matches(const struct shared_map_node *node, struct span key);

/* NULL when there is none. */
struct criterion *BORROWED criterion_find(
        struct shared_map *map, struct span pubsub_topic, struct span content_topic);

/* Made if need be, with no list. NULL: no memory. */
struct criterion *BORROWED criterion_find_or_add(
        struct shared_map *map, struct span pubsub_topic, struct span content_topic);

/* Readers: the list as it is now. */
const struct subscriber_list *BORROWED criterion_list(const struct criterion *criterion);

/* Adding is prepared first (false: no memory) and then either published or given up. */
MUST_USE bool criterion_prepare(struct criterion *criterion, struct subscriber_entry entry);
void criterion_publish(struct criterion *criterion);
void criterion_give_up(struct criterion *criterion);

/* The entry must be there. Always succeeds; without memory it waits for the readers. */
void criterion_remove(struct criterion *criterion, uint64_t id);

/* Takes it out of the map when nobody is on its list any more. */
void criterion_release(struct shared_map *map, struct criterion *criterion);
