/* SPDX-License-Identifier: MIT */
#include "hash/id_node.h"

#include <string.h>

static void xor_hash(uint8_t *restrict into, const uint8_t *restrict hash)
{
    for (size_t i = 0; i < ID_HASH_BYTES; i++) {
        into[i] ^= hash[i];
    }
}

void id_summary_add(struct id_summary *into, const struct id_summary *range)
{
    into->count += range->count;
    xor_hash(into->fingerprint, range->fingerprint);
}

void id_summary_subtract(struct id_summary *from, const struct id_summary *range)
{
    from->count -= range->count;
    xor_hash(from->fingerprint, range->fingerprint);
}

static int compare(int64_t timestamp_ns, const uint8_t *hash, const struct id_key *key)
{
    if (timestamp_ns != key->timestamp_ns) {
        return timestamp_ns < key->timestamp_ns ? -1 : 1;
    }
    return memcmp(hash, key->hash, ID_HASH_BYTES);
}

int id_key_compare(const struct id_key *a, const struct id_key *b)
{
    return compare(a->timestamp_ns, a->hash, b);
}

unsigned id_leaf_rank(const struct id_leaf *leaf, const struct id_key *key)
{
    unsigned low = 0;
    unsigned high = leaf->count;
    while (low < high) {
        unsigned middle = (low + high) / 2;
        if (compare(leaf->timestamps[middle], leaf->hashes[middle], key) < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

bool id_leaf_has(const struct id_leaf *leaf, unsigned position, const struct id_key *key)
{
    return position < leaf->count &&
           compare(leaf->timestamps[position], leaf->hashes[position], key) == 0;
}

struct id_entry id_leaf_entry(const struct id_leaf *leaf, unsigned position)
{
    struct id_entry entry = {.value = leaf->values[position], .scope = leaf->scopes[position]};
    entry.key.timestamp_ns = leaf->timestamps[position];
    memcpy(entry.key.hash, leaf->hashes[position], ID_HASH_BYTES);
    return entry;
}

void id_leaf_summarise(const struct id_leaf *leaf, unsigned count, struct id_summary *into)
{
    into->count += count;
    for (unsigned i = 0; i < count; i++) {
        xor_hash(into->fingerprint, leaf->hashes[i]);
    }
}

/* Moves count ids of from, from position on, to position to_position of to. May overlap. */
static void move_ids(struct id_leaf *to, unsigned to_position, const struct id_leaf *from,
        unsigned position, size_t count)
{
    memmove(&to->timestamps[to_position], &from->timestamps[position],
            count * sizeof(from->timestamps[0]));
    memmove(&to->hashes[to_position], &from->hashes[position], count * ID_HASH_BYTES);
    memmove(&to->values[to_position], &from->values[position], count * sizeof(from->values[0]));
    memmove(&to->scopes[to_position], &from->scopes[position], count * sizeof(from->scopes[0]));
}

void id_leaf_insert(struct id_leaf *leaf, unsigned position, const struct id_entry *entry)
{
    move_ids(leaf, position + 1, leaf, position, leaf->count - position);
    leaf->timestamps[position] = entry->key.timestamp_ns;
    memcpy(leaf->hashes[position], entry->key.hash, ID_HASH_BYTES);
    leaf->values[position] = entry->value;
    leaf->scopes[position] = entry->scope;
    leaf->count++;
}

void id_leaf_erase(struct id_leaf *leaf, unsigned position, unsigned count)
{
    move_ids(leaf, position, leaf, position + count, leaf->count - position - count);
    leaf->count -= count;
}

void id_leaf_split(struct id_leaf *leaf, unsigned position, struct id_leaf *right)
{
    right->count = leaf->count - position;
    move_ids(right, 0, leaf, position, right->count);
    leaf->count = position;
    right->previous = leaf;
    right->next = leaf->next;
    if (right->next != NULL) {
        right->next->previous = right;
    }
    leaf->next = right;
}

void id_leaf_append_next(struct id_leaf *leaf)
{
    move_ids(leaf, leaf->count, leaf->next, 0, leaf->next->count);
    leaf->count += leaf->next->count;
}

void id_leaf_unlink(struct id_leaf *leaf)
{
    if (leaf->next != NULL) {
        leaf->next->previous = leaf->previous;
    }
    if (leaf->previous != NULL) {
        leaf->previous->next = leaf->next;
    }
}

unsigned id_branch_child(const struct id_branch *branch, const struct id_key *key)
{
    unsigned low = 0;
    unsigned high = branch->count;
    while (high - low > 1) {
        unsigned middle = (low + high) / 2;
        if (id_key_compare(&branch->lowest[middle], key) <= 0) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return low;
}

void id_branch_summarise(const struct id_branch *branch, unsigned count, struct id_summary *into)
{
    for (unsigned i = 0; i < count; i++) {
        id_summary_add(into, &branch->sums[i]);
    }
}

/* As move_ids. */
static void move_children(struct id_branch *to, unsigned to_position, const struct id_branch *from,
        unsigned position, size_t count)
{
    memmove(&to->children[to_position], &from->children[position],
            count * sizeof(from->children[0]));
    memmove(&to->lowest[to_position], &from->lowest[position], count * sizeof(from->lowest[0]));
    memmove(&to->sums[to_position], &from->sums[position], count * sizeof(from->sums[0]));
}

void id_branch_insert(struct id_branch *branch, unsigned position, const struct id_child *child)
{
    move_children(branch, position + 1, branch, position, branch->count - position);
    branch->children[position] = child->node;
    branch->lowest[position] = child->lowest;
    branch->sums[position] = child->sum;
    branch->count++;
}

void id_branch_erase(struct id_branch *branch, unsigned position)
{
    move_children(branch, position, branch, position + 1, branch->count - position - 1);
    branch->count--;
}

void id_branch_split(struct id_branch *branch, unsigned position, struct id_branch *right)
{
    right->count = branch->count - position;
    move_children(right, 0, branch, position, right->count);
    branch->count = position;
}

void id_branch_append(
        struct id_branch *branch, const struct id_branch *right, const struct id_key *lowest)
{
    move_children(branch, branch->count, right, 0, right->count);
    branch->lowest[branch->count] = *lowest;
    branch->count += right->count;
}
