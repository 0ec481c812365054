/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The (timestamp, hash) ids of the messages this node can give to others, by pubsub topic, with
 * fingerprints (the XOR of the hashes) of any range: what store-sync compares.
 *
 * Progress:   insert and fingerprint are O(log n) for each pubsub topic in scope; a scope that names
 *             content topics walks the range. Pruning is done in steps that the caller sizes.
 * Thread:     one (the sync worker).
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/attributes.h"
#include "base/span.h"
#include "base/status.h"
#include "hash/id_tree.h"
#include "queues/id_ring.h"
#include "router/sync_wanted.h"

/* Inclusive at both ends. */
struct sync_range {
    struct id_key from;
    struct id_key to;
};

/* Which messages a session is about; an empty list means all. */
struct sync_scope {
    const struct span *pubsub_topics;
    size_t pubsub_topic_count;
    const struct span *content_topics;
    size_t content_topic_count;
};

enum sync_insert_result {
    SYNC_INSERTED,
    SYNC_DUPLICATE, /* it is there already */
    SYNC_TOO_OLD,   /* before what the set covers, see sync_set_covered_from */
    SYNC_NO_MEMORY  /* its time is marked as incomplete */
};

struct sync_set;

/* At most id_limit ids (sync-limit): when full, the oldest make room and the covered time shrinks. */
MUST_USE enum status sync_set_create(struct sync_set **out, size_t id_limit);
void sync_set_destroy(struct sync_set **set);

/* From now on the set knows what is wanted of peers: see sync_set_wanted. */
MUST_USE enum status sync_set_want(struct sync_set *set, size_t max, uint64_t patience_ms);

/* NULL: nothing is. An id that comes into the set leaves it. */
struct sync_wanted *BORROWED sync_set_wanted(struct sync_set *set);

/*
 * The caller keeps ephemeral messages and timestamps of the far future out. A timestamp below 0 is
 * too old: it has no place on the wire. The topic must outlive the set; content_topic_key is
 * fast_key_of_bytes (hash/fast_key.h) of the content topic.
 */
MUST_USE enum sync_insert_result sync_set_insert(
        struct sync_set *set, const struct id_record *record);
/* Its message is not in the archive after all. False when the id is not there. */
bool sync_set_remove(struct sync_set *set, const struct id_key *id);
bool sync_set_contains(const struct sync_set *set, const struct id_key *id);

/*
 * Removes at most max_ids of the ids before before_ns; returns how many, fewer than max_ids when it
 * is done. From the first call on ids of that time are too old.
 */
size_t sync_set_prune(struct sync_set *set, int64_t before_ns, size_t max_ids);

/*
 * Takes back what pruning with a clock that was ahead has done: ids from from_ns on are taken again, and
 * the time up to where the set began is incomplete.
 */
void sync_set_uncover(struct sync_set *set, int64_t from_ns);

/* Ids before this time were pruned or never taken. */
int64_t sync_set_covered_from(const struct sync_set *set);
size_t sync_set_count(const struct sync_set *set);
/* Ids that had to make room for newer ones. */
uint64_t sync_set_evicted(const struct sync_set *set);

/* The ids of the set that are in both of two scopes (NULL: all). */
struct sync_view;

/* Resolves the names once; the view is good until the next insert or prune. */
MUST_USE enum status sync_view_create(struct sync_view **out, const struct sync_set *set,
        const struct sync_scope *ours, const struct sync_scope *theirs);
void sync_view_destroy(struct sync_view **view);

/* The two scopes name topics and have none in common: there is nothing to talk about. */
bool sync_view_is_disjoint(const struct sync_view *view);

/* Ids that the set does not cover any more are left out here and below, pruned yet or not. */
void sync_view_summarise(
        struct sync_view *view, const struct sync_range *range, struct id_summary *out);

/* Walks the range in order (timestamp, hash): seek, then next until it returns false. */
void sync_view_seek(struct sync_view *view, const struct sync_range *range);
MUST_USE bool sync_view_next(struct sync_view *view, struct id_key *out);

/* Steps taken so far: what bounds the work that a peer may cause. */
uint64_t sync_view_work(const struct sync_view *view);

/*
 * Times in which ids may be missing (lost to a full ring, or not loaded yet), to be filled from the
 * archive: kept sorted and apart. When there are too many of them the closest two become one.
 */
void sync_set_mark_incomplete(struct sync_set *set, int64_t from_ns, int64_t to_ns);
void sync_set_mark_complete(struct sync_set *set, int64_t from_ns, int64_t to_ns);

struct sync_gap {
    int64_t from_ns;
    int64_t to_ns; /* inclusive */
};
size_t sync_set_gap_count(const struct sync_set *set);
struct sync_gap sync_set_gap_at(const struct sync_set *set, size_t i);
