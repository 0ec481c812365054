/* SPDX-License-Identifier: MIT */
#include "net/protocols/store_answer.h"

#include <string.h>

#include "base/memory.h"
#include "net/protocols/service_code.h"
#include "net/protocols/store_message.h"

enum {
    CHUNK_BYTES = 32 * 1024,
    CURSOR_BYTES = 64,
    SEGMENTS_MAX = 4 * ARCHIVE_PAGE_MAX + 4 /* more than a page ever has */
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

struct store_answer {
    size_t references; /* one thread at a time */
    size_t length;
    size_t row_count;
    size_t segment_count;
    size_t handed_out;
    struct chunk *chunks; /* the newest first */
    struct segment segments[];
};

static size_t max_size(size_t a, size_t b)
{
    return a > b ? a : b;
}

/* Room for length bytes in one piece. */
static uint8_t *make_room(struct store_answer *answer, size_t length)
{
    struct chunk *chunk = answer->chunks;
    if (chunk != NULL && chunk->capacity - chunk->used >= length) {
        return chunk->bytes + chunk->used;
    }
    size_t capacity = max_size(length, CHUNK_BYTES);
    chunk = memory_allocate(sizeof(*chunk) + capacity);
    if (chunk == NULL) {
        return NULL;
    }
    chunk->next = answer->chunks;
    chunk->capacity = capacity;
    chunk->used = 0;
    answer->chunks = chunk;
    return chunk->bytes;
}

static enum status add_segment(
        struct store_answer *answer, struct span bytes, struct envelope *envelope)
{
    if (answer->segment_count == SEGMENTS_MAX) {
        return STATUS_LIMIT_REACHED;
    }
    if (envelope != NULL) {
        envelope_ref(envelope);
    }
    answer->segments[answer->segment_count++] =
            (struct segment){.bytes = bytes, .envelope = envelope};
    answer->length += bytes.length;
    return STATUS_OK;
}

/* What was written in the room made last, up to end. */
static enum status add_written(struct store_answer *answer, const uint8_t *end)
{
    struct chunk *chunk = answer->chunks;
    const uint8_t *start = chunk->bytes + chunk->used;
    size_t length = (size_t)(end - start);
    struct segment *last =
            answer->segment_count > 0 ? &answer->segments[answer->segment_count - 1] : NULL;
    chunk->used += length;
    if (last != NULL && last->envelope == NULL && last->bytes.bytes + last->bytes.length == start) {
        last->bytes.length += length;
        answer->length += length;
        return STATUS_OK;
    }
    return add_segment(answer, span_of(start, length), NULL);
}

enum status store_answer_create(struct store_answer **out, struct span request_id)
{
    struct store_answer *answer =
            memory_allocate_zeroed(sizeof(*answer) + SEGMENTS_MAX * sizeof(answer->segments[0]));
    if (answer == NULL) {
        return STATUS_NO_MEMORY;
    }
    answer->references = 1;
    uint8_t *to = make_room(answer, STORE_ANSWER_HEAD_MAX);
    enum status status = STATUS_NO_MEMORY;
    if (to != NULL) {
        uint8_t *end = store_write_head(to, request_id, SERVICE_OK, span_of_text("OK"));
        status = add_written(answer, end);
    }
    if (status != STATUS_OK) {
        store_answer_unref(answer);
        return status;
    }
    *out = answer;
    return STATUS_OK;
}

void store_answer_unref(struct store_answer *answer)
{
    if (answer == NULL || --answer->references > 0) {
        return;
    }
    for (size_t i = 0; i < answer->segment_count; i++) {
        if (answer->segments[i].envelope != NULL) {
            envelope_unref(answer->segments[i].envelope);
        }
    }
    while (answer->chunks != NULL) {
        struct chunk *next = answer->chunks->next;
        memory_free(answer->chunks);
        answer->chunks = next;
    }
    memory_free(answer);
}

static enum status add_message(struct store_answer *answer, const struct archive_row *row)
{
    if (row->envelope != NULL) {
        return add_segment(answer, row->message, row->envelope);
    }
    uint8_t *to = make_room(answer, row->message.length);
    if (to == NULL) {
        return STATUS_NO_MEMORY;
    }
    if (row->message.length > 0) {
        memory_copy_message(to, row->message.bytes, row->message.length);
    }
    return add_written(answer, to + row->message.length);
}

enum status store_answer_add(
        struct store_answer *answer, const struct archive_row *row, bool has_data)
{
    uint8_t *to = make_room(answer, STORE_ENTRY_HEAD_MAX);
    if (to == NULL) {
        return STATUS_NO_MEMORY;
    }
    enum status status = add_written(answer, store_write_entry_head(to, row, has_data));
    if (status == STATUS_OK && has_data) {
        status = add_message(answer, row);
    }
    if (status == STATUS_OK && has_data) {
        to = make_room(answer, store_entry_tail_size(row));
        status = to == NULL ? STATUS_NO_MEMORY
                            : add_written(answer, store_write_entry_tail(to, row));
    }
    answer->row_count += status == STATUS_OK;
    return status;
}

enum status store_answer_finish(struct store_answer *answer, const struct archive_page *page)
{
    if (!page->has_cursor) {
        return STATUS_OK;
    }
    uint8_t *to = make_room(answer, CURSOR_BYTES);
    return to == NULL ? STATUS_NO_MEMORY
                      : add_written(answer, store_write_cursor(to, page->cursor));
}

size_t store_answer_length(const struct store_answer *answer)
{
    return answer->length;
}

size_t store_answer_rows(const struct store_answer *answer)
{
    return answer->row_count;
}

size_t store_answer_length_with(
        const struct store_answer *answer, const struct archive_row *row, bool has_data)
{
    size_t added = STORE_ENTRY_HEAD_MAX + CURSOR_BYTES;
    if (has_data) {
        added += row->message.length + store_entry_tail_size(row);
    }
    return answer->length + added;
}

static void release_piece(void *owner)
{
    store_answer_unref(owner);
}

size_t store_answer_next_pieces(
        struct store_answer *answer, struct muxer_piece pieces[], size_t max)
{
    size_t count = 0;
    while (count < max && answer->handed_out < answer->segment_count) {
        answer->references++;
        pieces[count++] =
                (struct muxer_piece){.bytes = answer->segments[answer->handed_out++].bytes,
                        .release = release_piece,
                        .owner = answer};
    }
    return count;
}
