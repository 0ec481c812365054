/* SPDX-License-Identifier: MIT */
#include "net/muxer/held_bytes.h"

#include <assert.h>

#include "base/memory.h"

enum {
    CHUNK_MIN =
            2048, /* with its header, so that frames of one byte do not cost an allocation each */
    CHUNK_MAX = 65536
};

struct held_chunk {
    struct held_chunk *next;
    uint32_t start;
    uint32_t end;
    uint32_t capacity;
    uint8_t bytes[];
};

size_t held_bytes_reserve(struct held_bytes *held, size_t wanted, uint8_t **to)
{
    struct held_chunk *chunk = held->last;
    if (chunk == NULL || chunk->end == chunk->capacity) {
        size_t size = sizeof(*chunk) + wanted;
        size = size < CHUNK_MIN ? CHUNK_MIN : size;
        size = size > CHUNK_MAX ? CHUNK_MAX : size;
        chunk = memory_allocate(size);
        if (chunk == NULL) {
            return 0;
        }
        *chunk = (struct held_chunk){.capacity = (uint32_t)(size - sizeof(*chunk))};
        if (held->last == NULL) {
            held->first = chunk;
        } else {
            held->last->next = chunk;
        }
        held->last = chunk;
    }
    *to = chunk->bytes + chunk->end;
    return chunk->capacity - chunk->end;
}

void held_bytes_commit(struct held_bytes *held, size_t n)
{
    held->last->end += (uint32_t)n;
    held->size += n;
}

struct span held_bytes_front(const struct held_bytes *held)
{
    const struct held_chunk *chunk = held->first;
    return span_of(chunk->bytes + chunk->start, chunk->end - chunk->start);
}

void held_bytes_drop(struct held_bytes *held, size_t n)
{
    struct held_chunk *chunk = held->first;
    assert(n <= chunk->end - chunk->start);
    chunk->start += (uint32_t)n;
    held->size -= n;
    if (chunk->start == chunk->end) {
        held->first = chunk->next;
        if (held->first == NULL) {
            held->last = NULL;
        }
        memory_free(chunk);
    }
}

void held_bytes_fini(struct held_bytes *held)
{
    while (held->first != NULL) {
        struct held_chunk *chunk = held->first;
        held->first = chunk->next;
        memory_free(chunk);
    }
    *held = (struct held_bytes){0};
}
