/* SPDX-License-Identifier: MIT */
#pragma once

/* A stream, and the negotiation of its protocol (stream_negotiation.c). */

#include "net/security/multistream.h"
#include "net/switch/connection_private.h"

/*
 * Where in a line of multistream the incoming bytes are. The negotiation takes its lines exactly, so
 * that the first byte behind the agreement goes straight to where the handler wants it.
 */
struct line_cursor {
    uint32_t length;    /* as far as its bytes have been seen */
    uint32_t remaining; /* of the line behind its length */
    uint8_t shift;
};

struct stream {
    struct connection *connection;
    struct muxer_stream *muxer_stream; /* NULL once it is gone there */
    const struct stream_events *events;
    void *context;
    struct protocol_use *use; /* which of the connection's counts it is in; NULL: none */
    const char *protocol;     /* NULL before the agreement */
    struct multistream *negotiation;
    struct line_cursor cursor;
    uint64_t id;
    uint64_t deadline_ms; /* 0: none */
    struct stream *next;
    struct stream *previous;
    struct stream *next_closed;
    enum status reason; /* once muxer_stream is NULL */
    bool is_outbound;
    bool is_negotiating;
    bool is_refused; /* by its handler's opened */
};

/* stream_negotiation.c */
MUST_USE enum status stream_negotiation_begin(
        struct stream *stream, const struct stream_request *request);
void stream_negotiation_end(struct stream *stream);
size_t stream_negotiation_reserve(struct stream *stream, size_t wanted, uint8_t **to);
void stream_negotiation_commit(struct stream *stream, size_t n);

/* stream.c */
/* The protocol is agreed. */
void stream_agreed(struct stream *stream, const char *protocol);
/* Ends the stream on both sides; `closed` follows at the end of the turn. */
void stream_cut(struct stream *stream, enum status reason);
