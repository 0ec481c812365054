/* SPDX-License-Identifier: MIT */
#include "hash/id_tree.h"

#include <assert.h>
#include <string.h>

#include "base/memory.h"
#include "hash/id_node.h"
#include "hash/id_pool.h"

enum {
    MAX_HEIGHT = 16,     /* branches above a leaf; they have 16 children or more on average */
    FEW = ID_FANOUT / 4, /* a node with fewer looks for a neighbour to be merged with ... */
    MERGED_MOST = ID_FANOUT * 3 / 4 /* ... whose sum leaves room, so that it is not split at once */
};

struct id_tree {
    void *root; /* NULL: empty */
    unsigned height;
    struct id_summary total;
    struct id_pool leaves;
    struct id_pool branches;
};

/* The way from the root to a leaf: at level 0 the root, at level height - 1 the leaf's parent. */
struct path {
    struct {
        struct id_branch *branch;
        unsigned position;
    } steps[MAX_HEIGHT];
    struct id_leaf *leaf;
};

enum status id_tree_create(struct id_tree **out)
{
    struct id_tree *tree = memory_allocate_zeroed(sizeof(*tree));
    if (tree == NULL) {
        return STATUS_NO_MEMORY;
    }
    id_pool_init(&tree->leaves, sizeof(struct id_leaf));
    id_pool_init(&tree->branches, sizeof(struct id_branch));
    *out = tree;
    return STATUS_OK;
}

void id_tree_destroy(struct id_tree **tree)
{
    if (*tree == NULL) {
        return;
    }
    id_pool_fini(&(*tree)->leaves);
    id_pool_fini(&(*tree)->branches);
    memory_free(*tree);
    *tree = NULL;
}

/* key NULL: the leftmost leaf. The tree must not be empty. */
static void descend(const struct id_tree *tree, const struct id_key *key, struct path *path)
{
    void *node = tree->root;
    for (unsigned level = 0; level < tree->height; level++) {
        struct id_branch *branch = node;
        unsigned position = key == NULL ? 0 : id_branch_child(branch, key);
        path->steps[level].branch = branch;
        path->steps[level].position = position;
        node = branch->children[position];
    }
    path->leaf = node;
}

/* As descend, without the path. */
static const struct id_leaf *find_leaf(const struct id_tree *tree, const struct id_key *key)
{
    const void *node = tree->root;
    for (unsigned level = 0; level < tree->height; level++) {
        const struct id_branch *branch = node;
        node = branch->children[key == NULL ? 0 : id_branch_child(branch, key)];
    }
    return node;
}

static const struct id_leaf *last_leaf(const struct id_tree *tree)
{
    const void *node = tree->root;
    for (unsigned level = 0; level < tree->height; level++) {
        const struct id_branch *branch = node;
        node = branch->children[branch->count - 1];
    }
    return node;
}

/* Takes all memory that inserting at path can need, so that it cannot fail half-way. */
static enum status reserve(struct id_tree *tree, const struct path *path)
{
    if (path->leaf->count < ID_FANOUT) {
        return STATUS_OK;
    }
    size_t branches = 1; /* a new root */
    for (unsigned level = tree->height; level-- > 0;) {
        branches += path->steps[level].branch->count == ID_FANOUT;
    }
    enum status status = id_pool_reserve(&tree->leaves, 1);
    return status != STATUS_OK ? status : id_pool_reserve(&tree->branches, branches);
}

/*
 * Splits a full leaf for an entry that belongs at position and puts the entry in. right is the new
 * leaf. Ids that come in order leave full leaves behind.
 */
static void split_leaf(struct id_tree *tree, struct id_leaf *leaf, unsigned position,
        const struct id_entry *entry, struct id_child *right)
{
    bool is_last = leaf->next == NULL && position == ID_FANOUT;
    unsigned middle = is_last ? ID_FANOUT : ID_FANOUT / 2;
    struct id_leaf *new_leaf = id_pool_take(&tree->leaves);
    id_leaf_split(leaf, middle, new_leaf);
    if (is_last || position > middle) {
        id_leaf_insert(new_leaf, position - middle, entry);
    } else {
        id_leaf_insert(leaf, position, entry);
    }
    *right = (struct id_child){.node = new_leaf};
    right->lowest = id_leaf_entry(new_leaf, 0).key;
    id_leaf_summarise(new_leaf, new_leaf->count, &right->sum);
}

