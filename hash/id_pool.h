/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Nodes of one size, for id_tree only: cut from slabs that grow with the pool, kept on a free list when
 * they come back, and given to the system all at once by fini.
 *
 * Thread: one at a time.
 */

#include <stddef.h>

#include "base/attributes.h"
#include "base/status.h"

struct id_pool_slab;

struct id_pool {
    size_t node_bytes; /* a multiple of 8 */
    void *free_nodes;  /* each holds the pointer to the next */
    size_t free_count;
    size_t next_slab_nodes;
    size_t bytes; /* of all slabs */
    struct id_pool_slab *slabs;
};

void id_pool_init(struct id_pool *pool, size_t node_bytes);

/* Nodes that were taken die with their slabs. */
void id_pool_fini(struct id_pool *pool);

/* After it, count nodes can be taken without asking the system for memory. */
MUST_USE enum status id_pool_reserve(struct id_pool *pool, size_t count);

/* A node whose content is undefined. At least one must have been reserved. */
MUST_USE void *id_pool_take(struct id_pool *pool);
void id_pool_give(struct id_pool *pool, void *CONSUMED node);
