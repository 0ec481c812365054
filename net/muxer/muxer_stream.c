/* SPDX-License-Identifier: MIT */

/* The life of a stream: opened, accepted, fed, half-closed, ended. */

#include <assert.h>

#include "base/memory.h"
#include "base/metrics.h"
#include "net/muxer/muxer_private.h"

static struct muxer_stream *create_stream(struct muxer *muxer, uint64_t key)
{
    struct muxer_stream *stream = memory_allocate_zeroed(sizeof(*stream));
    if (stream == NULL) {
        return NULL;
    }
    stream->muxer = muxer;
    stream->key = key;
    stream->send_window = muxer->protocol->has_windows ? YAMUX_INITIAL_WINDOW : UINT64_MAX;
    stream->window_size = YAMUX_INITIAL_WINDOW;
    stream->receive_window = YAMUX_INITIAL_WINDOW;
    if (stream_table_add(&muxer->streams, stream) != STATUS_OK) {
        memory_free(stream);
        return NULL;
    }
    metrics_add(METRIC_MUXER_STREAMS, 1);
    return stream;
}

/* The key of the next outbound stream, or false when the ids are used up. */
static bool next_key(struct muxer *muxer, uint64_t *key)
{
    if (muxer->protocol->has_windows) {
        *key = muxer->next_id;
        muxer->next_id += 2;
        return *key <= UINT32_MAX;
    }
    *key = muxer->next_id * 2 + 1;
    muxer->next_id++;
    return true;
}

enum status muxer_open_stream(struct muxer *muxer, struct muxer_stream **BORROWED out,
        const struct muxer_stream_events *events, void *context)
{
    uint64_t key;
    if (muxer->is_dying || muxer->is_going_away || muxer->peer_is_away) {
        return STATUS_CLOSED;
    }
    if (muxer->streams.count >= muxer->options.streams_max ||
            muxer->unacknowledged_count >= muxer->options.unacknowledged_max ||
            !next_key(muxer, &key)) {
        return STATUS_LIMIT_REACHED;
    }
    struct muxer_stream *stream = create_stream(muxer, key);
    if (stream == NULL) {
        return STATUS_NO_MEMORY;
    }
    muxer_enter(muxer);
    stream->is_outbound = true;
    stream->events = events;
    stream->context = context;
    stream->open_unsent = true;
    if (muxer->protocol->has_windows) {
        stream->is_unacknowledged = true;
        muxer->unacknowledged_count++;
    }
    muxer_stream_want_control(stream);
    *out = stream;
    muxer_leave(muxer);
    return STATUS_OK;
}

struct muxer_stream *muxer_stream_take_inbound(struct muxer *muxer, uint64_t key)
{
    if (muxer->is_going_away || muxer->streams.count >= muxer->options.streams_max ||
            muxer->pending_count >= muxer->options.inbound_pending_max) {
        metrics_add(METRIC_MUXER_STREAMS_REFUSED, 1);
        muxer_answer(muxer, ANSWER_RESET, key);
        return NULL;
    }
    struct muxer_stream *stream = create_stream(muxer, key);
    if (stream == NULL) {
        muxer_fail(muxer, STATUS_NO_MEMORY, MUXER_GO_AWAY_INTERNAL_ERROR);
        return NULL;
    }
    muxer->pending_count++;
    if (muxer->options.events.stream_opened != NULL) {
        muxer->options.events.stream_opened(muxer->options.context, stream);
    }
    return stream->is_dead ? NULL : stream;
}

static bool is_pending(const struct muxer_stream *stream)
{
    return stream->events == NULL;
}

void muxer_stream_set_events(
        struct muxer_stream *stream, const struct muxer_stream_events *events, void *context)
{
    struct muxer *muxer = stream->muxer;
    assert(events != NULL && !stream->is_dead);
    muxer_enter(muxer);
    if (is_pending(stream)) {
        muxer->pending_count--;
        if (muxer->protocol->has_windows) {
            stream->accept_unsent = true;
            muxer_stream_want_control(stream);
        }
    }
    stream->events = events;
    stream->context = context;
    muxer_leave(muxer);
}

void muxer_stream_take_acknowledgement(struct muxer_stream *stream)
{
    if (stream->is_unacknowledged) {
        stream->is_unacknowledged = false;
        stream->muxer->unacknowledged_count--;
    }
}

static void tell_remote_close(struct muxer_stream *stream)
{
    if (!stream->remote_is_closed || stream->remote_close_told || stream->held.size > 0 ||
            is_pending(stream) || stream->is_delivering) {
        return;
    }
    stream->remote_close_told = true;
    stream->events->remote_closed(stream->context);
    if (!stream->is_dead) {
        muxer_stream_end_if_finished(stream);
    }
}

