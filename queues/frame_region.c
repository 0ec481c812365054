/* SPDX-License-Identifier: MIT */
#include "queues/frame_region.h"

#include <assert.h>
#include <sys/mman.h>

#include "queues/poison.h"

#if defined(__SANITIZE_ADDRESS__)
#define ASAN_ON 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define ASAN_ON 1
#endif
#endif

#ifdef ASAN_ON
#include <sanitizer/asan_interface.h>
#include <sanitizer/lsan_interface.h>
#define FORBID(address, bytes)  __asan_poison_memory_region(address, bytes)
#define ALLOW(address, bytes)   __asan_unpoison_memory_region(address, bytes)
#define WATCH(address, bytes)   __lsan_register_root_region(address, bytes)
#define UNWATCH(address, bytes) __lsan_unregister_root_region(address, bytes)
enum {
    GUARD_UNITS = 1 /* behind every block, so that an overrun does not land in the next one */
};
#else
#define FORBID(address, bytes)  ((void)(address), (void)(bytes))
#define ALLOW(address, bytes)   ((void)(address), (void)(bytes))
#define WATCH(address, bytes)   ((void)(address), (void)(bytes))
#define UNWATCH(address, bytes) ((void)(address), (void)(bytes))
enum {
    GUARD_UNITS = 0
};
#endif

enum {
    WORD_BITS = 64
};

/*
 * A bit that is clear stays clear until the owner sets it, so a run may be put together from words
 * that were loaded one after the other, and a run found under the heap's lock in a region without
 * owner is still there when the region is owned.
 *
 * Ordering (every acquire or release below carries the name of its pair):
 *
 *   FREE   release clear of a block's bits -> acquire load of the word by the owner. Whoever had the
 *          block has finished with it before it is handed out again. All writes to a word are
 *          read-modify-writes, so a load that sees the last of them sees them all.
 *   EMPTY  release decrement of used -> acquire decrement that brings it to zero. Whoever destroys the
 *          region has seen every block's last use.
 *
 * One owner's cursor and bits go to the next by the heap's lock, which both hold when they change.
 */

