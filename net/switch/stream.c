/* SPDX-License-Identifier: MIT */
#include "net/switch/stream.h"

#include <assert.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/metrics.h"
#include "net/switch/stream_private.h"

static uint64_t now_ms(void)
{
    return clock_monotonic_ns() / NANOSECONDS_PER_MILLISECOND;
}

static void set_deadline(struct stream *stream, uint64_t deadline_ms)
{
    struct connection *connection = stream->connection;
    if (stream->deadline_ms == 0 && deadline_ms != 0) {
        connection->timed_count++;
    } else if (stream->deadline_ms != 0 && deadline_ms == 0) {
        connection->timed_count--;
    }
    stream->deadline_ms = deadline_ms;
}

/* The muxer knows it no more. */
static void leave_muxer(struct stream *stream, enum status reason)
{
    if (stream->muxer_stream != NULL) {
        stream->muxer_stream = NULL;
        stream->reason = reason;
        shard_add_closed(stream->connection->shard, stream);
    }
}

void stream_cut(struct stream *stream, enum status reason)
{
    struct muxer_stream *muxer_stream = stream->muxer_stream;
    if (muxer_stream != NULL) {
        leave_muxer(stream, reason);
        muxer_stream_reset(muxer_stream);
    }
}

size_t stream_reserve_waste(struct stream *stream, size_t wanted, uint8_t **to)
{
    *to = stream->connection->shard->scratch;
    return wanted < SCRATCH_BYTES ? wanted : SCRATCH_BYTES;
}

static size_t on_reserve(void *context, size_t wanted, uint8_t **to)
{
    struct stream *stream = context;
    if (stream->connection->state != CONNECTION_OPEN) {
        return 0;
    }
    if (stream->is_negotiating) {
        return stream_negotiation_reserve(stream, wanted, to);
    }
    if (stream->events->reserve == NULL) {
        return stream_reserve_waste(stream, wanted, to);
    }
    return stream->events->reserve(stream, wanted, to);
}

static void on_commit(void *context, size_t n)
{
    struct stream *stream = context;
    if (stream->is_negotiating) {
        stream_negotiation_commit(stream, n);
    } else if (stream->events->reserve == NULL) {
        muxer_stream_consumed(stream->muxer_stream, n);
    } else {
        stream->events->commit(stream, n);
    }
}

static void on_remote_closed(void *context)
{
    struct stream *stream = context;
    if (stream->is_negotiating) {
        /* The other side gave up before there was an agreement. */
        stream_cut(stream, STATUS_NO_COMMON_PROTOCOL);
    } else if (stream->events->remote_closed != NULL) {
        stream->events->remote_closed(stream);
    }
}

static void on_writable(void *context)
{
    struct stream *stream = context;
    if (!stream->is_negotiating && stream->events->writable != NULL) {
        stream->events->writable(stream);
    }
}

static void on_closed(void *context)
{
    leave_muxer(context, STATUS_OK);
}

static void on_reset(void *context, enum status reason)
{
    leave_muxer(context, reason == STATUS_OK ? STATUS_RESET : reason);
}

static const struct muxer_stream_events muxer_events = {
        .reserve = on_reserve,
        .commit = on_commit,
        .remote_closed = on_remote_closed,
        .writable = on_writable,
        .closed = on_closed,
        .reset = on_reset,
};

/* What an inbound stream has before its protocol is agreed. */
static void ignore_closed(struct stream *stream, enum status reason)
{
    (void)stream;
    (void)reason;
}

static const struct stream_events events_before_agreement = {.closed = ignore_closed};

static struct stream *create_stream(struct connection *connection, bool is_outbound)
{
    struct stream *stream = memory_allocate_zeroed(sizeof(*stream));
    if (stream == NULL) {
        return NULL;
    }
    stream->id = slot_table_add(&connection->shard->streams, stream);
    if (stream->id == 0) {
        memory_free(stream);
        return NULL;
    }
    stream->connection = connection;
    stream->is_outbound = is_outbound;
    stream->events = &events_before_agreement;
    stream->next = connection->streams;
    if (stream->next != NULL) {
        stream->next->previous = stream;
    }
    connection->streams = stream;
    connection->stream_count++;
    return stream;
}

