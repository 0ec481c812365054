/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The two kinds of node of an id_tree and what is done inside one of them.
 *
 * A leaf holds ids in order; leaves are linked in order and never empty while in the tree. A branch
 * holds children in order; lowest[i] is a lower bound of child i and above all of child i - 1
 * (lowest[0] is not looked at: a branch does not know its own bounds).
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "hash/id_tree.h"

enum {
    ID_FANOUT = 64
};

struct id_leaf {
    unsigned count;
    struct id_leaf *next;
    struct id_leaf *previous;
    int64_t timestamps[ID_FANOUT];
    uint8_t hashes[ID_FANOUT][ID_HASH_BYTES];
    void *values[ID_FANOUT];
    uint32_t scopes[ID_FANOUT];
};

struct id_branch {
    unsigned count;
    void *children[ID_FANOUT]; /* all leaves or all branches */
    struct id_key lowest[ID_FANOUT];
    struct id_summary sums[ID_FANOUT];
};

/* A child on its way into a branch. */
struct id_child {
    void *node;
    struct id_key lowest;
    struct id_summary sum;
};

/* into changes by one range of ids: XOR is its own inverse, so the fingerprint needs no direction. */
void id_summary_add(struct id_summary *into, const struct id_summary *range);
void id_summary_subtract(struct id_summary *from, const struct id_summary *range);

/* The number of ids below key. */
unsigned id_leaf_rank(const struct id_leaf *leaf, const struct id_key *key);
bool id_leaf_has(const struct id_leaf *leaf, unsigned position, const struct id_key *key);
struct id_entry id_leaf_entry(const struct id_leaf *leaf, unsigned position);

/* Adds the first count ids of leaf to into. */
void id_leaf_summarise(const struct id_leaf *leaf, unsigned count, struct id_summary *into);

void id_leaf_insert(struct id_leaf *leaf, unsigned position, const struct id_entry *entry);
void id_leaf_erase(struct id_leaf *leaf, unsigned position, unsigned count);

/* Moves all from position on to the empty leaf right and links that behind. */
void id_leaf_split(struct id_leaf *leaf, unsigned position, struct id_leaf *right);

/* Appends all of the next leaf, which stays linked. */
void id_leaf_append_next(struct id_leaf *leaf);
void id_leaf_unlink(struct id_leaf *leaf);

/* The child that key belongs to. */
unsigned id_branch_child(const struct id_branch *branch, const struct id_key *key);

/* Adds the first count children of branch to into. */
void id_branch_summarise(const struct id_branch *branch, unsigned count, struct id_summary *into);

void id_branch_insert(struct id_branch *branch, unsigned position, const struct id_child *child);
void id_branch_erase(struct id_branch *branch, unsigned position);

/* Moves all children from position on to the empty branch right. */
void id_branch_split(struct id_branch *branch, unsigned position, struct id_branch *right);

/* Appends all children of right, whose lower bound its parent knows. */
void id_branch_append(
        struct id_branch *branch, const struct id_branch *right, const struct id_key *lowest);