void muxer_stream_take_close(struct muxer_stream *stream)
{
    stream->remote_is_closed = true;
    tell_remote_close(stream);
}

void muxer_stream_take_reset(struct muxer_stream *stream)
{
    metrics_add(METRIC_MUXER_RESETS_RECEIVED, 1);
    muxer_stream_end(stream, STATUS_RESET);
}

/* Moves held bytes to the owner until it has no room; false when there was none. */
static bool deliver_held(struct muxer_stream *stream)
{
    uint8_t *to = NULL;
    size_t n = stream->events->reserve(stream->context, stream->held.size, &to);
    if (n == 0 || stream->is_dead) {
        return false;
    }
    struct span front = held_bytes_front(&stream->held);
    n = n < front.length ? n : front.length;
    memory_copy_message(to, front.bytes, n);
    held_bytes_drop(&stream->held, n);
    stream->muxer->held_bytes -= n;
    muxer_stream_add_held(stream, 0);
    stream->unconsumed += n;
    stream->events->commit(stream->context, n);
    return !stream->is_dead;
}

void muxer_stream_resume(struct muxer_stream *stream)
{
    if (stream->is_dead || is_pending(stream) || stream->is_delivering) {
        return;
    }
    struct muxer *muxer = stream->muxer;
    muxer_enter(muxer);
    stream->is_delivering = true;
    while (stream->held.size > 0 && deliver_held(stream)) {
    }
    stream->is_delivering = false;
    if (!stream->is_dead) {
        tell_remote_close(stream);
    }
    muxer_leave(muxer);
}

static void leave_totals(struct muxer_stream *stream)
{
    struct muxer *muxer = stream->muxer;
    muxer->queued_bytes -= stream->out.unsent_bytes;
    muxer->held_bytes -= stream->held.size;
    held_bytes_fini(&stream->held);
    muxer_stream_add_held(stream, 0);
    muxer->window_growth -= stream->window_size - YAMUX_INITIAL_WINDOW;
    if (is_pending(stream)) {
        muxer->pending_count--;
    }
    muxer_stream_take_acknowledgement(stream);
}

/* Out of everything but the memory, which goes when nobody can look at it any more. */
static void unlink_stream(struct muxer_stream *stream)
{
    struct muxer *muxer = stream->muxer;
    leave_totals(stream);
    stream->is_dead = true;
    stream_table_remove(&muxer->streams, stream);
    if (stream->is_ready) {
        TAILQ_REMOVE(&muxer->ready, stream, ready_link);
    }
    if (stream->is_in_control) {
        TAILQ_REMOVE(&muxer->control, stream, control_link);
    }
    if (muxer->body_stream == stream) {
        muxer->body_stream = NULL;
    }
    SLIST_INSERT_HEAD(&muxer->dead, stream, dead_link);
}

void muxer_stream_end(struct muxer_stream *stream, enum status reason)
{
    const struct muxer_options *options = &stream->muxer->options;
    unlink_stream(stream);
    if (!is_pending(stream)) {
        stream->events->reset(stream->context, reason);
    } else if (options->events.pending_lost != NULL) {
        options->events.pending_lost(options->context, stream);
    }
}

void muxer_stream_end_if_finished(struct muxer_stream *stream)
{
    if (!stream->close_sent || !stream->remote_close_told) {
        return;
    }
    unlink_stream(stream);
    stream->events->closed(stream->context);
}

/* The peer is told unless it never heard of the stream. */
static void send_reset(struct muxer_stream *stream)
{
    if (!stream->open_unsent) {
        muxer_answer(stream->muxer, ANSWER_RESET, stream->key);
        metrics_add(METRIC_MUXER_RESETS_SENT, 1);
    }
}

void muxer_stream_abort(struct muxer_stream *stream, enum status reason)
{
    send_reset(stream);
    muxer_stream_end(stream, reason);
}

void muxer_stream_reset(struct muxer_stream *stream)
{
    if (stream->is_dead) {
        return;
    }
    struct muxer *muxer = stream->muxer;
    muxer_enter(muxer);
    send_reset(stream);
    unlink_stream(stream);
    muxer_leave(muxer);
}

void muxer_stream_bury(struct muxer_stream *stream)
{
    piece_queue_fini(&stream->out);
    memory_free(stream);
}

bool muxer_stream_is_outbound(const struct muxer_stream *stream)
{
    return stream->is_outbound;
}

uint64_t muxer_stream_id(const struct muxer_stream *stream)
{
    return stream->muxer->protocol->has_windows ? stream->key : stream->key / 2;
}

void *muxer_stream_context(const struct muxer_stream *stream)
{
    return stream->context;
}

struct muxer *muxer_stream_muxer(const struct muxer_stream *stream)
{
    return stream->muxer;
}
