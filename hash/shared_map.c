/* SPDX-License-Identifier: MIT */
#include "hash/shared_map.h"

#include <assert.h>
#include <stdatomic.h>

#include "base/memory.h"
#include "hash/fast_key.h"

/*
 * The table's own atomics are inline assembly inside liburcu, so TSan is told about them here:
 *
 *   PUBLISH  hand-over of a node before it is added -> take-over by whoever meets it in the table.
 *            The reader sees the object as it was when it was added.
 */

enum {
    FIRST_BUCKETS = 64 /* a power of two */
};

struct shared_map {
    struct cds_lfht *table;
    shared_map_match *matches;
    atomic_size_t count;
};

struct search {
    const struct shared_map *map;
    struct span key;
};

static struct shared_map_node *node_of(struct cds_lfht_node *link)
{
    return (struct shared_map_node *)((char *)link - offsetof(struct shared_map_node, link));
}

static int matches(struct cds_lfht_node *link, const void *context)
{
    const struct search *search = context;
    TSAN_TAKE_OVER(link); /* PUBLISH */
    return search->map->matches(node_of(link), search->key) ? 1 : 0;
}

enum status shared_map_create(struct shared_map **out, shared_map_match *matches_key)
{
    struct shared_map *map = memory_allocate(sizeof(*map));
    if (map == NULL) {
        return STATUS_NO_MEMORY;
    }
    map->table = cds_lfht_new_flavor(
            FIRST_BUCKETS, FIRST_BUCKETS, 0, CDS_LFHT_AUTO_RESIZE, &urcu_qsbr_flavor, NULL);
    if (map->table == NULL) {
        memory_free(map);
        return STATUS_NO_MEMORY;
    }
    map->matches = matches_key;
    atomic_init(&map->count, 0);
    *out = map;
    return STATUS_OK;
}

void shared_map_destroy(struct shared_map **map)
{
    if (*map == NULL) {
        return;
    }
    int failed = cds_lfht_destroy((*map)->table, NULL);
    assert(failed == 0); /* not empty, or called where it may not be */
    (void)failed;
    memory_free(*map);
    *map = NULL;
}

struct shared_map_node *shared_map_add_unique(
        struct shared_map *map, struct span key, struct shared_map_node *node)
{
    struct search search = {.map = map, .key = key};
    cds_lfht_node_init(&node->link);
    TSAN_HAND_OVER(&node->link); /* PUBLISH */
    struct cds_lfht_node *held =
            cds_lfht_add_unique(map->table, fast_key_of_bytes(key), matches, &search, &node->link);
    if (held == &node->link) {
        /* relaxed: a count orders nothing */
        atomic_fetch_add_explicit(&map->count, 1, memory_order_relaxed);
    }
    return node_of(held);
}

struct shared_map_node *shared_map_find(struct shared_map *map, struct span key)
{
    struct search search = {.map = map, .key = key};
    struct cds_lfht_iter place;
    cds_lfht_lookup(map->table, fast_key_of_bytes(key), matches, &search, &place);
    struct cds_lfht_node *link = cds_lfht_iter_get_node(&place);
    return link == NULL ? NULL : node_of(link);
}

bool shared_map_remove(struct shared_map *map, struct shared_map_node *node)
{
    if (cds_lfht_del(map->table, &node->link) != 0) {
        return false;
    }
    /* relaxed: a count orders nothing */
    atomic_fetch_sub_explicit(&map->count, 1, memory_order_relaxed);
    return true;
}

size_t shared_map_count(const struct shared_map *map)
{
    /* relaxed: a count orders nothing */
    return atomic_load_explicit(&map->count, memory_order_relaxed);
}

void shared_map_for_each(struct shared_map *map, shared_map_visit *visit, void *context)
{
    struct cds_lfht_iter place;
    struct cds_lfht_node *link;
    cds_lfht_for_each(map->table, &place, link)
    {
        TSAN_TAKE_OVER(link); /* PUBLISH */
        if (!visit(node_of(link), context)) {
            return;
        }
    }
}
