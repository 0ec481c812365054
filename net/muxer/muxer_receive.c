/* SPDX-License-Identifier: MIT */

/* The way in: headers are collected over any cuts, bodies go straight to their place. */

#include <assert.h>

#include "net/muxer/muxer_private.h"

enum {
    SKIP_BYTES = 4096
};

static size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

static void read_source(struct muxer_source *source, uint8_t *to, size_t n)
{
    source->read(source->context, to, n);
    source->remaining -= n;
}

static void end_body(struct muxer *muxer)
{
    struct muxer_stream *stream = muxer->body_stream;
    muxer->body_stream = NULL;
    if (stream != NULL && muxer->body_closes) {
        muxer_stream_take_close(stream);
    }
}

void muxer_begin_body(struct muxer *muxer, struct muxer_stream *stream, size_t length, bool closes)
{
    muxer->body_stream = stream;
    muxer->body_remaining = length;
    muxer->body_closes = closes;
    if (length == 0) {
        end_body(muxer);
    }
}

static void skip_body(struct muxer *muxer, struct muxer_source *source)
{
    uint8_t skipped[SKIP_BYTES];
    size_t n = smaller(smaller(muxer->body_remaining, source->remaining), sizeof(skipped));
    read_source(source, skipped, n);
    muxer->body_remaining -= n;
}

/* Bytes delivered to the owner; 0 when it has no room or the stream ended in its callback. */
static size_t deliver(struct muxer_stream *stream, struct muxer_source *source, size_t wanted)
{
    uint8_t *to = NULL;
    size_t n = smaller(stream->events->reserve(stream->context, wanted, &to), wanted);
    if (n == 0 || stream->is_dead) {
        return 0;
    }
    read_source(source, to, n);
    stream->muxer->body_remaining -= n;
    stream->unconsumed += n;
    stream->events->commit(stream->context, n);
    return n;
}

static bool has_room_to_hold(const struct muxer_stream *stream, size_t n)
{
    const struct muxer *muxer = stream->muxer;
    /* With windows the header was checked against what the stream may hold. */
    return n <= muxer->options.held_bytes_max - muxer->held_bytes &&
           (muxer->protocol->has_windows ||
                   n <= muxer->options.stream_held_max - stream->held.size);
}

static void hold(struct muxer_stream *stream, struct muxer_source *source, size_t wanted)
{
    if (!has_room_to_hold(stream, wanted)) {
        muxer_stream_abort(stream, STATUS_LIMIT_REACHED);
        return;
    }
    uint8_t *to;
    size_t n = smaller(held_bytes_reserve(&stream->held, wanted, &to), wanted);
    if (n == 0) {
        muxer_stream_abort(stream, STATUS_NO_MEMORY);
        return;
    }
    read_source(source, to, n);
    stream->muxer->body_remaining -= n;
    held_bytes_commit(&stream->held, n);
    muxer_stream_add_held(stream, n);
}

static void take_body(struct muxer *muxer, struct muxer_source *source)
{
    struct muxer_stream *stream = muxer->body_stream;
    if (stream == NULL) {
        skip_body(muxer, source);
        return;
    }
    size_t wanted = smaller(muxer->body_remaining, source->remaining);
    size_t delivered = 0;
    if (stream->held.size == 0 && stream->events != NULL && !stream->is_delivering) {
        stream->is_delivering = true;
        delivered = deliver(stream, source, wanted);
        stream->is_delivering = false;
    }
    if (delivered == 0 && !stream->is_dead) {
        hold(stream, source, wanted);
    }
    if (muxer->body_remaining == 0) {
        end_body(muxer);
    }
}

static void take_header(struct muxer *muxer, struct muxer_source *source)
{
    size_t missing = muxer->protocol->missing_header(muxer->header, muxer->header_length);
    size_t n = smaller(missing, source->remaining);
    read_source(source, muxer->header + muxer->header_length, n);
    muxer->header_length += n;
    if (muxer->protocol->missing_header(muxer->header, muxer->header_length) > 0) {
        return;
    }
    size_t length = muxer->header_length;
    muxer->header_length = 0;
    muxer->protocol->take_header(muxer, muxer->header, length);
}

static enum status receive_all(struct muxer *muxer, struct muxer_source *source)
{
    while (source->remaining > 0 && muxer->failure == STATUS_OK && !muxer->is_dying) {
        if (muxer->body_remaining > 0) {
            take_body(muxer, source);
        } else {
            take_header(muxer, source);
        }
    }
    return muxer->is_dying ? STATUS_CLOSED : muxer->failure;
}

enum status muxer_receive(struct muxer *muxer, struct muxer_source *source)
{
    assert(!muxer->is_receiving);
    if (muxer->failure != STATUS_OK) {
        return muxer->failure;
    }
    muxer_enter(muxer);
    muxer->is_receiving = true;
    muxer->heard_ns = muxer->now_ns;
    enum status status = receive_all(muxer, source);
    muxer->is_receiving = false;
    muxer_leave(muxer);
    return status;
}