static void free_stream(struct stream *stream)
{
    struct connection *connection = stream->connection;
    stream_negotiation_end(stream);
    set_deadline(stream, 0);
    if (stream->previous != NULL) {
        stream->previous->next = stream->next;
    } else {
        connection->streams = stream->next;
    }
    if (stream->next != NULL) {
        stream->next->previous = stream->previous;
    }
    if (stream->use != NULL) {
        uint16_t *count = stream->is_outbound ? &stream->use->outbound : &stream->use->inbound;
        (*count)--;
    }
    connection->stream_count--;
    slot_table_remove(&connection->shard->streams, stream->id);
    memory_free(stream);
}

void stream_finish(struct stream *stream)
{
    assert(stream->muxer_stream == NULL);
    stream->events->closed(stream, stream->reason);
    free_stream(stream);
}

void stream_accept(struct connection *connection, struct muxer_stream *muxer_stream)
{
    const struct switch_options *options = &connection->shard->net_switch->options;
    if (connection->negotiating_count >= options->negotiations_max) {
        metrics_add(METRIC_NET_STREAMS_NEGOTIATIONS_MAX, 1);
        muxer_stream_reset(muxer_stream);
        return;
    }
    struct stream *stream = create_stream(connection, false);
    if (stream == NULL) {
        muxer_stream_reset(muxer_stream);
        return;
    }
    stream->muxer_stream = muxer_stream;
    set_deadline(stream, now_ms() + options->negotiation_timeout_ms);
    muxer_stream_set_events(muxer_stream, &muxer_events, stream);
    enum status status = stream_negotiation_begin(stream, NULL);
    if (status != STATUS_OK) {
        stream_cut(stream, status);
        return;
    }
    muxer_stream_resume(muxer_stream);
}

void stream_resume_all(struct connection *connection)
{
    struct stream *stream = connection->streams;
    while (stream != NULL) {
        struct stream *next = stream->next;
        stream_resume(stream);
        stream = next;
    }
}

void stream_tick_all(struct connection *connection, uint64_t time_ms)
{
    struct stream *stream = connection->streams;
    while (stream != NULL) {
        struct stream *next = stream->next;
        if (stream->deadline_ms != 0 && time_ms >= stream->deadline_ms) {
            metrics_add(METRIC_NET_STREAMS_TIMED_OUT, 1);
            set_deadline(stream, 0);
            stream_cut(stream, STATUS_TIMED_OUT);
        }
        stream = next;
    }
}

static struct protocol_use *use_of(struct connection *connection, const struct protocol *protocol)
{
    return &connection->uses[protocol - connection->shard->net_switch->protocols];
}

/* An inbound stream meets its handler. */
static enum status take_up(struct stream *stream, const char *id)
{
    struct connection *connection = stream->connection;
    const struct protocol *protocol =
            switch_find_protocol(connection->shard->net_switch, span_of_text(id));
    struct protocol_use *use = use_of(connection, protocol);
    if (use->inbound >= protocol->inbound_max) {
        metrics_add(METRIC_NET_STREAMS_PROTOCOL_MAX, 1);
        return STATUS_LIMIT_REACHED;
    }
    use->inbound++;
    stream->use = use;
    stream->events = protocol->events;
    stream->context = protocol->context;
    metrics_add(METRIC_NET_STREAMS_IN, 1);
    return STATUS_OK;
}

void stream_agreed(struct stream *stream, const char *protocol)
{
    enum status status = STATUS_OK;
    stream->protocol = protocol;
    set_deadline(stream, 0);
    if (!stream->is_outbound) {
        status = take_up(stream, protocol);
    }
    if (status == STATUS_OK && stream->events->opened != NULL) {
        status = stream->events->opened(stream);
    }
    if (status != STATUS_OK) {
        stream_cut(stream, status);
    }
}

