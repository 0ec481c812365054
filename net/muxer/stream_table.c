/* SPDX-License-Identifier: MIT */
#include "net/muxer/stream_table.h"

#include <assert.h>

#include "base/memory.h"
#include "net/muxer/muxer_private.h"

enum {
    FIRST_CAPACITY = 8
};

/* The finalizer of MurmurHash3; the seed is the table's address, which the peer cannot know. */
static size_t home_of(const struct stream_table *table, uint64_t key)
{
    uint64_t x = key ^ (uint64_t)(uintptr_t)table;
    x = (x ^ (x >> 33)) * UINT64_C(0xff51afd7ed558ccd);
    x = (x ^ (x >> 33)) * UINT64_C(0xc4ceb9fe1a85ec53);
    return (size_t)(x ^ (x >> 33)) & (table->capacity - 1);
}

static size_t next_of(const struct stream_table *table, size_t i)
{
    return (i + 1) & (table->capacity - 1);
}

struct muxer_stream *stream_table_find(const struct stream_table *table, uint64_t key)
{
    if (table->count == 0) {
        return NULL;
    }
    for (size_t i = home_of(table, key); table->slots[i] != NULL; i = next_of(table, i)) {
        if (table->slots[i]->key == key) {
            return table->slots[i];
        }
    }
    return NULL;
}

struct muxer_stream *stream_table_find_any(const struct stream_table *table)
{
    for (size_t i = 0; i < table->capacity; i++) {
        if (table->slots[i] != NULL) {
            return table->slots[i];
        }
    }
    return NULL;
}

static void place(struct stream_table *table, struct muxer_stream *stream)
{
    size_t i = home_of(table, stream->key);
    while (table->slots[i] != NULL) {
        i = next_of(table, i);
    }
    table->slots[i] = stream;
}

static enum status grow(struct stream_table *table)
{
    struct muxer_stream **old = table->slots;
    size_t old_capacity = table->capacity;
    size_t capacity = old_capacity == 0 ? FIRST_CAPACITY : old_capacity * 2;
    struct muxer_stream **slots = memory_allocate_zeroed(capacity * sizeof(struct muxer_stream *));
    if (slots == NULL) {
        return STATUS_NO_MEMORY;
    }
    table->slots = slots;
    table->capacity = capacity;
    for (size_t i = 0; i < old_capacity; i++) {
        if (old[i] != NULL) {
            place(table, old[i]);
        }
    }
    memory_free(old);
    return STATUS_OK;
}

enum status stream_table_add(struct stream_table *table, struct muxer_stream *stream)
{
    if ((table->count + 1) * 2 > table->capacity) {
        enum status status = grow(table);
        if (status != STATUS_OK) {
            return status;
        }
    }
    place(table, stream);
    table->count++;
    return STATUS_OK;
}

/* True when the stream at slot i may move to the hole: its home does not lie after the hole. */
static bool may_move(const struct stream_table *table, size_t hole, size_t i)
{
    size_t mask = table->capacity - 1;
    size_t home = home_of(table, table->slots[i]->key);
    return ((i - home) & mask) >= ((i - hole) & mask);
}

void stream_table_remove(struct stream_table *table, const struct muxer_stream *stream)
{
    size_t hole = home_of(table, stream->key);
    while (table->slots[hole] != stream) {
        assert(table->slots[hole] != NULL);
        hole = next_of(table, hole);
    }
    for (size_t i = next_of(table, hole); table->slots[i] != NULL; i = next_of(table, i)) {
        if (may_move(table, hole, i)) {
            table->slots[hole] = table->slots[i];
            hole = i;
        }
    }
    table->slots[hole] = NULL;
    table->count--;
    if (table->count == 0 && table->capacity > FIRST_CAPACITY) {
        stream_table_fini(table);
    }
}

void stream_table_fini(struct stream_table *table)
{
    memory_free(table->slots);
    *table = (struct stream_table){0};
}
