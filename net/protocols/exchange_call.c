/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "base/memory.h"
#include "net/protocols/exchange_private.h"
#include "net/protocols/prefixed_reader.h"

enum {
    IGNORED_BYTES = 256,
    LINGER_MS = 5000 /* for the other side to close, once the answer is there */
};

struct pending_call {
    struct exchange_call call;
    struct prefixed_reader reader;
    uint8_t *request; /* owned until it is written */
    uint64_t timeout_ms;
    bool is_done; /* what still comes is thrown away */
    uint8_t ignored[IGNORED_BYTES];
};

void exchange_release(const struct muxer_piece pieces[], size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (pieces[i].release != NULL) {
            pieces[i].release(pieces[i].owner);
        }
    }
}

enum status exchange_write(struct stream *stream, const struct muxer_piece pieces[], size_t count)
{
    struct muxer_piece all[EXCHANGE_PIECES_MAX + 1];
    size_t length = 0;
    uint8_t *header = memory_allocate(VARINT_MAX_BYTES);
    if (header == NULL || count > EXCHANGE_PIECES_MAX) {
        memory_free(header);
        exchange_release(pieces, count);
        return header == NULL ? STATUS_NO_MEMORY : STATUS_BAD_ARGUMENT;
    }
    for (size_t i = 0; i < count; i++) {
        all[i + 1] = pieces[i];
        length += pieces[i].bytes.length;
    }
    size_t header_length = (size_t)(varint_write(header, length) - header);
    all[0] = (struct muxer_piece){
            .bytes = span_of(header, header_length), .release = memory_free, .owner = header};
    enum status status = stream_write(stream, all, count + 1);
    if (status != STATUS_OK) {
        exchange_release(all, count + 1);
        return status;
    }
    stream_close_write(stream);
    return STATUS_OK;
}

static void finish(struct stream *stream, enum status status)
{
    struct pending_call *pending = stream_context(stream);
    if (!pending->is_done) {
        pending->is_done = true;
        pending->call.done(pending->call.context, status, stream_protocol(stream),
                prefixed_reader_message(&pending->reader));
    }
}

static enum status on_opened(struct stream *stream)
{
    struct pending_call *pending = stream_context(stream);
    struct muxer_piece piece = {.bytes = span_of(pending->request, pending->call.request.length),
            .release = memory_free,
            .owner = pending->request};
    pending->request = NULL;
    stream_set_timeout(stream, pending->timeout_ms);
    return exchange_write(stream, &piece, 1);
}

static size_t on_reserve(struct stream *stream, size_t wanted, uint8_t **to)
{
    struct pending_call *pending = stream_context(stream);
    if (pending->is_done) {
        *to = pending->ignored;
        return sizeof(pending->ignored);
    }
    return prefixed_reader_reserve(&pending->reader, wanted, to);
}

static void on_commit(struct stream *stream, size_t n)
{
    struct pending_call *pending = stream_context(stream);
    stream_consumed(stream, n);
    if (pending->is_done) {
        return;
    }
    enum status status = prefixed_reader_commit(&pending->reader, n);
    if (status != STATUS_OK) {
        stream_reset(stream, status);
    } else if (prefixed_reader_is_done(&pending->reader)) {
        finish(stream, STATUS_OK);
        stream_set_timeout(stream, LINGER_MS);
    }
}

static void on_remote_closed(struct stream *stream)
{
    struct pending_call *pending = stream_context(stream);
    if (!pending->is_done) {
        stream_reset(stream, STATUS_CLOSED);
    }
}

static void on_closed(struct stream *stream, enum status reason)
{
    struct pending_call *pending = stream_context(stream);
    finish(stream, reason == STATUS_OK ? STATUS_CLOSED : reason);
    prefixed_reader_fini(&pending->reader);
    memory_free(pending->request);
    memory_free(pending);
}

static const struct stream_events events = {
        .opened = on_opened,
        .reserve = on_reserve,
        .commit = on_commit,
        .remote_closed = on_remote_closed,
        .closed = on_closed,
};

enum status exchange_call(struct connection *connection, const struct exchange_call *call)
{
    struct pending_call *pending = memory_allocate_zeroed(sizeof(*pending));
    if (pending == NULL) {
        return STATUS_NO_MEMORY;
    }
    pending->call = *call;
    pending->timeout_ms = call->timeout_ms == 0 ? EXCHANGE_TIMEOUT_MS : call->timeout_ms;
    prefixed_reader_init(&pending->reader, call->answer_max);
    enum status status = STATUS_NO_MEMORY;
    pending->request = memory_allocate(call->request.length + 1);
    if (pending->request == NULL) {
        goto fail;
    }
    if (call->request.length > 0) {
        memcpy(pending->request, call->request.bytes, call->request.length);
    }
    struct stream_request request = {.protocols = call->protocols,
            .protocol_count = call->protocol_count,
            .events = &events,
            .context = pending,
            .timeout_ms = pending->timeout_ms};
    status = connection_open_stream(connection, &request, NULL);
    if (status == STATUS_OK) {
        return STATUS_OK;
    }
fail:
    memory_free(pending->request);
    memory_free(pending);
    return status;
}
