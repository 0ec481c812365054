/* SPDX-License-Identifier: MIT */
#pragma once

/* The inside of the subscription table, for its own files. */

#include <stdatomic.h>

#include "base/rcu.h"
#include "router/criteria.h"
#include "router/subscriptions.h"

struct subscriber {
    struct subscriber_entry entry;
    uint64_t last_seen_ns;
    struct subscriber *older; /* in the order of last_seen_ns */
    struct subscriber *newer;
    struct criterion **criteria; /* sorted by address */
    size_t criteria_count;
    size_t criteria_capacity;
    void (*release_context)(void *context);
    struct rcu_head reclaim;
};

struct subscriptions {
    struct subscriptions_options options;
    struct shared_map *criteria;
    struct subscriber **by_id; /* sorted */
    size_t peer_count;
    size_t peer_capacity;
    _Atomic size_t *peer_total; /* of all tables that share it; its own count without one */
    _Atomic size_t own_total;
    struct subscriber *oldest;
    struct subscriber *newest;
    uint64_t stamp;
};

/* Where id is, or would be, in by_id. */
size_t subscriptions_position(const struct subscriptions *subscriptions, uint64_t id);
