/* SPDX-License-Identifier: MIT */
#include "hash/id_pool.h"

#include <assert.h>
#include <stdalign.h>
#include <string.h>

#include "base/memory.h"

enum {
    LARGEST_SLAB_NODES = 16 /* about 50 to 90 KB */
};

struct id_pool_slab {
    struct id_pool_slab *next;
    alignas(max_align_t) char nodes[];
};

void id_pool_init(struct id_pool *pool, size_t node_bytes)
{
    assert(node_bytes % alignof(void *) == 0 && node_bytes >= sizeof(void *));
    *pool = (struct id_pool){.node_bytes = node_bytes, .next_slab_nodes = 1};
}

void id_pool_fini(struct id_pool *pool)
{
    while (pool->slabs != NULL) {
        struct id_pool_slab *slab = pool->slabs;
        pool->slabs = slab->next;
        memory_free(slab);
    }
    id_pool_init(pool, pool->node_bytes);
}

enum status id_pool_reserve(struct id_pool *pool, size_t count)
{
    while (pool->free_count < count) {
        size_t nodes = pool->next_slab_nodes;
        size_t bytes = sizeof(struct id_pool_slab) + nodes * pool->node_bytes;
        struct id_pool_slab *slab = memory_allocate(bytes);
        if (slab == NULL) {
            return STATUS_NO_MEMORY;
        }
        slab->next = pool->slabs;
        pool->slabs = slab;
        pool->bytes += bytes;
        if (nodes < LARGEST_SLAB_NODES) {
            pool->next_slab_nodes = nodes * 2;
        }
        for (size_t i = 0; i < nodes; i++) {
            id_pool_give(pool, slab->nodes + i * pool->node_bytes);
        }
    }
    return STATUS_OK;
}

void *id_pool_take(struct id_pool *pool)
{
    assert(pool->free_count > 0);
    void *node = pool->free_nodes;
    memcpy(&pool->free_nodes, node, sizeof(pool->free_nodes));
    pool->free_count--;
    return node;
}

void id_pool_give(struct id_pool *pool, void *node)
{
    memcpy(node, &pool->free_nodes, sizeof(pool->free_nodes));
    pool->free_nodes = node;
    pool->free_count++;
}
