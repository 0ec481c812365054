/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Numbers for objects that other threads may name long after they are gone: an index, and a
 * generation that is new each time the index is used again.
 *
 * Thread: one.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/attributes.h"

struct slot;

/* All zero is an empty table; tag is part of every number, so that tables can be told apart. */
struct slot_table {
    struct slot *slots;
    uint32_t capacity;
    uint32_t first_free; /* index + 1; 0: none */
    uint32_t count;
    uint8_t tag;
};

void slot_table_fini(struct slot_table *table);

/* The number, never 0; 0 when there is no memory or the table is full (16 million). */
MUST_USE uint64_t slot_table_add(struct slot_table *table, void *object);
void slot_table_remove(struct slot_table *table, uint64_t number);

/* NULL when that number is not (or no longer) in use. */
void *slot_table_find(const struct slot_table *table, uint64_t number);

/* The object at index below capacity, NULL when it is free: to visit all. */
void *slot_table_at(const struct slot_table *table, uint32_t index);

static inline uint8_t slot_table_tag_of(uint64_t number)
{
    return (uint8_t)(number >> 24);
}
