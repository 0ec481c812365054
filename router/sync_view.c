/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "hash/fast_key.h"
#include "router/sync_set.h"
#include "router/sync_set_private.h"

/* Names as keys, sorted; is_all: no restriction. */
struct name_set {
    uint64_t *keys;
    size_t count;
    bool is_all;
};

/* The next id of one tree in a walk. */
struct head {
    struct id_cursor cursor;
    struct id_key key;
};

struct sync_view {
    const struct sync_set *set;
    struct name_set content_topics;
    bool is_disjoint;
    struct id_tree **trees;
    size_t tree_count;
    struct head *heads; /* a binary heap, the lowest key first */
    size_t head_count;
    struct id_key walk_end; /* exclusive */
    bool is_walk_open;      /* there is no id after the last that exists: no end */
    uint64_t work;
};

static int compare_keys(const void *a, const void *b)
{
    const uint64_t *left = a;
    const uint64_t *right = b;
    return (*left > *right) - (*left < *right);
}

static bool has_name(const struct name_set *set, uint64_t key)
{
    return set->is_all || bsearch(&key, set->keys, set->count, sizeof(key), compare_keys) != NULL;
}

static bool name_set_init(struct name_set *set, const struct span *names, size_t count)
{
    *set = (struct name_set){.count = count, .is_all = count == 0};
    if (count == 0) {
        return true;
    }
    set->keys = memory_allocate(count * sizeof(set->keys[0]));
    if (set->keys == NULL) {
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        set->keys[i] = fast_key_of_bytes(names[i]);
    }
    qsort(set->keys, count, sizeof(set->keys[0]), compare_keys);
    return true;
}

/* Leaves in set what is in other too. */
static void intersect(struct name_set *set, struct name_set *other)
{
    if (set->is_all) {
        struct name_set all = *set;
        *set = *other;
        *other = all;
        return;
    }
    size_t kept = 0;
    for (size_t i = 0; i < set->count; i++) {
        if (has_name(other, set->keys[i])) {
            set->keys[kept++] = set->keys[i];
        }
    }
    set->count = kept;
}

static bool intersection_init(struct name_set *out, const struct span *ours, size_t our_count,
        const struct span *theirs, size_t their_count)
{
    struct name_set other;
    if (!name_set_init(out, ours, our_count)) {
        return false;
    }
    if (!name_set_init(&other, theirs, their_count)) {
        memory_free(out->keys);
        out->keys = NULL;
        return false;
    }
    intersect(out, &other);
    memory_free(other.keys);
    return true;
}

static enum status collect_trees(struct sync_view *view, const struct name_set *topics)
{
    size_t capacity = view->set->topic_count + 1;
    view->trees = memory_allocate(capacity * sizeof(struct id_tree *));
    view->heads = memory_allocate(capacity * sizeof(struct head));
    if (view->trees == NULL || view->heads == NULL) {
        return STATUS_NO_MEMORY;
    }
    for (size_t i = 0; i < view->set->topic_count; i++) {
        const struct sync_topic *topic = &view->set->topics[i];
        bool is_used = topic->ids != NULL && id_tree_count(topic->ids) > 0;
        if (is_used && has_name(topics, topic->name_key)) {
            view->trees[view->tree_count++] = topic->ids;
        }
    }
    return STATUS_OK;
}

static bool is_empty(const struct name_set *set)
{
    return !set->is_all && set->count == 0;
}

enum status sync_view_create(struct sync_view **out, const struct sync_set *set,
        const struct sync_scope *ours, const struct sync_scope *theirs)
{
    static const struct sync_scope everything;
    ours = ours != NULL ? ours : &everything;
    theirs = theirs != NULL ? theirs : &everything;
    struct name_set topics = {.keys = NULL};
    struct sync_view *view = memory_allocate_zeroed(sizeof(*view));
    if (view == NULL) {
        return STATUS_NO_MEMORY;
    }
    view->set = set;
    enum status status = STATUS_NO_MEMORY;
    if (intersection_init(&topics, ours->pubsub_topics, ours->pubsub_topic_count,
                theirs->pubsub_topics, theirs->pubsub_topic_count) &&
            intersection_init(&view->content_topics, ours->content_topics,
                    ours->content_topic_count, theirs->content_topics,
                    theirs->content_topic_count)) {
        view->is_disjoint = is_empty(&topics) || is_empty(&view->content_topics);
        status = collect_trees(view, &topics);
    }
    memory_free(topics.keys);
    if (status != STATUS_OK) {
        sync_view_destroy(&view);
        return status;
    }
    *out = view;
    return STATUS_OK;
}

