/* SPDX-License-Identifier: MIT */
#include <assert.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "net/protocols/exchange_private.h"
#include "net/protocols/prefixed_reader.h"

struct exchange {
    const struct exchange_server *server;
    struct stream *stream;
    struct prefixed_reader reader;
    void *context;
    void *place; /* of server->memory; NULL: the reader's own */
    struct exchange_body body;
    enum status declined; /* why it is not taken */
    size_t excess;        /* bytes that follow what was read of a declined request */
    size_t skipped;       /* of them */
    bool is_requested;    /* and not answered yet */
    bool has_body;
    bool is_body_over;
};

enum {
    BODY_QUEUED_MAX = 128 * 1024 /* above the mark at which the stream asks for more */
};

static uint64_t timeout_of(const struct exchange_server *server)
{
    return server->timeout_ms == 0 ? EXCHANGE_TIMEOUT_MS : server->timeout_ms;
}

static enum status on_opened(struct stream *stream)
{
    const struct exchange_server *server = stream_context(stream);
    struct exchange *exchange = memory_allocate_zeroed(sizeof(*exchange));
    stream_set_context(stream, exchange);
    if (exchange == NULL) {
        return STATUS_NO_MEMORY;
    }
    exchange->server = server;
    exchange->stream = stream;
    prefixed_reader_init(
            &exchange->reader, server->declined != NULL ? SIZE_MAX : server->request_max);
    /* No timeout yet: clients open streams ahead and use them later. */
    return STATUS_OK;
}

static size_t on_reserve(struct stream *stream, size_t wanted, uint8_t **to)
{
    struct exchange *exchange = stream_context(stream);
    if (exchange->excess > 0 && prefixed_reader_is_done(&exchange->reader)) {
        *to = exchange->reader.message;
        return exchange->reader.capacity;
    }
    return prefixed_reader_reserve(&exchange->reader, wanted, to);
}

/* Counted or refused in one look at a table: no log line, or a flood would fill the disk. */
static bool is_within_rate(const struct exchange *exchange)
{
    const struct exchange_limit *limit = exchange->server->limit;
    if (limit == NULL) {
        return true;
    }
    const struct peer_id *peer = connection_peer(stream_connection(exchange->stream));
    bool is_within = rate_limiter_admit(limit->limiter, peer_id_span(peer), clock_monotonic_ns());
    metrics_add(is_within ? limit->served : limit->rejected, 1);
    return is_within;
}

static enum status judge_request(const struct exchange *exchange)
{
    if (!is_within_rate(exchange)) {
        return STATUS_LIMIT_REACHED;
    }
    return exchange->reader.length > exchange->server->request_max ? STATUS_TOO_LARGE : STATUS_OK;
}

/* The length is known: whether the request is taken, and where it goes. */
static void place_request(struct exchange *exchange)
{
    const struct exchange_memory *memory = exchange->server->memory;
    size_t length = exchange->reader.length;
    exchange->declined = judge_request(exchange);
    if (exchange->reader.length == 0) {
        return;
    }
    if (exchange->declined != STATUS_OK) {
        prefixed_reader_cut(&exchange->reader, EXCHANGE_BEGINNING_MAX);
        exchange->excess = length - exchange->reader.length;
        return;
    }
    if (memory == NULL) {
        return;
    }
    exchange->place = memory->create(memory->context, exchange->reader.length);
    if (exchange->place != NULL) {
        prefixed_reader_place(&exchange->reader, memory->bytes(exchange->place));
    }
}

static void take_request(struct exchange *exchange)
{
    const struct exchange_server *server = exchange->server;
    struct span request = prefixed_reader_message(&exchange->reader);
    exchange->is_requested = true;
    if (exchange->declined == STATUS_OK) {
        server->requested(server->context, exchange, request);
    } else if (server->declined != NULL) {
        server->declined(server->context, exchange, exchange->declined, request);
    } else {
        exchange_refuse(exchange, exchange->declined);
    }
}

/* The answer is on its way; who sends on without end does not get away with it. */
static void skip_excess(struct exchange *exchange, size_t n)
{
    size_t skipped = n < exchange->excess ? n : exchange->excess;
    exchange->excess -= skipped;
    exchange->skipped += skipped;
    if (exchange->skipped > EXCHANGE_EXCESS_MAX) {
        stream_reset(exchange->stream, STATUS_TOO_LARGE);
    }
}

static void on_commit(struct stream *stream, size_t n)
{
    struct exchange *exchange = stream_context(stream);
    bool is_first = exchange->reader.header_length == 0;
    bool had_length = exchange->reader.has_length;
    stream_consumed(stream, n);
    if (prefixed_reader_is_done(&exchange->reader)) {
        skip_excess(exchange, n);
        return;
    }
    enum status status = prefixed_reader_commit(&exchange->reader, n);
    if (status != STATUS_OK) {
        stream_reset(stream, status);
        return;
    }
    if (!had_length && exchange->reader.has_length) {
        place_request(exchange);
    }
    bool is_done = prefixed_reader_is_done(&exchange->reader);
    if (is_first || is_done) {
        /* Once for the whole request, however slowly it trickles in, and once for its answer. */
        stream_set_timeout(stream, timeout_of(exchange->server));
    }
    if (is_done) {
        take_request(exchange);
    }
}

