/* SPDX-License-Identifier: MIT */
#pragma once

/* What sync_set and sync_view share. */

#include "hash/id_tree.h"
#include "router/sync_set.h"
#include "router/time_gaps.h"

/* A tree a pubsub topic: ids of one scope are found without walking over those of the others. */
struct sync_topic {
    const struct topic *topic;
    uint64_t name_key;
    struct id_tree *ids; /* values are the content topics' keys; NULL: no id came yet */
};

struct sync_set {
    struct sync_topic *topics; /* by topic->index */
    size_t topic_count;
    size_t count;
    size_t id_limit;
    uint64_t evicted;
    int64_t covered_from_ns;
    struct time_gaps gaps;
    struct sync_wanted *wanted; /* NULL: nothing is wanted of peers */
};
