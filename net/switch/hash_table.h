/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * A chained hash table of objects that embed their link. The hash is the caller's, keyed with a
 * secret where a peer chooses the key.
 *
 * Thread: one.
 */

#include <stddef.h>
#include <stdint.h>

#include "base/attributes.h"
#include "base/status.h"

struct hash_link {
    struct hash_link *next;
    uint64_t hash;
};

struct hash_table {
    struct hash_link **buckets;
    size_t bucket_count;
    size_t count;
};

MUST_USE enum status hash_table_init(struct hash_table *table);
void hash_table_fini(struct hash_table *table);

/* Never fails: without memory to grow, chains get longer. */
void hash_table_insert(struct hash_table *table, struct hash_link *link, uint64_t hash);
void hash_table_remove(struct hash_table *table, struct hash_link *link);

/* The first link of that hash, and the one of the same hash behind link; NULL: none. */
struct hash_link *hash_table_first(const struct hash_table *table, uint64_t hash);
struct hash_link *hash_table_next(const struct hash_link *link);