/* The same for a full branch and a child; child becomes the new branch. */
static void split_branch(struct id_tree *tree, struct id_branch *branch, unsigned position,
        bool is_last, struct id_child *child)
{
    unsigned middle = is_last ? ID_FANOUT : ID_FANOUT / 2;
    struct id_branch *new_branch = id_pool_take(&tree->branches);
    id_branch_split(branch, middle, new_branch);
    if (is_last || position > middle) {
        id_branch_insert(new_branch, position - middle, child);
    } else {
        id_branch_insert(branch, position, child);
    }
    *child = (struct id_child){.node = new_branch, .lowest = new_branch->lowest[0]};
    id_branch_summarise(new_branch, new_branch->count, &child->sum);
}

static void grow_root(struct id_tree *tree, const struct id_child *right)
{
    assert(tree->height < MAX_HEIGHT);
    struct id_branch *root = id_pool_take(&tree->branches);
    struct id_child left = {.node = tree->root, .sum = tree->total};
    id_summary_subtract(&left.sum, &right->sum);
    root->count = 0;
    id_branch_insert(root, 0, &left);
    id_branch_insert(root, 1, right);
    tree->root = root;
    tree->height++;
}

/* Carries a new entry, and the right half of what it made split, from the leaf up to the root. */
static void carry_up(struct id_tree *tree, const struct path *path, const struct id_summary *added,
        struct id_child *right)
{
    /* Only a split at the very end leaves the old leaf full; then all branches are cut at the end too. */
    bool is_last = path->leaf->count == ID_FANOUT;
    for (unsigned level = tree->height; level-- > 0;) {
        struct id_branch *branch = path->steps[level].branch;
        unsigned position = path->steps[level].position;
        id_summary_add(&branch->sums[position], added);
        if (right->node == NULL) {
            continue;
        }
        id_summary_subtract(&branch->sums[position], &right->sum);
        if (branch->count < ID_FANOUT) {
            id_branch_insert(branch, position + 1, right);
            right->node = NULL;
        } else {
            split_branch(tree, branch, position + 1, is_last, right);
        }
    }
    id_summary_add(&tree->total, added);
    if (right->node != NULL) {
        grow_root(tree, right);
    }
}

static enum status insert_first(struct id_tree *tree, const struct id_entry *entry)
{
    if (id_pool_reserve(&tree->leaves, 1) != STATUS_OK) {
        return STATUS_NO_MEMORY;
    }
    struct id_leaf *leaf = id_pool_take(&tree->leaves);
    leaf->count = 0;
    leaf->next = NULL;
    leaf->previous = NULL;
    id_leaf_insert(leaf, 0, entry);
    id_leaf_summarise(leaf, 1, &tree->total);
    tree->root = leaf;
    return STATUS_OK;
}

enum status id_tree_insert(struct id_tree *tree, const struct id_entry *entry)
{
    if (tree->root == NULL) {
        return insert_first(tree, entry);
    }
    struct path path;
    descend(tree, &entry->key, &path);
    unsigned position = id_leaf_rank(path.leaf, &entry->key);
    if (id_leaf_has(path.leaf, position, &entry->key)) {
        return STATUS_ALREADY_THERE;
    }
    enum status status = reserve(tree, &path);
    if (status != STATUS_OK) {
        return status;
    }
    struct id_summary added = {.count = 1};
    memcpy(added.fingerprint, entry->key.hash, ID_HASH_BYTES);
    struct id_child right = {.node = NULL};
    if (path.leaf->count < ID_FANOUT) {
        id_leaf_insert(path.leaf, position, entry);
    } else {
        split_leaf(tree, path.leaf, position, entry, &right);
    }
    carry_up(tree, &path, &added, &right);
    return STATUS_OK;
}

