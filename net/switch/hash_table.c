/* SPDX-License-Identifier: MIT */
#include "net/switch/hash_table.h"

#include <assert.h>

#include "base/memory.h"

enum {
    BUCKETS_FIRST = 64 /* a power of two, as all sizes are */
};

enum status hash_table_init(struct hash_table *table)
{
    table->buckets = memory_allocate_zeroed(BUCKETS_FIRST * sizeof(struct hash_link *));
    table->bucket_count = BUCKETS_FIRST;
    table->count = 0;
    return table->buckets == NULL ? STATUS_NO_MEMORY : STATUS_OK;
}

void hash_table_fini(struct hash_table *table)
{
    memory_free(table->buckets);
    table->buckets = NULL;
}

static struct hash_link **bucket_of(const struct hash_table *table, uint64_t hash)
{
    return &table->buckets[hash & (table->bucket_count - 1)];
}

static void push(struct hash_table *table, struct hash_link *link)
{
    struct hash_link **bucket = bucket_of(table, link->hash);
    link->next = *bucket;
    *bucket = link;
}

static void grow(struct hash_table *table)
{
    struct hash_link **old = table->buckets;
    size_t old_count = table->bucket_count;
    struct hash_link **buckets = memory_allocate_zeroed(old_count * 2 * sizeof(struct hash_link *));
    if (buckets == NULL) {
        return;
    }
    table->buckets = buckets;
    table->bucket_count = old_count * 2;
    for (size_t i = 0; i < old_count; i++) {
        struct hash_link *link = old[i];
        while (link != NULL) {
            struct hash_link *next = link->next;
            push(table, link);
            link = next;
        }
    }
    memory_free(old);
}

void hash_table_insert(struct hash_table *table, struct hash_link *link, uint64_t hash)
{
    if (table->count >= table->bucket_count) {
        grow(table);
    }
    link->hash = hash;
    push(table, link);
    table->count++;
}

void hash_table_remove(struct hash_table *table, struct hash_link *link)
{
    struct hash_link **place = bucket_of(table, link->hash);
    while (*place != link) {
        assert(*place != NULL);
        place = &(*place)->next;
    }
    *place = link->next;
    table->count--;
}

struct hash_link *hash_table_first(const struct hash_table *table, uint64_t hash)
{
    struct hash_link *link = *bucket_of(table, hash);
    while (link != NULL && link->hash != hash) {
        link = link->next;
    }
    return link;
}

struct hash_link *hash_table_next(const struct hash_link *link)
{
    uint64_t hash = link->hash;
    link = link->next;
    while (link != NULL && link->hash != hash) {
        link = link->next;
    }
    return (struct hash_link *)link;
}