static void *map_aligned(size_t bytes)
{
    size_t whole = 2 * bytes;
    char *start = mmap(NULL, whole, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (start == MAP_FAILED) {
        return NULL;
    }
    size_t skip = (bytes - (uintptr_t)start % bytes) % bytes;
    if (skip > 0) {
        munmap(start, skip);
    }
    if (skip < bytes) {
        munmap(start + skip + bytes, bytes - skip);
    }
    /* One page fault instead of hundreds; where the kernel will not, nothing is lost. */
    (void)madvise(start + skip, bytes, MADV_HUGEPAGE);
    return start + skip;
}

size_t frame_region_units(size_t bytes)
{
    return (bytes + FRAME_UNIT_BYTES - 1) / FRAME_UNIT_BYTES + GUARD_UNITS;
}

static size_t header_units(size_t region_bytes)
{
    size_t words = region_bytes / FRAME_UNIT_BYTES / WORD_BITS;
    size_t header = sizeof(struct frame_region) + words * sizeof(uint64_t);
    return (header + FRAME_UNIT_BYTES - 1) / FRAME_UNIT_BYTES;
}

size_t frame_region_capacity(size_t region_bytes)
{
    return region_bytes - (header_units(region_bytes) + GUARD_UNITS) * FRAME_UNIT_BYTES;
}

/* The bits of word that belong to [first, end). */
static uint64_t mask_of(size_t word, size_t first, size_t end)
{
    size_t from = word * WORD_BITS < first ? first % WORD_BITS : 0;
    size_t to = (word + 1) * WORD_BITS > end ? end % WORD_BITS : WORD_BITS;
    return UINT64_MAX << from & UINT64_MAX >> (WORD_BITS - to);
}

static void mark_used(struct frame_region *region, size_t first, size_t units)
{
    for (size_t word = first / WORD_BITS; word * WORD_BITS < first + units; word++) {
        /* relaxed: only the owner sets bits, and the block goes to others by ways of its own */
        atomic_fetch_or_explicit(
                &region->words[word], mask_of(word, first, first + units), memory_order_relaxed);
    }
}

static void mark_free(struct frame_region *region, size_t first, size_t units)
{
    for (size_t word = first / WORD_BITS; word * WORD_BITS < first + units; word++) {
        uint64_t mask = mask_of(word, first, first + units);
        uint64_t before = atomic_fetch_and_explicit(
                &region->words[word], ~mask, memory_order_release); /* FREE */
        assert((before & mask) == mask);
    }
}

struct frame_region *frame_region_create(size_t bytes)
{
    assert(bytes >= (size_t)FRAME_UNIT_BYTES * WORD_BITS && (bytes & (bytes - 1)) == 0);
    struct frame_region *region = map_aligned(bytes);
    if (region == NULL) {
        return NULL;
    }
    region->bytes = bytes;
    region->unit_count = bytes / FRAME_UNIT_BYTES;
    region->first_unit = header_units(bytes);
    region->cursor = region->first_unit;
    for (size_t word = 0; word < region->unit_count / WORD_BITS; word++) {
        atomic_init(&region->words[word], 0);
    }
    atomic_init(&region->used, FRAME_REGION_OWNED);
    mark_used(region, 0, region->first_unit);
    FORBID((char *)region + region->first_unit * FRAME_UNIT_BYTES,
            bytes - region->first_unit * FRAME_UNIT_BYTES);
    WATCH(region, bytes);
    return region;
}

void frame_region_destroy(struct frame_region *region)
{
    size_t bytes = region->bytes;
    UNWATCH(region, bytes);
    ALLOW(region, bytes);
    poison(region, bytes);
    munmap(region, bytes);
}

/* Moves *position past the next free and the next used units of its word; returns how many were free. */
static size_t skip_free_then_used(const struct frame_region *region, size_t *position)
{
    uint64_t word = atomic_load_explicit(
            &region->words[*position / WORD_BITS], memory_order_acquire); /* FREE */
    size_t shift = *position % WORD_BITS;
    uint64_t rest = word >> shift;
    if (rest == 0) {
        *position += WORD_BITS - shift;
        return WORD_BITS - shift;
    }
    size_t free_units = (size_t)__builtin_ctzll(rest);
    uint64_t clear = ~(rest >> free_units);
    size_t used_units = clear == 0 ? WORD_BITS : (size_t)__builtin_ctzll(clear);
    *position += free_units + used_units;
    return free_units;
}

/* 0 when no run starts at first or behind. */
static size_t find_from(const struct frame_region *region, size_t first, size_t units)
{
    size_t start = first;
    for (size_t position = first; position < region->unit_count;) {
        size_t before = position;
        size_t free_units = skip_free_then_used(region, &position);
        if (before + free_units - start >= units) {
            return start;
        }
        if (before + free_units < position) {
            start = position;
        }
    }
    return 0;
}

size_t frame_region_find_run(const struct frame_region *region, size_t units)
{
    /* relaxed: only to spare the walk; units freed meanwhile may be missed */
    size_t used = atomic_load_explicit(&region->used, memory_order_relaxed) & ~FRAME_REGION_OWNED;
    if (region->unit_count - region->first_unit < used + units) {
        return 0;
    }
    size_t first = find_from(region, region->cursor, units);
    return first != 0 ? first : find_from(region, region->first_unit, units);
}

void *frame_region_take(struct frame_region *region, size_t first, size_t bytes)
{
    size_t units = frame_region_units(bytes);
    void *block = (char *)region + first * FRAME_UNIT_BYTES;
    mark_used(region, first, units);
    /* relaxed: the owner's own hold keeps the region, the count guards nothing else */
    atomic_fetch_add_explicit(&region->used, units, memory_order_relaxed);
    region->cursor = first + units;
    ALLOW(block, bytes);
    return block;
}

bool frame_region_give_back(struct frame_region *region, void *block, size_t bytes)
{
    size_t units = frame_region_units(bytes);
    size_t first = (size_t)((char *)block - (char *)region) / FRAME_UNIT_BYTES;
    FORBID(block, units * FRAME_UNIT_BYTES);
    mark_free(region, first, units);
    size_t before = atomic_fetch_sub_explicit(&region->used, units, memory_order_acq_rel);
    assert((before & ~FRAME_REGION_OWNED) >= units);
    return before == units; /* EMPTY */
}

bool frame_region_try_own(struct frame_region *region)
{
    /* relaxed, and so is the exchange: the heap's lock orders owners, FREE the blocks */
    size_t used = atomic_load_explicit(&region->used, memory_order_relaxed);
    /* Ends because a failure means that another thread gave a block back. */
    while (used != 0) {
        assert((used & FRAME_REGION_OWNED) == 0);
        if (atomic_compare_exchange_weak_explicit(&region->used, &used, used | FRAME_REGION_OWNED,
                    memory_order_relaxed, memory_order_relaxed)) {
            return true;
        }
    }
    return false;
}

bool frame_region_disown(struct frame_region *region)
{
    size_t before =
            atomic_fetch_sub_explicit(&region->used, FRAME_REGION_OWNED, memory_order_acq_rel);
    assert((before & FRAME_REGION_OWNED) != 0);
    return before == FRAME_REGION_OWNED; /* EMPTY */
}
