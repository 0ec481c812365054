/* SPDX-License-Identifier: MIT */
#include "tests/unit/net_muxer/muxer_end.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum {
    SECURE_FRAME_MAX = 65519,
    PIECES_MAX = 64
};

/* Every piece is a block of its own: a second release or a missing one is seen by the sanitizer. */
struct owned_bytes {
    struct end *end;
    uint8_t bytes[];
};

static void release_bytes(void *owner)
{
    struct owned_bytes *owned = owner;
    struct end *end = owned->end;
    end->pieces_released++;
    free(owned);
    if (end->on_release != NULL) {
        end->on_release(end);
    }
}

static void grow(struct end_stream *stream, size_t needed)
{
    if (needed <= stream->capacity) {
        return;
    }
    stream->capacity = needed * 2;
    stream->bytes = realloc(stream->bytes, stream->capacity);
    assert(stream->bytes != NULL);
}

static size_t reserve(void *context, size_t wanted, uint8_t **to)
{
    struct end_stream *stream = context;
    assert(wanted > 0);
    if (stream->on_reserve != NULL) {
        stream->on_reserve(stream);
    }
    if (stream->is_stopped) {
        return 0;
    }
    size_t n = stream->reserve_max > 0 ? stream->reserve_max : wanted;
    if (stream->has_allowance) {
        n = n < stream->allowance ? n : stream->allowance;
    }
    grow(stream, stream->length + n);
    *to = stream->bytes + stream->length;
    return n;
}

static void commit(void *context, size_t n)
{
    struct end_stream *stream = context;
    size_t start = stream->length;
    stream->length += n;
    if (stream->has_allowance) {
        stream->allowance -= n;
    }
    if (stream->echoes) {
        enum status status = end_write(stream, stream->bytes + start, n);
        assert(status == STATUS_OK);
    }
    if (!stream->keeps) {
        muxer_stream_consumed(stream->stream, n);
    }
    if (stream->on_commit != NULL) {
        stream->on_commit(stream);
    }
}

static void remote_closed(void *context)
{
    struct end_stream *stream = context;
    stream->remote_closed++;
    if (stream->echoes) {
        muxer_stream_close_write(stream->stream);
    }
    if (stream->on_remote_closed != NULL) {
        stream->on_remote_closed(stream);
    }
}

static void writable(void *context)
{
    struct end_stream *stream = context;
    stream->writable++;
}

static void gone(struct end_stream *stream)
{
    stream->stream = NULL;
    if (stream->on_gone != NULL) {
        stream->on_gone(stream);
    }
}

static void closed(void *context)
{
    struct end_stream *stream = context;
    stream->closed++;
    gone(stream);
}

static void reset(void *context, enum status reason)
{
    struct end_stream *stream = context;
    stream->reset++;
    stream->reason = reason;
    gone(stream);
}

static const struct muxer_stream_events stream_events = {
        .reserve = reserve,
        .commit = commit,
        .remote_closed = remote_closed,
        .writable = writable,
        .closed = closed,
        .reset = reset,
};

static struct end_stream *add_stream(struct end *end)
{
    struct end_stream *stream = calloc(1, sizeof(*stream));
    assert(stream != NULL);
    stream->end = end;
    stream->next = end->streams;
    end->streams = stream;
    end->stream_count++;
    return stream;
}

static void count_open(struct end *end)
{
    size_t count = muxer_stream_count(end->muxer);
    end->open_max = count > end->open_max ? count : end->open_max;
}

static void opened(void *context, struct muxer_stream *muxer_stream)
{
    struct end *end = context;
    struct end_stream *stream = add_stream(end);
    stream->stream = muxer_stream;
    stream->id = muxer_stream_id(muxer_stream);
    stream->echoes = end->inbound_echoes;
    stream->is_stopped = end->inbound_stops;
    stream->reserve_max = end->inbound_reserve_max;
    count_open(end);
    if (end->accepts) {
        end_accept(stream);
    }
    if (end->on_opened != NULL) {
        end->on_opened(stream);
    }
}

static void pending_lost(void *context, struct muxer_stream *muxer_stream)
{
    struct end *end = context;
    struct end_stream *stream = end->streams;
    while (stream->stream != muxer_stream) {
        stream = stream->next;
    }
    stream->reset++;
    stream->reason = STATUS_RESET;
    gone(stream);
}

static void output_ready(void *context)
{
    struct end *end = context;
    end->output_ready++;
    if (end->on_output_ready != NULL) {
        end->on_output_ready(end);
    }
}

static void pause_reading(void *context, bool is_paused)
{
    struct end *end = context;
    assert(end->is_paused != is_paused);
    end->is_paused = is_paused;
    end->pauses += is_paused;
}

static void went_away(void *context, uint32_t reason)
{
    struct end *end = context;
    end->went_away++;
    end->away_reason = reason;
}

