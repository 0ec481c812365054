/* SPDX-License-Identifier: MIT */

/* What a stream may send, may receive, holds and is owed. */

#include <assert.h>

#include "base/metrics.h"
#include "net/muxer/muxer_private.h"

/* A round trip measured longer ago than this says little about the link now. */
#define RTT_FRESH_NS UINT64_C(10000000000)

/* More than any honest peer grants; keeps the sum from wrapping. */
#define SEND_WINDOW_MAX (UINT64_C(1) << 40)

size_t muxer_stream_sendable(const struct muxer_stream *stream)
{
    size_t queued = stream->out.unsent_bytes;
    return stream->send_window < queued ? (size_t)stream->send_window : queued;
}

void muxer_stream_update_ready(struct muxer_stream *stream)
{
    bool owes_close = stream->is_closing && !stream->close_sent && stream->out.unsent_bytes == 0;
    bool is_ready = !stream->is_dead && (owes_close || muxer_stream_sendable(stream) > 0);
    if (is_ready == stream->is_ready) {
        return;
    }
    stream->is_ready = is_ready;
    if (is_ready) {
        TAILQ_INSERT_TAIL(&stream->muxer->ready, stream, ready_link);
    } else {
        TAILQ_REMOVE(&stream->muxer->ready, stream, ready_link);
    }
}

void muxer_stream_want_control(struct muxer_stream *stream)
{
    if (!stream->is_in_control) {
        stream->is_in_control = true;
        TAILQ_INSERT_TAIL(&stream->muxer->control, stream, control_link);
    }
}

static size_t total_length(const struct muxer_piece pieces[], size_t count)
{
    size_t total = 0;
    for (size_t i = 0; i < count; i++) {
        total += pieces[i].bytes.length;
    }
    return total;
}

/* Bytes of length 0 are not queued: with nothing to send, nothing would release them. */
static void queue_pieces(
        struct muxer_stream *stream, const struct muxer_piece pieces[], size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (pieces[i].bytes.length > 0) {
            piece_queue_push(&stream->out, &pieces[i]);
        }
    }
}

static void release_empty(const struct muxer_piece pieces[], size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (pieces[i].bytes.length == 0 && pieces[i].release != NULL) {
            pieces[i].release(pieces[i].owner);
        }
    }
}

enum status muxer_stream_write(
        struct muxer_stream *stream, const struct muxer_piece pieces[], size_t count)
{
    struct muxer *muxer = stream->muxer;
    if (stream->is_dead || stream->is_closing || muxer->failure != STATUS_OK) {
        return STATUS_CLOSED;
    }
    size_t total = total_length(pieces, count);
    if (total > muxer->options.queued_bytes_max - muxer->queued_bytes) {
        return STATUS_LIMIT_REACHED;
    }
    enum status status = piece_queue_prepare(&stream->out, count);
    if (status != STATUS_OK) {
        return status;
    }
    muxer_enter(muxer);
    queue_pieces(stream, pieces, count);
    muxer->queued_bytes += total;
    if (stream->out.unsent_bytes >= muxer->options.low_water_bytes) {
        stream->is_full = true;
    }
    muxer_stream_update_ready(stream);
    release_empty(pieces, count);
    muxer_leave(muxer);
    return STATUS_OK;
}

size_t muxer_stream_queued(const struct muxer_stream *stream)
{
    return stream->out.unsent_bytes;
}

void muxer_stream_close_write(struct muxer_stream *stream)
{
    if (stream->is_dead || stream->is_closing) {
        return;
    }
    muxer_enter(stream->muxer);
    stream->is_closing = true;
    muxer_stream_update_ready(stream);
    muxer_leave(stream->muxer);
}

void muxer_stream_take_window(struct muxer_stream *stream, uint64_t delta)
{
    stream->send_window += delta;
    if (stream->send_window > SEND_WINDOW_MAX) {
        stream->send_window = SEND_WINDOW_MAX;
    }
    muxer_stream_update_ready(stream);
}

/* A window consumed within two round trips is what limits the sender: double it. */
static void grow_window(struct muxer_stream *stream)
{
    struct muxer *muxer = stream->muxer;
    uint64_t elapsed_ns = muxer->now_ns - stream->epoch_start_ns;
    if (muxer->rtt_ns == UINT64_MAX || elapsed_ns > 2 * muxer->rtt_ns) {
        return;
    }
    size_t growth = stream->window_size;
    size_t own_room = muxer->options.window_max - stream->window_size;
    size_t shared_room = muxer->options.window_growth_max - muxer->window_growth;
    growth = growth < own_room ? growth : own_room;
    growth = growth < shared_room ? growth : shared_room;
    if (growth == 0) {
        return;
    }
    metrics_add(METRIC_MUXER_WINDOW_GROWTHS, 1);
    stream->window_size += growth;
    stream->credit += growth;
    muxer->window_growth += growth;
}

static void measure_need(struct muxer_stream *stream, size_t consumed)
{
    struct muxer *muxer = stream->muxer;
    if (stream->epoch_consumed == 0) {
        stream->epoch_start_ns = muxer->now_ns;
    }
    stream->epoch_consumed += consumed;
    bool rtt_is_old =
            muxer->rtt_ns == UINT64_MAX || muxer->now_ns - muxer->rtt_measured_ns > RTT_FRESH_NS;
    if (rtt_is_old && stream->epoch_consumed >= stream->window_size / 2) {
        muxer_want_ping(muxer);
    }
    if (stream->epoch_consumed >= stream->window_size) {
        grow_window(stream);
        stream->epoch_consumed = 0;
    }
}

/*
 * Credit goes out in halves of the window. When the peer has little left it goes out earlier, so
 * that an owner may keep up to 7/8 of the window (one large message) before it consumes anything.
 */
void muxer_stream_offer_credit(struct muxer_stream *stream)
{
    size_t window = stream->window_size;
    if (stream->credit >= window / 2 ||
            (stream->receive_window <= window / 4 && stream->credit >= window / 8)) {
        muxer_stream_want_control(stream);
    }
}

void muxer_stream_consumed(struct muxer_stream *stream, size_t n)
{
    struct muxer *muxer = stream->muxer;
    if (stream->is_dead) {
        return;
    }
    assert(n <= stream->unconsumed);
    stream->unconsumed -= n;
    if (!muxer->protocol->has_windows || stream->remote_is_closed || n == 0) {
        return;
    }
    muxer_enter(muxer);
    stream->credit += n;
    measure_need(stream, n);
    muxer_stream_offer_credit(stream);
    muxer_leave(muxer);
}

/* The pause ends at half of what began it. */
static bool passes_mark(bool was_over, size_t held, size_t mark)
{
    return was_over ? held > mark / 2 : held > mark;
}

void muxer_stream_add_held(struct muxer_stream *stream, size_t n)
{
    struct muxer *muxer = stream->muxer;
    muxer->held_bytes += n;
    muxer->holds_too_much = passes_mark(
            muxer->holds_too_much, muxer->held_bytes, muxer->options.held_bytes_max / 2);
    if (muxer->protocol->has_windows) {
        return;
    }
    bool is_over = passes_mark(
            stream->is_over_mark, stream->held.size, muxer->options.stream_held_max / 4);
    if (is_over && !stream->is_over_mark) {
        muxer->over_mark_count++;
    } else if (!is_over && stream->is_over_mark) {
        muxer->over_mark_count--;
    }
    stream->is_over_mark = is_over;
}
