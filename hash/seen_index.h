/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * From a 64-bit key to positions of entries that the caller keeps, for seen_set only.
 *
 * Open addressing without tombstones. A slot carries 32 bits of its key, so that a key that is not
 * there is nearly always recognised in one cache line, without a look at any entry.
 *
 * Thread: one.
 */

#include <stddef.h>
#include <stdint.h>

#include "base/attributes.h"
#include "base/status.h"

#define SEEN_INDEX_NONE UINT32_MAX

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

/* 2^bits slots, bits from 1 to 31. At least one slot must always stay empty. */
MUST_USE enum status seen_index_init(struct seen_index *index, uint32_t bits);
void seen_index_fini(struct seen_index *index);

struct seen_index_search seen_index_search(const struct seen_index *index, uint64_t key);

/* The next position whose key may be the one searched; the caller compares. SEEN_INDEX_NONE: no more. */
uint32_t seen_index_next(const struct seen_index *index, struct seen_index_search *search);

void seen_index_insert(struct seen_index *index, uint64_t key, uint32_t position);

/* Fetches what insert, move and remove of key will touch. */
void seen_index_prefetch(const struct seen_index *index, uint64_t key);

/* The pair (key, position) must be there, for both. */
void seen_index_move(struct seen_index *index, uint64_t key, uint32_t from, uint32_t to);
void seen_index_remove(struct seen_index *index, uint64_t key, uint32_t position);