void end_init(struct end *end, enum muxer_kind kind, bool is_initiator,
        const struct muxer_options *limits)
{
    struct muxer_options options = limits == NULL ? (struct muxer_options){0} : *limits;
    options.events = (struct muxer_events){
            .stream_opened = opened,
            .pending_lost = pending_lost,
            .output_ready = output_ready,
            .pause = pause_reading,
            .peer_went_away = went_away,
    };
    options.context = end;
    *end = (struct end){.accepts = true};
    enum status status = muxer_create(&end->muxer, kind, is_initiator, &options);
    assert(status == STATUS_OK);
}

void end_fini(struct end *end)
{
    muxer_destroy(&end->muxer);
    assert(end->pieces_released == end->pieces_written);
    while (end->streams != NULL) {
        struct end_stream *stream = end->streams;
        end->streams = stream->next;
        free(stream->bytes);
        free(stream);
    }
}

enum status end_try_open(struct end *end, struct end_stream **out)
{
    struct end_stream *stream = add_stream(end);
    enum status status = muxer_open_stream(end->muxer, &stream->stream, &stream_events, stream);
    if (status == STATUS_OK) {
        stream->id = muxer_stream_id(stream->stream);
        stream->is_outbound = true;
        stream->is_accepted = true;
    }
    count_open(end);
    *out = stream;
    return status;
}

struct end_stream *end_open(struct end *end)
{
    struct end_stream *stream;
    enum status status = end_try_open(end, &stream);
    assert(status == STATUS_OK);
    return stream;
}

void end_accept(struct end_stream *stream)
{
    stream->is_accepted = true;
    muxer_stream_set_events(stream->stream, &stream_events, stream);
}

static struct owned_bytes *own(struct end *end, size_t length)
{
    struct owned_bytes *owned = malloc(sizeof(*owned) + length);
    assert(owned != NULL);
    owned->end = end;
    return owned;
}

static enum status write_owned(struct end_stream *stream, struct owned_bytes *owned, size_t length)
{
    const struct muxer_piece piece = {
            .bytes = span_of(owned->bytes, length),
            .release = release_bytes,
            .owner = owned,
    };
    struct end *end = stream->end;
    end->pieces_written++;
    enum status status = muxer_stream_write(stream->stream, &piece, 1);
    if (status != STATUS_OK) {
        end->pieces_written--;
        free(owned);
    }
    return status;
}

enum status end_write(struct end_stream *stream, const void *bytes, size_t length)
{
    struct owned_bytes *owned = own(stream->end, length);
    if (length > 0) {
        memcpy(owned->bytes, bytes, length);
    }
    return write_owned(stream, owned, length);
}

uint8_t end_pattern(uint64_t position)
{
    uint64_t x = (position + 1) * UINT64_C(0x9e3779b97f4a7c15);
    return (uint8_t)(x >> 56);
}

enum status end_write_pattern(struct end_stream *stream, uint64_t position, size_t n)
{
    struct owned_bytes *owned = own(stream->end, n);
    for (size_t i = 0; i < n; i++) {
        owned->bytes[i] = end_pattern(position + i);
    }
    return write_owned(stream, owned, n);
}

bool end_has_pattern(const struct end_stream *stream, uint64_t position)
{
    for (size_t i = 0; i < stream->length; i++) {
        if (stream->bytes[i] != end_pattern(position + i)) {
            return false;
        }
    }
    return true;
}

size_t end_output(struct end *end, uint8_t *out, size_t max_bytes)
{
    struct span pieces[PIECES_MAX];
    size_t count = muxer_output(end->muxer, pieces, PIECES_MAX, max_bytes);
    size_t length = 0;
    for (size_t i = 0; i < count; i++) {
        assert(pieces[i].length > 0);
        memcpy(out + length, pieces[i].bytes, pieces[i].length);
        length += pieces[i].length;
    }
    assert(length <= max_bytes);
    muxer_output_done(end->muxer);
    return length;
}

static void read_bytes(void *context, uint8_t *to, size_t n)
{
    const uint8_t **from = context;
    memcpy(to, *from, n);
    *from += n;
}

enum status end_receive(struct end *end, const void *bytes, size_t length, size_t cut)
{
    const uint8_t *from = bytes;
    enum status status = STATUS_OK;
    while (length > 0 && status == STATUS_OK) {
        size_t n = cut == 0 || cut > length ? length : cut;
        struct muxer_source source = {.remaining = n, .read = read_bytes, .context = &from};
        status = muxer_receive(end->muxer, &source);
        assert(status != STATUS_OK || source.remaining == 0);
        length -= n;
    }
    return status;
}

bool end_exchange(struct end *a, struct end *b)
{
    static uint8_t frame[SECURE_FRAME_MAX];
    bool moved = true;
    while (moved) {
        size_t n = end_output(a, frame, sizeof(frame));
        if (n > 0 && end_receive(b, frame, n, 0) != STATUS_OK) {
            return false;
        }
        size_t m = end_output(b, frame, sizeof(frame));
        if (m > 0 && end_receive(a, frame, m, 0) != STATUS_OK) {
            return false;
        }
        moved = n > 0 || m > 0;
    }
    return true;
}
