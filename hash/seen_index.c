/* SPDX-License-Identifier: MIT */
#include "hash/seen_index.h"

#include <assert.h>
#include <sys/mman.h>

#include "base/memory.h"

enum {
    MAPPED_FROM_BYTES = 2 * 1024 * 1024 /* what one huge page holds */
};

static uint32_t tag_of(uint64_t key)
{
    return (uint32_t)(key >> 32);
}

static uint64_t slot_value(uint64_t key, uint32_t position)
{
    return (uint64_t)tag_of(key) << 32 | (position + 1);
}

/* The home slot follows from the tag, so that entries can be shifted without a look at their keys. */
static uint32_t home_of(const struct seen_index *index, uint32_t tag)
{
    return tag >> index->shift;
}

static size_t bytes_of(uint32_t bits)
{
    return sizeof(uint64_t) << bits;
}

/* Zeroed. A large table is filled in all its places soon: a few huge pages are fewer page faults. */
static uint64_t *make_slots(uint32_t bits)
{
    size_t bytes = bytes_of(bits);
    if (bytes < MAPPED_FROM_BYTES) {
        return memory_allocate_zeroed(bytes);
    }
    void *slots = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (slots == MAP_FAILED) {
        return NULL;
    }
    (void)madvise(slots, bytes, MADV_HUGEPAGE);
    return slots;
}

static void free_slots(uint64_t *slots, uint32_t bits)
{
    if (slots != NULL && bytes_of(bits) >= MAPPED_FROM_BYTES) {
        munmap(slots, bytes_of(bits));
    } else {
        memory_free(slots);
    }
}

static uint32_t bits_of(const struct seen_index *index)
{
    return 32 - index->shift;
}

enum status seen_index_init(struct seen_index *index, uint32_t bits)
{
    assert(bits >= SEEN_INDEX_LEAST_BITS && bits <= SEEN_INDEX_MOST_BITS);
    index->slots = make_slots(bits);
    index->mask = (uint32_t)(((size_t)1 << bits) - 1);
    index->shift = 32 - bits;
    return index->slots == NULL ? STATUS_NO_MEMORY : STATUS_OK;
}

void seen_index_fini(struct seen_index *index)
{
    if (index->slots != NULL) {
        free_slots(index->slots, bits_of(index));
        index->slots = NULL;
    }
}

size_t seen_index_bytes(const struct seen_index *index)
{
    return bytes_of(bits_of(index));
}

size_t seen_index_capacity(uint32_t bits)
{
    return ((size_t)3 << bits) / 4;
}

static void put(struct seen_index *index, uint64_t value)
{
    uint32_t slot = home_of(index, (uint32_t)(value >> 32));
    while (index->slots[slot] != 0) {
        slot = (slot + 1) & index->mask;
    }
    index->slots[slot] = value;
}

enum status seen_index_reserve(struct seen_index *index, size_t count)
{
    struct seen_index larger;
    if (count <= seen_index_capacity(bits_of(index))) {
        return STATUS_OK;
    }
    enum status status = seen_index_init(&larger, bits_of(index) + 1);
    if (status != STATUS_OK) {
        return status;
    }
    for (size_t slot = 0; slot <= index->mask; slot++) {
        if (index->slots[slot] != 0) {
            put(&larger, index->slots[slot]);
        }
    }
    seen_index_fini(index);
    *index = larger;
    return STATUS_OK;
}

struct seen_index_search seen_index_search(const struct seen_index *index, uint64_t key)
{
    uint32_t tag = tag_of(key);
    return (struct seen_index_search){.tag = tag, .slot = home_of(index, tag)};
}

uint32_t seen_index_next(const struct seen_index *index, struct seen_index_search *search)
{
    for (;;) {
        uint64_t value = index->slots[search->slot];
        if (value == 0) {
            return SEEN_INDEX_NONE;
        }
        search->slot = (search->slot + 1) & index->mask;
        if (value >> 32 == search->tag) {
            return (uint32_t)value - 1;
        }
    }
}

void seen_index_prefetch(const struct seen_index *index, uint64_t key)
{
    __builtin_prefetch(&index->slots[home_of(index, tag_of(key))], 1);
}

static uint32_t slot_of(const struct seen_index *index, uint64_t value)
{
    uint32_t slot = home_of(index, (uint32_t)(value >> 32));
    while (index->slots[slot] != value) {
        assert(index->slots[slot] != 0);
        slot = (slot + 1) & index->mask;
    }
    return slot;
}

void seen_index_insert(struct seen_index *index, uint64_t key, uint32_t position)
{
    put(index, slot_value(key, position));
}

void seen_index_move(struct seen_index *index, uint64_t key, uint32_t from, uint32_t to)
{
    index->slots[slot_of(index, slot_value(key, from))] = slot_value(key, to);
}

void seen_index_remove(struct seen_index *index, uint64_t key, uint32_t position)
{
    uint32_t gap = slot_of(index, slot_value(key, position));
    uint32_t slot = gap;
    for (;;) {
        slot = (slot + 1) & index->mask;
        uint64_t value = index->slots[slot];
        if (value == 0) {
            break;
        }
        /* It may fill the gap unless its home lies behind the gap, where no search would find it. */
        uint32_t from_home = (slot - home_of(index, (uint32_t)(value >> 32))) & index->mask;
        uint32_t from_gap = (slot - gap) & index->mask;
        if (from_home >= from_gap) {
            index->slots[gap] = value;
            gap = slot;
        }
    }
    index->slots[gap] = 0;
}
