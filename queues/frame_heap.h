/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Memory for large frames, packed to the quarter of a KiB: size classes would cost a tenth or more of
 * every retained message.
 *
 * Each allocating thread has up to FRAME_HEAP_OPEN_REGIONS regions of its own and takes the next free
 * run in them. A region that is too full for a request is parked and owned by nobody; it is used again
 * once it is less than half full, and put aside or unmapped once it is empty.
 *
 * What is held (frame_heap_held_bytes) and not in use:
 *   - a region is held as long as one frame in it lives, so a few frames that outlive all others pin at
 *     most a region each;
 *   - the heap grows only while what it holds is at most twice what is in use, plus the open regions
 *     of one thread more than there are; past that it refuses, and the caller turns to malloc. So
 *     holes never make it grow past that, however sizes and lifetimes are mixed;
 *   - empty regions are kept for what comes next (32 MiB and an eighth of all regions at most), so
 *     that traffic that is not kept takes no page faults.
 *
 * Progress:  free, and allocation in a region that the thread has, are lock-free. A mutex is held for a
 *            bounded walk when a thread changes its region, and when one becomes empty.
 * Thread:    allocate and free on any; a thread's regions are parked when it ends.
 */

#include <stddef.h>

#include "base/attributes.h"
#include "base/status.h"

enum {
    FRAME_HEAP_REGION_BYTES = 2 * 1024 * 1024,
    FRAME_HEAP_KEEP_REGIONS = 16,
    FRAME_HEAP_OPEN_REGIONS = 2,
    FRAME_HEAP_MIN_BYTES = 8 * 1024 /* below it, malloc's classes waste less than a hole would */
};

struct frame_heap;

struct frame_heap_options {
    size_t region_bytes; /* a power of two, 16 KiB at least */
    size_t keep_regions;
};

MUST_USE enum status frame_heap_create(
        struct frame_heap **out, const struct frame_heap_options *options);

/* Nothing may be in use, and no thread but the caller may have used it and still run. */
void frame_heap_destroy(struct frame_heap **heap);

/* The one that all frames of the process share; never destroyed. NULL when it cannot be made. */
struct frame_heap *BORROWED frame_heap_of_process(void);

/* The largest block, a quarter of a region: larger ones would leave too much of it unused. */
size_t frame_heap_max_bytes(const struct frame_heap *heap);

/*
 * Aligned to FRAME_UNIT_BYTES, counted as an allocation. NULL when bytes is above the largest block,
 * the heap may not grow or there is no memory.
 */
MUST_USE void *frame_heap_try_allocate(struct frame_heap *heap, size_t bytes);

/* bytes as in the allocation. */
void frame_heap_free(struct frame_heap *heap, void *CONSUMED block, size_t bytes);

/* In blocks, each rounded up to whole units. */
size_t frame_heap_used_bytes(const struct frame_heap *heap);

/* In regions: what the process has mapped for it, empty ones and holes included. */
size_t frame_heap_held_bytes(const struct frame_heap *heap);
