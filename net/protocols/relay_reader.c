/* SPDX-License-Identifier: MIT */
#include "net/protocols/relay_reader.h"

#include <assert.h>

enum {
    SKIPPED_BYTES = 4096
};

/* Where the bytes go that nobody reads. */
static _Thread_local uint8_t skipped[SKIPPED_BYTES];

void relay_reader_init(struct relay_reader *reader, struct frame_budget *budget,
        struct frame_share *share, size_t max)
{
    *reader = (struct relay_reader){.budget = budget, .share = share, .max = max};
}

void relay_reader_reset(struct relay_reader *reader)
{
    if (reader->frame != NULL) {
        frame_unref(reader->frame);
    }
    relay_reader_init(reader, reader->budget, reader->share, reader->max);
}

static size_t min_size(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* NULL without credit, of all peers or of this one. */
static struct frame *create_frame(const struct relay_reader *reader)
{
    size_t charge = frame_charge(reader->length);
    if (reader->share != NULL && !frame_share_try_charge(reader->share, charge)) {
        return NULL;
    }
    struct frame *frame = frame_try_create(reader->budget, FRAME_BUDGET_PARTIAL, reader->length);
    if (reader->share != NULL && frame != NULL) {
        frame_set_share(frame, reader->share);
    } else if (reader->share != NULL) {
        frame_share_release(reader->share, charge);
    }
    return frame;
}

size_t relay_reader_reserve(struct relay_reader *reader, size_t wanted, uint8_t **to)
{
    if (!reader->has_length) {
        *to = reader->prefix + reader->prefix_length;
        return 1;
    }
    size_t missing = reader->length - reader->received;
    if (reader->is_skipping) {
        *to = skipped;
        return min_size(min_size(wanted, missing), SKIPPED_BYTES);
    }
    if (reader->frame == NULL) {
        reader->frame = create_frame(reader);
        if (reader->frame == NULL) {
            return 0;
        }
    }
    *to = frame_bytes(reader->frame) + reader->received;
    return min_size(wanted, missing);
}

static enum status take_prefix(struct relay_reader *reader)
{
    struct span rest = span_of(reader->prefix, reader->prefix_length);
    enum status status = varint_read_length(&reader->length, &rest, reader->max);
    if (status == STATUS_TRUNCATED && reader->prefix_length < VARINT_MAX_BYTES) {
        return STATUS_OK;
    }
    reader->has_length = status == STATUS_OK;
    return status;
}

/* Between this frame and the next one. An RPC of no bytes says nothing. */
static struct frame *finish(struct relay_reader *reader)
{
    struct frame *frame = reader->frame;
    reader->frame = NULL;
    relay_reader_reset(reader);
    return frame;
}

enum status relay_reader_commit(struct relay_reader *reader, size_t n, struct frame **out)
{
    enum status status = STATUS_OK;
    *out = NULL;
    if (reader->has_length) {
        assert(n <= reader->length - reader->received);
        reader->received += n;
    } else {
        assert(n <= 1);
        reader->prefix_length += n;
        status = take_prefix(reader);
    }
    if (reader->has_length && reader->received == reader->length) {
        *out = finish(reader);
    }
    return status;
}

void relay_reader_skip(struct relay_reader *reader)
{
    assert(relay_reader_is_starved(reader));
    reader->is_skipping = true;
}

bool relay_reader_is_starved(const struct relay_reader *reader)
{
    return reader->has_length && reader->frame == NULL && !reader->is_skipping;
}

bool relay_reader_is_inside(const struct relay_reader *reader)
{
    return reader->prefix_length > 0 && !relay_reader_is_starved(reader);
}
