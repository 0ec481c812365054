/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The messages that a lane has accepted, by (topic, message id): what makes a copy a duplicate.
 *
 * The writer asks by fast key first (hash/fast_key.h). Not found: the message is surely new, and both
 * its hashes can be computed side by side. Found: it is almost surely a copy; compute its id alone and
 * compare. If that differs, two messages share a fast key: ask seen_set_contains with the id.
 *
 * An entry lives for the window, counted from when the message was first accepted (gossipsub's rule
 * for its seen cache: copies do not renew it). So a message that is repeated for ever is let through
 * at most once a window; what must happen once ever (archive, sync) goes by message hash instead. When
 * the set is at its limit the oldest entry goes for each that comes, counted as METRIC_SEEN_EVICTED.
 *
 * Progress:   find_fast, contains and insert are O(1) and wait for nobody; contains is wait-free but
 *             for the length of a chain, which is below two on average at the limit. The indexes
 *             are sized from the limit when the set is made, so nothing is ever rehashed; one
 *             allocation serves SEEN_SET_SLAB_ENTRIES entries.
 * Ownership:  entries are copied in. Slabs whose entries have all left are retired through RCU.
 *
 *                                        writer   RCU reader, online
 *   find_fast, insert, expire              x
 *   contains                               x              x
 *   count, bytes                           x              x (may be slightly behind)
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/attributes.h"
#include "base/clock.h"
#include "base/status.h"
#include "hash/sha256.h"

enum {
    SEEN_SET_SLAB_ENTRIES = 255,
    SEEN_SET_EXPIRE_STEP = 1024, /* entries removed by one seen_set_expire at most */
    SEEN_SET_MIN_LIMIT_BYTES = 65536
};

/* 2 minutes, as everybody on this network. */
#define SEEN_SET_DEFAULT_WINDOW_NS ((uint64_t)120 * NANOSECONDS_PER_SECOND)

struct seen_set;

/*
 * limit_bytes >= SEEN_SET_MIN_LIMIT_BYTES covers entries and indexes (about 80 to 100 bytes an entry);
 * the few slabs that wait for their grace period come on top.
 */
MUST_USE enum status seen_set_create(struct seen_set **out, size_t limit_bytes, uint64_t window_ns);

/* No reader may be left. */
void seen_set_destroy(struct seen_set **set);

/* The id of an entry with that topic and key, valid until the next insert or expire, or NULL. */
const uint8_t *BORROWED seen_set_find_fast(
        const struct seen_set *set, uint32_t topic, uint64_t key);

/* now_ns: monotonic. The pair (topic, id) must not be in the set. Fails only for want of memory. */
MUST_USE enum status seen_set_insert(struct seen_set *set, uint32_t topic,
        const uint8_t id[SHA256_BYTES], uint64_t key, uint64_t now_ns);

/*
 * Removes entries older than the window, oldest first, at most SEEN_SET_EXPIRE_STEP of them, so that
 * it can be called once a turn. True: there are more.
 */
bool seen_set_expire(struct seen_set *set, uint64_t now_ns);

/* Inside a read-side section. */
bool seen_set_contains(const struct seen_set *set, uint32_t topic, const uint8_t id[SHA256_BYTES]);

size_t seen_set_count(const struct seen_set *set);

/* Memory in use, indexes included. */
size_t seen_set_bytes(const struct seen_set *set);

/* The most entries it holds before the oldest must go. */
size_t seen_set_capacity(const struct seen_set *set);
