/* SPDX-License-Identifier: MIT */
#include "net/protocols/piece_list.h"

#include "base/memory.h"

enum {
    CHUNK_BYTES = 32 * 1024
};

struct chunk {
    struct chunk *next;
    size_t capacity;
    size_t used;
    uint8_t bytes[];
};

struct segment {
    struct span bytes;
    struct envelope *envelope; /* a reference; NULL: the bytes lie in a chunk */
};

struct piece_list {
    size_t references; /* one thread at a time */
    size_t length;
    size_t segment_count;
    size_t segments_max;
    size_t handed_out;
    struct chunk *chunks; /* the newest first */
    struct segment segments[];
};

enum status piece_list_create(struct piece_list **out, size_t segments_max)
{
    struct piece_list *list =
            memory_allocate_zeroed(sizeof(*list) + segments_max * sizeof(list->segments[0]));
    if (list == NULL) {
        return STATUS_NO_MEMORY;
    }
    list->references = 1;
    list->segments_max = segments_max;
    *out = list;
    return STATUS_OK;
}

void piece_list_unref(struct piece_list *list)
{
    if (list == NULL || --list->references > 0) {
        return;
    }
    for (size_t i = 0; i < list->segment_count; i++) {
        if (list->segments[i].envelope != NULL) {
            envelope_unref(list->segments[i].envelope);
        }
    }
    while (list->chunks != NULL) {
        struct chunk *next = list->chunks->next;
        memory_free(list->chunks);
        list->chunks = next;
    }
    memory_free(list);
}

uint8_t *piece_list_room(struct piece_list *list, size_t length)
{
    struct chunk *chunk = list->chunks;
    if (chunk != NULL && chunk->capacity - chunk->used >= length) {
        return chunk->bytes + chunk->used;
    }
    size_t capacity = length > CHUNK_BYTES ? length : CHUNK_BYTES;
    chunk = memory_allocate(sizeof(*chunk) + capacity);
    if (chunk == NULL) {
        return NULL;
    }
    chunk->next = list->chunks;
    chunk->capacity = capacity;
    chunk->used = 0;
    list->chunks = chunk;
    return chunk->bytes;
}

static enum status add_segment(
        struct piece_list *list, struct span bytes, struct envelope *envelope)
{
    if (list->segment_count == list->segments_max) {
        return STATUS_LIMIT_REACHED;
    }
    if (envelope != NULL) {
        envelope_ref(envelope);
    }
    list->segments[list->segment_count++] = (struct segment){.bytes = bytes, .envelope = envelope};
    list->length += bytes.length;
    return STATUS_OK;
}

enum status piece_list_add_written(struct piece_list *list, const uint8_t *end)
{
    struct chunk *chunk = list->chunks;
    const uint8_t *start = chunk->bytes + chunk->used;
    size_t length = (size_t)(end - start);
    struct segment *last =
            list->segment_count > 0 ? &list->segments[list->segment_count - 1] : NULL;
    chunk->used += length;
    if (last != NULL && last->envelope == NULL && last->bytes.bytes + last->bytes.length == start) {
        last->bytes.length += length;
        list->length += length;
        return STATUS_OK;
    }
    return add_segment(list, span_of(start, length), NULL);
}

enum status piece_list_add_message(struct piece_list *list, const struct archive_row *row)
{
    if (row->envelope != NULL) {
        return add_segment(list, row->message, row->envelope);
    }
    uint8_t *to = piece_list_room(list, row->message.length);
    if (to == NULL) {
        return STATUS_NO_MEMORY;
    }
    if (row->message.length > 0) {
        memory_copy_message(to, row->message.bytes, row->message.length);
    }
    return piece_list_add_written(list, to + row->message.length);
}

size_t piece_list_length(const struct piece_list *list)
{
    return list->length;
}

static void release_piece(void *owner)
{
    piece_list_unref(owner);
}

size_t piece_list_next(struct piece_list *list, struct muxer_piece pieces[], size_t max)
{
    size_t count = 0;
    while (count < max && list->handed_out < list->segment_count) {
        list->references++;
        pieces[count++] = (struct muxer_piece){.bytes = list->segments[list->handed_out++].bytes,
                .release = release_piece,
                .owner = list};
    }
    return count;
}