static enum status check_room(struct connection *connection, const struct stream_request *request,
        struct protocol_use **use)
{
    struct net_switch *net_switch = connection->shard->net_switch;
    if (connection->muxer == NULL || connection->state != CONNECTION_OPEN) {
        return STATUS_CLOSED;
    }
    const struct protocol *protocol =
            switch_find_protocol(net_switch, span_of_text(request->protocols[0]));
    *use = protocol == NULL ? NULL : use_of(connection, protocol);
    if (*use != NULL && (*use)->outbound >= protocol->outbound_max) {
        metrics_add(METRIC_NET_STREAMS_PROTOCOL_MAX, 1);
        return STATUS_LIMIT_REACHED;
    }
    return STATUS_OK;
}

enum status connection_open_stream(
        struct connection *connection, const struct stream_request *request, struct stream **out)
{
    struct protocol_use *use;
    enum status status = check_room(connection, request, &use);
    if (status != STATUS_OK) {
        return status;
    }
    struct stream *stream = create_stream(connection, true);
    if (stream == NULL) {
        return STATUS_NO_MEMORY;
    }
    status = muxer_open_stream(connection->muxer, &stream->muxer_stream, &muxer_events, stream);
    if (status == STATUS_OK) {
        status = stream_negotiation_begin(stream, request);
    }
    if (status != STATUS_OK) {
        if (stream->muxer_stream != NULL) {
            muxer_stream_reset(stream->muxer_stream);
        }
        free_stream(stream);
        return status;
    }
    if (use != NULL) {
        use->outbound++;
        stream->use = use;
    }
    uint64_t timeout_ms = request->timeout_ms != 0
                                  ? request->timeout_ms
                                  : connection->shard->net_switch->options.negotiation_timeout_ms;
    set_deadline(stream, now_ms() + timeout_ms);
    stream->events = request->events;
    stream->context = request->context;
    metrics_add(METRIC_NET_STREAMS_OUT, 1);
    if (out != NULL) {
        *out = stream;
    }
    return STATUS_OK;
}

struct connection *stream_connection(const struct stream *stream)
{
    return stream->connection;
}

struct stream_address stream_address(const struct stream *stream)
{
    return (struct stream_address){.connection = stream->connection->id, .stream = stream->id};
}

const char *stream_protocol(const struct stream *stream)
{
    return stream->protocol;
}

bool stream_is_outbound(const struct stream *stream)
{
    return stream->is_outbound;
}

void *stream_context(const struct stream *stream)
{
    return stream->context;
}

void stream_set_context(struct stream *stream, void *context)
{
    stream->context = context;
}

enum status stream_write(struct stream *stream, const struct muxer_piece pieces[], size_t count)
{
    return stream->muxer_stream == NULL ? STATUS_CLOSED
                                        : muxer_stream_write(stream->muxer_stream, pieces, count);
}

enum status stream_write_copy(struct stream *stream, struct span bytes)
{
    uint8_t *copy = memory_allocate(bytes.length);
    if (copy == NULL) {
        return STATUS_NO_MEMORY;
    }
    memcpy(copy, bytes.bytes, bytes.length);
    struct muxer_piece piece = {
            .bytes = span_of(copy, bytes.length), .release = memory_free, .owner = copy};
    enum status status = stream_write(stream, &piece, 1);
    if (status != STATUS_OK) {
        memory_free(copy);
    }
    return status;
}

size_t stream_queued(const struct stream *stream)
{
    return stream->muxer_stream == NULL ? 0 : muxer_stream_queued(stream->muxer_stream);
}

void stream_consumed(struct stream *stream, size_t n)
{
    if (stream->muxer_stream != NULL) {
        muxer_stream_consumed(stream->muxer_stream, n);
    }
}

void stream_resume(struct stream *stream)
{
    if (stream->muxer_stream != NULL) {
        muxer_stream_resume(stream->muxer_stream);
    }
}

void stream_close_write(struct stream *stream)
{
    if (stream->muxer_stream != NULL) {
        muxer_stream_close_write(stream->muxer_stream);
    }
}

void stream_reset(struct stream *stream, enum status reason)
{
    stream_cut(stream, reason);
}

void stream_set_timeout(struct stream *stream, uint64_t timeout_ms)
{
    set_deadline(stream, timeout_ms == 0 ? 0 : now_ms() + timeout_ms);
}