static unsigned node_count(const void *node, bool is_leaf)
{
    return is_leaf ? ((const struct id_leaf *)node)->count
                   : ((const struct id_branch *)node)->count;
}

static void free_node(struct id_tree *tree, void *node, bool is_leaf)
{
    if (is_leaf) {
        id_leaf_unlink(node);
    }
    id_pool_give(is_leaf ? &tree->leaves : &tree->branches, node);
}

/* Merges two neighbours, the children at position and behind it, if they are small enough. */
static bool try_merge(
        struct id_tree *tree, struct id_branch *branch, unsigned position, bool is_leaf)
{
    if (position + 1 >= branch->count) {
        return false;
    }
    void *left = branch->children[position];
    void *right = branch->children[position + 1];
    if (node_count(left, is_leaf) + node_count(right, is_leaf) > MERGED_MOST) {
        return false;
    }
    if (is_leaf) {
        id_leaf_append_next(left);
    } else {
        id_branch_append(left, right, &branch->lowest[position + 1]);
    }
    free_node(tree, right, is_leaf);
    id_summary_add(&branch->sums[position], &branch->sums[position + 1]);
    id_branch_erase(branch, position + 1);
    return true;
}

static void shrink_root(struct id_tree *tree)
{
    while (tree->root != NULL && tree->height > 0) {
        struct id_branch *root = tree->root;
        if (root->count > 1) {
            return;
        }
        tree->root = root->count == 0 ? NULL : root->children[0];
        tree->height = root->count == 0 ? 0 : tree->height - 1;
        id_pool_give(&tree->branches, root);
    }
    if (tree->root != NULL && node_count(tree->root, true) == 0) {
        id_pool_give(&tree->leaves, tree->root);
        tree->root = NULL;
    }
}

/* After ids were erased from the leaf of path: removes what is empty, merges what is small. */
static void shrink(struct id_tree *tree, const struct path *path)
{
    bool is_leaf = true;
    for (unsigned level = tree->height; level-- > 0; is_leaf = false) {
        struct id_branch *branch = path->steps[level].branch;
        unsigned position = path->steps[level].position;
        unsigned count = node_count(branch->children[position], is_leaf);
        if (count >= FEW) {
            break;
        }
        if (count == 0) {
            free_node(tree, branch->children[position], is_leaf);
            id_branch_erase(branch, position);
        } else if (!(position > 0 && try_merge(tree, branch, position - 1, is_leaf)) &&
                   !try_merge(tree, branch, position, is_leaf)) {
            break;
        }
    }
    shrink_root(tree);
}

/* Erases count ids from the leaf of path, from position on, and tells all branches above. */
static void erase(struct id_tree *tree, const struct path *path, unsigned position, unsigned count)
{
    struct id_summary erased = {.count = 0};
    struct id_summary below = {.count = 0};
    id_leaf_summarise(path->leaf, position + count, &erased);
    id_leaf_summarise(path->leaf, position, &below);
    id_summary_subtract(&erased, &below);
    id_leaf_erase(path->leaf, position, count);
    for (unsigned level = 0; level < tree->height; level++) {
        struct id_branch *branch = path->steps[level].branch;
        id_summary_subtract(&branch->sums[path->steps[level].position], &erased);
    }
    id_summary_subtract(&tree->total, &erased);
    shrink(tree, path);
}

bool id_tree_remove(struct id_tree *tree, const struct id_key *key, struct id_entry *removed)
{
    if (tree->root == NULL) {
        return false;
    }
    struct path path;
    descend(tree, key, &path);
    unsigned position = id_leaf_rank(path.leaf, key);
    if (!id_leaf_has(path.leaf, position, key)) {
        return false;
    }
    if (removed != NULL) {
        *removed = id_leaf_entry(path.leaf, position);
    }
    erase(tree, &path, position, 1);
    return true;
}

