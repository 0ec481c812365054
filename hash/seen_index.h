/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * From a 64-bit key to positions of entries that the caller keeps, for seen_set only.
 *
 * Open addressing without tombstones. A slot carries 32 bits of its key, so that a key that is not
 * there is nearly always recognised in one cache line, without a look at any entry.
 *
 * It begins small and doubles: a table of the full size would have nearly each of its pages become
 * resident by one entry, at the price of a page fault a message. Slots lie in the order of their tags,
 * so doubling is a walk through both tables in order, some nanoseconds an entry.
 *
 * Thread: one.
 */

#include <stddef.h>
#include <stdint.h>

#include "base/attributes.h"
#include "base/status.h"

#define SEEN_INDEX_NONE UINT32_MAX

enum {
    SEEN_INDEX_LEAST_BITS = 6,
    SEEN_INDEX_MOST_BITS = 31
};

struct seen_index {
    uint64_t *slots; /* tag << 32 | position + 1; 0 is empty */
    uint32_t mask;
    uint32_t shift; /* from a tag to its home slot */
};

/* Where a search goes on. */
struct seen_index_search {
    uint32_t tag;
    uint32_t slot;
};

/* 2^bits slots. */
MUST_USE enum status seen_index_init(struct seen_index *index, uint32_t bits);

/*
 * Before an insert that makes count entries: the table is doubled when it would be filled to more than
 * three quarters. Fails only for want of memory; the index is then as it was.
 */
MUST_USE enum status seen_index_reserve(struct seen_index *index, size_t count);
size_t seen_index_bytes(const struct seen_index *index);

/* The entries that a table of 2^bits slots takes. */
size_t seen_index_capacity(uint32_t bits);

void seen_index_fini(struct seen_index *index);

struct seen_index_search seen_index_search(const struct seen_index *index, uint64_t key);

/* The next position whose key may be the one searched; the caller compares. SEEN_INDEX_NONE: no more. */
uint32_t seen_index_next(const struct seen_index *index, struct seen_index_search *search);

/* There must be room: see reserve. */
void seen_index_insert(struct seen_index *index, uint64_t key, uint32_t position);

/* Fetches what insert, move and remove of key will touch. */
void seen_index_prefetch(const struct seen_index *index, uint64_t key);

/* The pair (key, position) must be there, for both. */
void seen_index_move(struct seen_index *index, uint64_t key, uint32_t from, uint32_t to);
void seen_index_remove(struct seen_index *index, uint64_t key, uint32_t position);