static void on_remote_closed(struct stream *stream)
{
    struct exchange *exchange = stream_context(stream);
    if (!prefixed_reader_is_done(&exchange->reader)) {
        /* No request came: an idle stream is given back, a cut one is as good as none. */
        stream_close_write(stream);
    }
}

static void on_closed(struct stream *stream, enum status reason)
{
    (void)reason;
    struct exchange *exchange = stream_context(stream);
    if (exchange == NULL) {
        return;
    }
    if (exchange->is_requested && exchange->server->abandoned != NULL) {
        exchange->server->abandoned(exchange->server->context, exchange);
    }
    if (exchange->has_body) {
        exchange->body.done(exchange->body.context);
    }
    if (exchange->place != NULL) {
        exchange->server->memory->destroy(exchange->place);
    }
    prefixed_reader_fini(&exchange->reader);
    memory_free(exchange);
}

/* A peer that does not read keeps the rest of the body from being asked for, until it times out. */
static void send_body(struct exchange *exchange)
{
    struct muxer_piece pieces[EXCHANGE_PIECES_MAX];
    struct stream *stream = exchange->stream;
    while (!exchange->is_body_over && stream_queued(stream) < BODY_QUEUED_MAX) {
        size_t count = exchange->body.next(exchange->body.context, pieces, EXCHANGE_PIECES_MAX);
        if (count == 0) {
            exchange->is_body_over = true;
            stream_close_write(stream);
            return;
        }
        enum status status = stream_write(stream, pieces, count);
        if (status != STATUS_OK) {
            exchange->is_body_over = true;
            exchange_release(pieces, count);
            stream_reset(stream, status);
        }
    }
}

static void on_writable(struct stream *stream)
{
    struct exchange *exchange = stream_context(stream);
    if (exchange != NULL && exchange->has_body && !exchange->is_body_over) {
        stream_set_timeout(stream, timeout_of(exchange->server));
        send_body(exchange);
    }
}

static const struct stream_events events = {
        .opened = on_opened,
        .reserve = on_reserve,
        .commit = on_commit,
        .remote_closed = on_remote_closed,
        .writable = on_writable,
        .closed = on_closed,
};

enum status exchange_serve(struct net_switch *net_switch, const struct exchange_server *server)
{
    struct protocol protocol = {
            .id = server->id,
            .events = &events,
            .context = (void *)(uintptr_t)server,
            .inbound_max = server->inbound_max == 0 ? EXCHANGE_INBOUND_MAX : server->inbound_max,
            .outbound_max = server->outbound_max,
    };
    return switch_add_protocol(net_switch, &protocol);
}

struct stream *exchange_stream(const struct exchange *exchange)
{
    return exchange->stream;
}

void exchange_set_context(struct exchange *exchange, void *context)
{
    exchange->context = context;
}

void *exchange_context(const struct exchange *exchange)
{
    return exchange->context;
}

void *exchange_take_memory(struct exchange *exchange)
{
    void *place = exchange->place;
    exchange->place = NULL;
    return place;
}

void exchange_answer_body(struct exchange *exchange, const struct exchange_body *body)
{
    uint8_t header[VARINT_MAX_BYTES];
    assert(exchange->is_requested);
    exchange->is_requested = false;
    exchange->has_body = true;
    exchange->body = *body;
    stream_set_timeout(exchange->stream, timeout_of(exchange->server));
    size_t length = (size_t)(varint_write(header, body->length) - header);
    enum status status = stream_write_copy(exchange->stream, span_of(header, length));
    if (status != STATUS_OK) {
        exchange->is_body_over = true;
        stream_reset(exchange->stream, status);
        return;
    }
    send_body(exchange);
}

void exchange_answer(struct exchange *exchange, const struct muxer_piece pieces[], size_t count)
{
    assert(exchange->is_requested);
    exchange->is_requested = false;
    stream_set_timeout(exchange->stream, timeout_of(exchange->server));
    enum status status = exchange_write(exchange->stream, pieces, count);
    if (status != STATUS_OK) {
        stream_reset(exchange->stream, status);
    }
}

void exchange_answer_copy(struct exchange *exchange, struct span message)
{
    uint8_t *copy = memory_allocate(message.length + 1);
    if (copy == NULL) {
        exchange_refuse(exchange, STATUS_NO_MEMORY);
        return;
    }
    if (message.length > 0) {
        memcpy(copy, message.bytes, message.length);
    }
    struct muxer_piece piece = {
            .bytes = span_of(copy, message.length), .release = memory_free, .owner = copy};
    exchange_answer(exchange, &piece, 1);
}

void exchange_refuse(struct exchange *exchange, enum status reason)
{
    exchange->is_requested = false;
    stream_reset(exchange->stream, reason);
}