size_t id_tree_prune_below(struct id_tree *tree, const struct id_key *bound, size_t max_ids,
        id_tree_visit *visit, void *context)
{
    size_t pruned = 0;
    while (tree->root != NULL && pruned < max_ids) {
        struct path path;
        descend(tree, NULL, &path);
        unsigned count = bound == NULL ? path.leaf->count : id_leaf_rank(path.leaf, bound);
        if (count > max_ids - pruned) {
            count = (unsigned)(max_ids - pruned);
        }
        if (count == 0) {
            break;
        }
        for (unsigned i = 0; visit != NULL && i < count; i++) {
            struct id_entry entry = id_leaf_entry(path.leaf, i);
            visit(&entry, context);
        }
        erase(tree, &path, 0, count);
        pruned += count;
    }
    return pruned;
}

bool id_tree_find(const struct id_tree *tree, const struct id_key *key, struct id_entry *out)
{
    if (tree->root == NULL) {
        return false;
    }
    const struct id_leaf *leaf = find_leaf(tree, key);
    unsigned position = id_leaf_rank(leaf, key);
    if (!id_leaf_has(leaf, position, key)) {
        return false;
    }
    *out = id_leaf_entry(leaf, position);
    return true;
}

size_t id_tree_count(const struct id_tree *tree)
{
    return tree->total.count;
}

size_t id_tree_bytes(const struct id_tree *tree)
{
    return sizeof(*tree) + tree->leaves.bytes + tree->branches.bytes;
}

/* All ids below key. */
static void summarise_below(
        const struct id_tree *tree, const struct id_key *key, struct id_summary *out)
{
    *out = (struct id_summary){.count = 0};
    const void *node = tree->root;
    if (node == NULL) {
        return;
    }
    for (unsigned level = 0; level < tree->height; level++) {
        const struct id_branch *branch = node;
        unsigned position = id_branch_child(branch, key);
        id_branch_summarise(branch, position, out);
        node = branch->children[position];
    }
    const struct id_leaf *leaf = node;
    id_leaf_summarise(leaf, id_leaf_rank(leaf, key), out);
}

void id_tree_summarise(const struct id_tree *tree, const struct id_key *lower,
        const struct id_key *upper, struct id_summary *out)
{
    if (lower != NULL && upper != NULL && id_key_compare(lower, upper) >= 0) {
        *out = (struct id_summary){.count = 0};
        return;
    }
    *out = tree->total;
    if (upper != NULL) {
        summarise_below(tree, upper, out);
    }
    if (lower != NULL) {
        struct id_summary below;
        summarise_below(tree, lower, &below);
        id_summary_subtract(out, &below);
    }
}

struct id_cursor id_tree_seek_first(const struct id_tree *tree, const struct id_key *key)
{
    struct id_cursor cursor = {.leaf = NULL};
    if (tree->root == NULL) {
        return cursor;
    }
    cursor.leaf = find_leaf(tree, key);
    cursor.position = key == NULL ? 0 : id_leaf_rank(cursor.leaf, key);
    if (cursor.position == cursor.leaf->count) {
        cursor = (struct id_cursor){.leaf = cursor.leaf->next};
    }
    return cursor;
}

struct id_cursor id_tree_seek_last(const struct id_tree *tree, const struct id_key *key)
{
    struct id_cursor cursor = {.leaf = NULL};
    if (tree->root == NULL) {
        return cursor;
    }
    cursor.leaf = key == NULL ? last_leaf(tree) : find_leaf(tree, key);
    cursor.position = key == NULL ? cursor.leaf->count : id_leaf_rank(cursor.leaf, key);
    id_cursor_previous(&cursor);
    return cursor;
}

struct id_entry id_cursor_entry(const struct id_cursor *cursor)
{
    return id_leaf_entry(cursor->leaf, cursor->position);
}

void id_cursor_next(struct id_cursor *cursor)
{
    cursor->position++;
    if (cursor->position == cursor->leaf->count) {
        *cursor = (struct id_cursor){.leaf = cursor->leaf->next};
    }
}

void id_cursor_previous(struct id_cursor *cursor)
{
    if (cursor->position == 0) {
        cursor->leaf = cursor->leaf->previous;
        cursor->position = cursor->leaf == NULL ? 0 : cursor->leaf->count;
    }
    if (cursor->leaf != NULL) {
        cursor->position--;
    }
}