void sync_view_destroy(struct sync_view **view)
{
    struct sync_view *old = *view;
    if (old == NULL) {
        return;
    }
    memory_free(old->content_topics.keys);
    memory_free(old->trees);
    memory_free(old->heads);
    memory_free(old);
    *view = NULL;
}

bool sync_view_is_disjoint(const struct sync_view *view)
{
    return view->is_disjoint;
}

uint64_t sync_view_work(const struct sync_view *view)
{
    return view->work;
}

/* The trees' ranges end before a bound; ours include theirs. False: nothing comes after to. */
static bool next_key(struct id_key *out, const struct id_key *key)
{
    *out = *key;
    for (size_t i = sizeof(out->hash); i-- > 0;) {
        if (++out->hash[i] != 0) {
            return true;
        }
    }
    if (out->timestamp_ns == INT64_MAX) {
        return false;
    }
    out->timestamp_ns++;
    return true;
}

static struct id_key lower_bound(const struct sync_view *view, const struct sync_range *range)
{
    if (range->from.timestamp_ns >= view->set->covered_from_ns) {
        return range->from;
    }
    return (struct id_key){.timestamp_ns = view->set->covered_from_ns};
}

static bool is_in_scope(const struct sync_view *view, const struct id_entry *entry)
{
    return has_name(&view->content_topics, (uint64_t)(uintptr_t)entry->value);
}

/* Moves to the next id of the scope before the end; false: there is none. */
static bool settle(struct sync_view *view, struct head *head)
{
    while (id_cursor_is_valid(&head->cursor)) {
        struct id_entry entry = id_cursor_entry(&head->cursor);
        view->work++;
        if (!view->is_walk_open && id_key_compare(&entry.key, &view->walk_end) >= 0) {
            return false;
        }
        if (is_in_scope(view, &entry)) {
            head->key = entry.key;
            return true;
        }
        id_cursor_next(&head->cursor);
    }
    return false;
}

/* The lowest of a head and its two children. */
static size_t lowest_of(const struct sync_view *view, size_t i)
{
    size_t lowest = i;
    for (size_t child = 2 * i + 1; child <= 2 * i + 2 && child < view->head_count; child++) {
        if (id_key_compare(&view->heads[child].key, &view->heads[lowest].key) < 0) {
            lowest = child;
        }
    }
    return lowest;
}

static void sift_down(struct sync_view *view, size_t i)
{
    size_t lowest = lowest_of(view, i);
    while (lowest != i) {
        struct head head = view->heads[i];
        view->heads[i] = view->heads[lowest];
        view->heads[lowest] = head;
        i = lowest;
        lowest = lowest_of(view, i);
    }
}

void sync_view_seek(struct sync_view *view, const struct sync_range *range)
{
    struct id_key from = lower_bound(view, range);
    view->is_walk_open = !next_key(&view->walk_end, &range->to);
    view->head_count = 0;
    for (size_t i = 0; i < view->tree_count; i++) {
        struct head head = {.cursor = id_tree_seek_first(view->trees[i], &from)};
        if (settle(view, &head)) {
            view->heads[view->head_count++] = head;
        }
    }
    for (size_t i = view->head_count / 2; i-- > 0;) {
        sift_down(view, i);
    }
}

bool sync_view_next(struct sync_view *view, struct id_key *out)
{
    if (view->head_count == 0) {
        return false;
    }
    struct head *first = &view->heads[0];
    *out = first->key;
    id_cursor_next(&first->cursor);
    if (!settle(view, first)) {
        view->head_count--;
        *first = view->heads[view->head_count];
    }
    sift_down(view, 0);
    return true;
}

static void add_hash(uint8_t *sum, const uint8_t *hash)
{
    for (size_t i = 0; i < ID_HASH_BYTES; i++) {
        sum[i] ^= hash[i];
    }
}

static void summarise_by_walking(
        struct sync_view *view, const struct sync_range *range, struct id_summary *out)
{
    struct id_key key;
    sync_view_seek(view, range);
    while (sync_view_next(view, &key)) {
        out->count++;
        add_hash(out->fingerprint, key.hash);
    }
}

void sync_view_summarise(
        struct sync_view *view, const struct sync_range *range, struct id_summary *out)
{
    *out = (struct id_summary){.count = 0};
    if (!view->content_topics.is_all) {
        summarise_by_walking(view, range, out);
        return;
    }
    struct id_key end;
    struct id_key from = lower_bound(view, range);
    const struct id_key *upper = next_key(&end, &range->to) ? &end : NULL;
    for (size_t i = 0; i < view->tree_count; i++) {
        struct id_summary part;
        id_tree_summarise(view->trees[i], &from, upper, &part);
        out->count += part.count;
        add_hash(out->fingerprint, part.fingerprint);
    }
    view->work += view->tree_count;
}
