/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * A hash map from a byte-string key to an object, for any number of reading and writing threads
 * (liburcu's lock-free hash table, which nothing else in the tree sees).
 *
 * The object embeds a shared_map_node and keeps its own key; the map asks for it by the match
 * function. The map grows and shrinks by itself.
 *
 * Progress:   find is wait-free, add and remove are lock-free.
 * Ownership:  the caller's. After a successful remove the object goes to rcu_retire, never to free,
 *             and its node may be added again only after that grace period.
 * Lifetime:   what find, add_unique or for_each give is valid until the thread turns over
 *             (rcu_turn_over) or goes offline, unless the object is also counted.
 * Thread:     any that is registered with RCU and online; create and destroy: any registered one.
 */

#include <stdbool.h>
#include <stddef.h>
#include <urcu/rculfhash.h>

#include "base/attributes.h"
#include "base/rcu.h"
#include "base/span.h"
#include "base/status.h"

struct shared_map_node {
    struct cds_lfht_node link;
};

struct shared_map;

/* Whether the object of node has that key. */
typedef bool shared_map_match(const struct shared_map_node *node, struct span key);

/* False ends the walk. */
typedef bool shared_map_visit(struct shared_map_node *node, void *context);

MUST_USE enum status shared_map_create(struct shared_map **out, shared_map_match *matches);

/* The map must be empty and nobody may use it any more. Not inside a free_object function. */
void shared_map_destroy(struct shared_map **map);

/*
 * Returns what the map holds under key afterwards: node itself if it was added, else the one that
 * was there before, and node still belongs to the caller. The object is immutable from now on, as
 * far as its key goes.
 */
MUST_USE struct shared_map_node *BORROWED shared_map_add_unique(
        struct shared_map *map, struct span key, struct shared_map_node *node);

struct shared_map_node *BORROWED shared_map_find(struct shared_map *map, struct span key);

/* True for exactly one of those who remove a node: that one retires the object. */
MUST_USE bool shared_map_remove(struct shared_map *map, struct shared_map_node *node);

/* Exact while nobody writes. */
size_t shared_map_count(const struct shared_map *map);

/* Sees every node that is in the map all the while; those that come or go meanwhile, perhaps. */
void shared_map_for_each(struct shared_map *map, shared_map_visit *visit, void *context);
