/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * An ordered set of message ids (timestamp, hash), each with a value, that tells the number of ids
 * in any range and the XOR of their hashes in O(log n): the set of store-sync and the index of the
 * memory archive.
 *
 * A B+tree whose inner nodes hold count and XOR of every child. Nodes come from slabs and go back to
 * a list of free ones, so inserting rarely allocates; 60 to 100 bytes an id.
 *
 * A range is [lower, upper): lower inclusive, upper exclusive; a bound that is NULL is open.
 *
 * Ownership:  values are the caller's.
 * Thread:     one at a time (callers lock).
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/attributes.h"
#include "base/status.h"

enum {
    ID_HASH_BYTES = 32
};

/* Ordered by timestamp (signed), then by hash (bytewise). */
struct id_key {
    int64_t timestamp_ns;
    uint8_t hash[ID_HASH_BYTES];
};

struct id_summary {
    size_t count;
    uint8_t fingerprint[ID_HASH_BYTES]; /* XOR of the hashes; all zero when count is 0 */
};

struct id_entry {
    struct id_key key;
    void *value;
    uint32_t scope; /* the caller's, the index of a topic for example */
};

struct id_leaf;
struct id_tree;

/* A place in the tree; any insert, remove or prune makes it invalid. */
struct id_cursor {
    const struct id_leaf *leaf; /* NULL: past either end */
    unsigned position;
};

typedef void id_tree_visit(const struct id_entry *entry, void *context);

int id_key_compare(const struct id_key *a, const struct id_key *b);

MUST_USE enum status id_tree_create(struct id_tree **out);
void id_tree_destroy(struct id_tree **tree);

/* STATUS_ALREADY_THERE (and nothing changes) when the key is in the tree, STATUS_NO_MEMORY. */
MUST_USE enum status id_tree_insert(struct id_tree *tree, const struct id_entry *entry);

/* False when the key is not there. removed may be NULL. */
bool id_tree_remove(struct id_tree *tree, const struct id_key *key, struct id_entry *removed);

/* False when the key is not there. */
bool id_tree_find(const struct id_tree *tree, const struct id_key *key, struct id_entry *out);

size_t id_tree_count(const struct id_tree *tree);

/* Memory of all nodes, free ones included. */
size_t id_tree_bytes(const struct id_tree *tree);

/* Count and fingerprint of [lower, upper); zero when lower >= upper. */
void id_tree_summarise(const struct id_tree *tree, const struct id_key *lower,
        const struct id_key *upper, struct id_summary *out);

/*
 * Removes the lowest ids below bound (NULL: all), at most max_ids of them, and shows each to visit
 * (may be NULL), which must not touch the tree. Returns how many; fewer than max_ids: none is left.
 */
size_t id_tree_prune_below(struct id_tree *tree, const struct id_key *bound, size_t max_ids,
        id_tree_visit *visit, void *context);

/* The first id >= key; NULL: the first of all. */
struct id_cursor id_tree_seek_first(const struct id_tree *tree, const struct id_key *key);

/* The last id < key; NULL: the last of all. */
struct id_cursor id_tree_seek_last(const struct id_tree *tree, const struct id_key *key);

static inline bool id_cursor_is_valid(const struct id_cursor *cursor)
{
    return cursor->leaf != NULL;
}

/* The cursor must be valid for all of these; a step past either end makes it invalid. */
struct id_entry id_cursor_entry(const struct id_cursor *cursor);
void id_cursor_next(struct id_cursor *cursor);
void id_cursor_previous(struct id_cursor *cursor);
