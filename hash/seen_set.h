/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The messages that a lane has accepted, by (topic, message id): what makes a copy a duplicate.
 *
 * The writer asks by fast key first (hash/fast_key.h). Not found: the message is surely new, and both
 * its hashes can be computed side by side. Found: it is almost surely a copy; compute its id alone and
 * compare. If that differs, two messages share a fast key: ask seen_set_contains with the id.
 *
 * An entry lives for the window and, when a copy was shown to seen_set_renew in that time, for another
 * one: gossipsub's rule, whose seen cache is a timed least-recently-used one. (If copies did not renew
 * it, a message that somebody repeats for ever would pass once a window at every node in turn.) A
 * message is so accepted at most once a window, counted from its last copy, and remembered for at
 * most two. What must happen once ever (archive, sync) goes by message hash instead. When the set is at
 * its limit the entry queued longest ago goes for each that comes, counted as METRIC_SEEN_EVICTED.
 *
 * Everything is O(1) but for the insert that doubles an index, some nanoseconds an entry. Index and
 * entries take memory as messages come: one allocation serves SEEN_SET_SLAB_ENTRIES entries.
 *
 * Ownership:  entries are copied in.
 * Thread:     one; count and bytes on any (they may be slightly behind).
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/attributes.h"
#include "base/clock.h"
#include "base/status.h"
#include "hash/sha256.h"

enum {
    SEEN_SET_SLAB_ENTRIES = 256,
    SEEN_SET_EXPIRE_STEP = 256, /* entries that one seen_set_expire looks at, at most */
    SEEN_SET_MIN_LIMIT_BYTES = 65536
};

/* 2 minutes, as everybody on this network. */
#define SEEN_SET_DEFAULT_WINDOW_NS ((uint64_t)120 * NANOSECONDS_PER_SECOND)

struct seen_set;

/* limit_bytes >= SEEN_SET_MIN_LIMIT_BYTES covers entries and indexes (85 to 107 bytes an entry). */
MUST_USE enum status seen_set_create(struct seen_set **out, size_t limit_bytes, uint64_t window_ns);

void seen_set_destroy(struct seen_set **set);

/* The id of an entry with that topic and key, valid until the next insert or expire, or NULL. */
const uint8_t *BORROWED seen_set_find_fast(
        const struct seen_set *set, uint32_t topic, uint64_t key);

/* now_ns: monotonic. The pair (topic, id) must not be in the set. Fails only for want of memory. */
MUST_USE enum status seen_set_insert(struct seen_set *set, uint32_t topic,
        const uint8_t id[SHA256_BYTES], uint64_t key, uint64_t now_ns);

/* A copy came: the entry that seen_set_find_fast gives lives for another window. No entry: no effect. */
void seen_set_renew(struct seen_set *set, uint32_t topic, uint64_t key);

/*
 * Forgets entries whose window has passed. It looks at SEEN_SET_EXPIRE_STEP of them at most, so that
 * it can be called once a turn. True: there is more to do.
 */
bool seen_set_expire(struct seen_set *set, uint64_t now_ns);

bool seen_set_contains(const struct seen_set *set, uint32_t topic, const uint8_t id[SHA256_BYTES]);

size_t seen_set_count(const struct seen_set *set);

/* Memory in use, indexes included. */
size_t seen_set_bytes(const struct seen_set *set);

/* The most entries it holds before the oldest must go. */
size_t seen_set_capacity(const struct seen_set *set);
