/* SPDX-License-Identifier: MIT */
#include "net/protocols/prefixed_reader.h"

#include <assert.h>

#include "base/memory.h"

enum {
    FIRST_CAPACITY = 4096
};

void prefixed_reader_init(struct prefixed_reader *reader, size_t max)
{
    *reader = (struct prefixed_reader){.max = max};
}

void prefixed_reader_fini(struct prefixed_reader *reader)
{
    if (!reader->is_placed) {
        memory_free(reader->message);
    }
    reader->message = NULL;
}

bool prefixed_reader_is_unplaced(const struct prefixed_reader *reader)
{
    return reader->has_length && reader->length > 0 && reader->message == NULL;
}

void prefixed_reader_place(struct prefixed_reader *reader, uint8_t *message)
{
    assert(prefixed_reader_is_unplaced(reader));
    reader->message = message;
    reader->capacity = reader->length;
    reader->is_placed = true;
}

static size_t min_size(size_t a, size_t b)
{
    return a < b ? a : b;
}

void prefixed_reader_cut(struct prefixed_reader *reader, size_t kept)
{
    assert(prefixed_reader_is_unplaced(reader));
    reader->length = min_size(reader->length, kept);
}

/* A peer that names a length has to send bytes before it costs memory. */
static bool make_room(struct prefixed_reader *reader)
{
    if (reader->received < reader->capacity) {
        return true;
    }
    size_t capacity = reader->capacity == 0 ? FIRST_CAPACITY : reader->capacity * 2;
    capacity = min_size(capacity, reader->length);
    uint8_t *message = memory_resize(reader->message, capacity);
    if (message == NULL) {
        return false;
    }
    reader->message = message;
    reader->capacity = capacity;
    return true;
}

size_t prefixed_reader_reserve(struct prefixed_reader *reader, size_t wanted, uint8_t **to)
{
    if (!reader->has_length) {
        *to = reader->header + reader->header_length;
        return 1;
    }
    if (prefixed_reader_is_done(reader) || !make_room(reader)) {
        return 0;
    }
    *to = reader->message + reader->received;
    return min_size(wanted, reader->capacity - reader->received);
}

static enum status take_header(struct prefixed_reader *reader)
{
    struct span rest = span_of(reader->header, reader->header_length);
    enum status status = varint_read_length(&reader->length, &rest, reader->max);
    if (status == STATUS_TRUNCATED && reader->header_length < VARINT_MAX_BYTES) {
        return STATUS_OK;
    }
    reader->has_length = status == STATUS_OK;
    return status;
}

enum status prefixed_reader_commit(struct prefixed_reader *reader, size_t n)
{
    if (reader->has_length) {
        assert(n <= reader->capacity - reader->received);
        reader->received += n;
        return STATUS_OK;
    }
    assert(n <= 1);
    reader->header_length += n;
    return take_header(reader);
}

bool prefixed_reader_is_done(const struct prefixed_reader *reader)
{
    return reader->has_length && reader->received == reader->length;
}

struct span prefixed_reader_message(const struct prefixed_reader *reader)
{
    return prefixed_reader_is_done(reader) ? span_of(reader->message, reader->length)
                                           : span_of(NULL, 0);
}
