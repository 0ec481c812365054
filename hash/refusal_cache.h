/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The messages that were refused a moment ago, and why: a copy is refused with the first reason,
 * without being decoded again.
 *
 * A hit is believed without comparing bytes: the key is 128 bits of XXH3 under the process's secret
 * (hash/fast_key.h). An entry counts for the window from its first refusal and is not renewed, so a
 * verdict that time would change (a timestamp ahead of the clock) is taken again after it. The size
 * is fixed: where a bucket of four is full the oldest gives way, and then its copy is decoded again.
 *
 * Thread: one.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/attributes.h"
#include "base/clock.h"
#include "base/status.h"
#include "hash/fast_key.h"

enum {
    REFUSAL_CACHE_DEFAULT_ENTRIES = 4096 /* 128 KiB */
};

/* Longer than copies of one message take to come in from the mesh, shorter than any patience. */
#define REFUSAL_CACHE_DEFAULT_WINDOW_NS ((uint64_t)10 * NANOSECONDS_PER_SECOND)

struct refusal_cache;

/* entries: a power of two, at least 4. */
MUST_USE enum status refusal_cache_create(
        struct refusal_cache **out, size_t entries, uint64_t window_ns);
void refusal_cache_destroy(struct refusal_cache **cache);

/* Whether a key with that low half may be there: spares most messages the pass for the whole key. */
bool refusal_cache_may_have(const struct refusal_cache *cache, uint64_t key_low, uint64_t now_ns);

/* The reason given to refusal_cache_insert, or 0. now_ns: monotonic. */
uint32_t refusal_cache_find(
        const struct refusal_cache *cache, struct wide_key key, uint64_t now_ns);

/* reason must not be 0. A key that is there already keeps its reason and its time. */
void refusal_cache_insert(
        struct refusal_cache *cache, struct wide_key key, uint32_t reason, uint64_t now_ns);
