/* SPDX-License-Identifier: MIT */
#include "router/sync_set.h"

#include <assert.h>
#include <string.h>

#include "base/memory.h"
#include "hash/fast_key.h"
#include "router/sync_set_private.h"
#include "router/time_gaps.h"

enum status sync_set_create(struct sync_set **out, size_t id_limit)
{
    if (id_limit == 0) {
        return STATUS_BAD_ARGUMENT;
    }
    struct sync_set *set = memory_allocate_zeroed(sizeof(*set));
    if (set == NULL) {
        return STATUS_NO_MEMORY;
    }
    set->id_limit = id_limit;
    *out = set;
    return STATUS_OK;
}

void sync_set_destroy(struct sync_set **set)
{
    struct sync_set *old = *set;
    if (old == NULL) {
        return;
    }
    for (size_t i = 0; i < old->topic_count; i++) {
        id_tree_destroy(&old->topics[i].ids);
    }
    sync_wanted_destroy(&old->wanted);
    memory_free(old->topics);
    memory_free(old);
    *set = NULL;
}

enum status sync_set_want(struct sync_set *set, size_t max, uint64_t patience_ms)
{
    assert(set->wanted == NULL);
    return sync_wanted_create(&set->wanted, max, patience_ms);
}

struct sync_wanted *sync_set_wanted(struct sync_set *set)
{
    return set->wanted;
}

/* Nodes at index topic->index; those that no id came for yet have no tree. */
static struct sync_topic *find_or_add_topic(struct sync_set *set, const struct topic *topic)
{
    size_t needed = (size_t)topic->index + 1;
    if (needed > set->topic_count) {
        struct sync_topic *grown = memory_resize(set->topics, needed * sizeof(set->topics[0]));
        if (grown == NULL) {
            return NULL;
        }
        memset(&grown[set->topic_count], 0, (needed - set->topic_count) * sizeof(grown[0]));
        set->topics = grown;
        set->topic_count = needed;
    }
    struct sync_topic *found = &set->topics[topic->index];
    if (found->ids == NULL) {
        if (id_tree_create(&found->ids) != STATUS_OK) {
            return NULL;
        }
        found->topic = topic;
        found->name_key = fast_key_of_bytes(topic->name);
    }
    return found;
}

/* The oldest id of all topics; false when the set is empty. */
static bool find_oldest(const struct sync_set *set, int64_t *out)
{
    bool is_found = false;
    for (size_t i = 0; i < set->topic_count; i++) {
        if (set->topics[i].ids == NULL || id_tree_count(set->topics[i].ids) == 0) {
            continue;
        }
        struct id_cursor first = id_tree_seek_first(set->topics[i].ids, NULL);
        int64_t timestamp_ns = id_cursor_entry(&first).key.timestamp_ns;
        if (!is_found || timestamp_ns < *out) {
            *out = timestamp_ns;
        }
        is_found = true;
    }
    return is_found;
}

/* All ids of the oldest timestamp go: the set covers either all of a moment or none of it. */
static void evict_oldest(struct sync_set *set)
{
    int64_t oldest_ns = 0;
    bool is_found = find_oldest(set, &oldest_ns);
    assert(is_found); /* the set is full */
    size_t pruned = sync_set_prune(set, oldest_ns + 1, SIZE_MAX);
    set->evicted += pruned;
}

enum sync_insert_result sync_set_insert(struct sync_set *set, const struct id_record *record)
{
    if (record->timestamp_ns < set->covered_from_ns || record->timestamp_ns == INT64_MAX) {
        return SYNC_TOO_OLD;
    }
    struct sync_topic *topic = find_or_add_topic(set, record->topic);
    struct id_entry entry = {
            .key.timestamp_ns = record->timestamp_ns,
            .value = (void *)(uintptr_t)record->content_topic_key,
            .scope = record->topic->index,
    };
    memcpy(entry.key.hash, record->hash, sizeof(entry.key.hash));
    enum status status = topic == NULL ? STATUS_NO_MEMORY : id_tree_insert(topic->ids, &entry);
    if (set->wanted != NULL && (status == STATUS_OK || status == STATUS_ALREADY_THERE)) {
        sync_wanted_arrived(set->wanted, &entry.key);
    }
    if (status == STATUS_ALREADY_THERE) {
        return SYNC_DUPLICATE;
    }
    if (status != STATUS_OK) {
        sync_set_mark_incomplete(set, record->timestamp_ns, record->timestamp_ns);
        return SYNC_NO_MEMORY;
    }
    set->count++;
    if (set->count > set->id_limit) {
        evict_oldest(set);
    }
    return record->timestamp_ns < set->covered_from_ns ? SYNC_TOO_OLD : SYNC_INSERTED;
}

bool sync_set_contains(const struct sync_set *set, const struct id_key *id)
{
    if (id->timestamp_ns < set->covered_from_ns) {
        return false;
    }
    for (size_t i = 0; i < set->topic_count; i++) {
        struct id_entry entry;
        if (set->topics[i].ids != NULL && id_tree_find(set->topics[i].ids, id, &entry)) {
            return true;
        }
    }
    return false;
}

bool sync_set_remove(struct sync_set *set, const struct id_key *id)
{
    for (size_t i = 0; i < set->topic_count; i++) {
        if (set->topics[i].ids != NULL && id_tree_remove(set->topics[i].ids, id, NULL)) {
            set->count--;
            return true;
        }
    }
    return false;
}

void sync_set_uncover(struct sync_set *set, int64_t from_ns)
{
    if (from_ns < set->covered_from_ns) {
        sync_set_mark_incomplete(set, from_ns, set->covered_from_ns - 1);
        set->covered_from_ns = from_ns;
    }
}

size_t sync_set_prune(struct sync_set *set, int64_t before_ns, size_t max_ids)
{
    if (before_ns > set->covered_from_ns) {
        set->covered_from_ns = before_ns;
        sync_set_mark_complete(set, INT64_MIN, before_ns - 1);
    }
    struct id_key bound = {.timestamp_ns = before_ns};
    size_t pruned = 0;
    for (size_t i = 0; i < set->topic_count && pruned < max_ids; i++) {
        if (set->topics[i].ids != NULL) {
            pruned += id_tree_prune_below(set->topics[i].ids, &bound, max_ids - pruned, NULL, NULL);
        }
    }
    set->count -= pruned;
    return pruned;
}

int64_t sync_set_covered_from(const struct sync_set *set)
{
    return set->covered_from_ns;
}

size_t sync_set_count(const struct sync_set *set)
{
    return set->count;
}

uint64_t sync_set_evicted(const struct sync_set *set)
{
    return set->evicted;
}

void sync_set_mark_incomplete(struct sync_set *set, int64_t from_ns, int64_t to_ns)
{
    if (from_ns <= to_ns) {
        time_gaps_add(&set->gaps, (struct sync_gap){from_ns, to_ns});
    }
}

void sync_set_mark_complete(struct sync_set *set, int64_t from_ns, int64_t to_ns)
{
    if (from_ns <= to_ns) {
        time_gaps_remove(&set->gaps, (struct sync_gap){from_ns, to_ns});
    }
}

size_t sync_set_gap_count(const struct sync_set *set)
{
    return set->gaps.count;
}

struct sync_gap sync_set_gap_at(const struct sync_set *set, size_t i)
{
    assert(i < set->gaps.count);
    return set->gaps.gaps[i];
}
