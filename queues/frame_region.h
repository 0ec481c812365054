/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * One aligned run of memory of a frame heap, cut into units of which a bitmap says what is in use.
 *
 * Ownership:  at most one thread at a time allocates in a region: the one that set
 *             FRAME_REGION_OWNED. Blocks are given back by any thread.
 * Lifetime:   used counts the units in use, plus FRAME_REGION_OWNED while a thread owns the region.
 *             Zero is final for everyone but the thread that brought it there: that one alone may put
 *             the region aside, to be owned again, or destroy it.
 *
 *                           owner   any thread   under the heap's lock
 *   find_run                  x                          x
 *   take                      x
 *   give_back                             x
 */

#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/attributes.h"

enum {
    FRAME_UNIT_BYTES = 256
};

#define FRAME_REGION_OWNED (SIZE_MAX ^ (SIZE_MAX >> 1))

struct frame_region {
    /* constant */
    size_t bytes;
    size_t first_unit; /* the ones before it hold this struct */
    size_t unit_count;

    size_t cursor; /* where the owner looks first */

    struct frame_region *next; /* in a list of the heap, under its lock */
    struct frame_region *previous;

    alignas(CACHE_LINE) atomic_size_t used; /* written by everyone */

    alignas(CACHE_LINE) _Atomic uint64_t words[]; /* bits set by the owner, cleared by everyone */
};

/* Owned by the caller, empty. NULL when there is no memory. bytes: a power of two, >= 16 KiB. */
MUST_USE struct frame_region *frame_region_create(size_t bytes);

/* Nothing in it may be in use. */
void frame_region_destroy(struct frame_region *CONSUMED region);

size_t frame_region_units(size_t bytes);

/* The most that a region of that size can hold. */
size_t frame_region_capacity(size_t region_bytes);

/* The first of that many free units in a row, behind the cursor first; 0 when there are none. */
size_t frame_region_find_run(const struct frame_region *region, size_t units);

/* Takes the run for a block of bytes. */
void *frame_region_take(struct frame_region *region, size_t first, size_t bytes);

/* True when that emptied a region that nobody owns: it is then the caller's. */
MUST_USE bool frame_region_give_back(struct frame_region *region, void *block, size_t bytes);

/* Under the heap's lock: the caller becomes the owner, unless it is just emptied elsewhere. */
MUST_USE bool frame_region_try_own(struct frame_region *region);

/* Under the heap's lock. True when nothing in it is in use: it is then the caller's. */
MUST_USE bool frame_region_disown(struct frame_region *region);
