/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Many streams over one secured connection: yamux and mplex as one state machine without sockets,
 * threads or clocks. Options and their defaults are in net/muxer/muxer_options.h.
 *
 * Progress:  nothing blocks. Reading never waits for writing: what has to be answered is queued,
 *            bounded, and comes out of muxer_output before any data.
 * Ownership: the muxer owns its streams. A stream is gone after its `reset` or `closed` event (one
 *            of them, once) or after its owner called muxer_stream_reset (no event then).
 * Callbacks: may call every function here, also reset and close of any stream, and muxer_destroy:
 *            streams are then reset at once and the memory goes when the outermost call returns.
 * Thread:    one thread for the life of the connection.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/attributes.h"
#include "base/span.h"
#include "base/status.h"

struct muxer;
struct muxer_stream;
struct muxer_options;

enum muxer_kind {
    MUXER_YAMUX,
    MUXER_MPLEX
};

/* Plaintext of one verified secure frame, read in pieces of any size; a muxer frame may span many. */
struct muxer_source {
    size_t remaining; /* kept by the muxer: falls by n with each read */
    void (*read)(void *context, uint8_t *to, size_t n);
    void *context;
};

/* Implemented by whoever owns the stream; every member is set. */
struct muxer_stream_events {
    /*
     * Where the next bytes go: returns the capacity at *to, more or less than wanted. 0 = not now:
     * the muxer holds what arrives (yamux: at most the window) until muxer_stream_resume.
     */
    size_t (*reserve)(void *context, size_t wanted, uint8_t **to);
    void (*commit)(void *context, size_t n);   /* the first n reserved bytes are there now */
    void (*remote_closed)(void *context);      /* half-close: no more bytes will come */
    void (*writable)(void *context);           /* queued bytes fell below the low-water mark */
    void (*closed)(void *context);             /* both sides closed, all sent; the stream is gone */
    void (*reset)(void *context, enum status); /* both directions cut; the stream is gone */
};

/* A piece of outgoing bytes and what to call when it is no longer needed (release may be NULL). */
struct muxer_piece {
    struct span bytes;
    void (*release)(void *owner);
    void *owner;
};

/* The reasons of yamux, as on the wire. */
enum muxer_go_away {
    MUXER_GO_AWAY_NORMAL,
    MUXER_GO_AWAY_PROTOCOL_ERROR,
    MUXER_GO_AWAY_INTERNAL_ERROR
};

/* As multistream negotiates it: "/yamux/1.0.0", "/mplex/6.7.0". */
const char *muxer_protocol_id(enum muxer_kind kind);
MUST_USE bool muxer_kind_from_protocol_id(enum muxer_kind *out, struct span id);

/* is_initiator: this side dialled. options is copied. */
MUST_USE enum status muxer_create(struct muxer **out, enum muxer_kind kind, bool is_initiator,
        const struct muxer_options *options);

/* Resets every stream (event with the status that ended the connection, else STATUS_CLOSED). */
void muxer_destroy(struct muxer **muxer);

/*
 * Time that what follows happens at, monotonic. To be called before muxer_receive and every few
 * seconds: it queues keep-alive pings. STATUS_TIMED_OUT when one stayed unanswered.
 */
MUST_USE enum status muxer_tick(struct muxer *muxer, uint64_t now_ns);

/*
 * Takes all of source. On any error the connection has to be closed, after what muxer_output still
 * gives (yamux: a GoAway): STATUS_BAD_FRAME, STATUS_WINDOW_OVERRUN, STATUS_LIMIT_REACHED (unread
 * answers pile up), STATUS_NO_MEMORY, STATUS_CLOSED (destroyed by a callback). Errors stay.
 */
MUST_USE enum status muxer_receive(struct muxer *muxer, struct muxer_source *source);

/*
 * Fills pieces for one secure frame and returns their number, 0 when there is nothing to send or no
 * room (max_pieces < 2, max_bytes < 32). Control frames first, then the streams in turn. The spans
 * stay valid until muxer_output_done, which comes before the next muxer_output.
 */
size_t muxer_output(struct muxer *muxer, struct span pieces[], size_t max_pieces, size_t max_bytes);
void muxer_output_done(struct muxer *muxer);
bool muxer_wants_output(const struct muxer *muxer);

/*
 * Outbound stream; it may be written to at once. STATUS_LIMIT_REACHED: streams_max, or too many not
 * acknowledged yet. STATUS_CLOSED: either side went away.
 */
MUST_USE enum status muxer_open_stream(struct muxer *muxer, struct muxer_stream **BORROWED out,
        const struct muxer_stream_events *events, void *context);

/* No more streams in either direction; those that are open go on. mplex tells the peer nothing. */
void muxer_go_away(struct muxer *muxer, enum muxer_go_away reason);

size_t muxer_stream_count(const struct muxer *muxer);
size_t muxer_queued(const struct muxer *muxer);   /* outgoing bytes of all streams */
size_t muxer_held(const struct muxer *muxer);     /* received bytes nobody reserved a place for */
uint64_t muxer_rtt_ns(const struct muxer *muxer); /* last ping of yamux; UINT64_MAX: not measured */

/*
 * Accepts an inbound stream (its opener learns of it now) or changes the owner of any stream. Bytes
 * that came before are held; call muxer_stream_resume to have them.
 */
void muxer_stream_set_events(
        struct muxer_stream *stream, const struct muxer_stream_events *events, void *context);

/*
 * Queues all pieces, in order, or takes none: STATUS_CLOSED after close_write, STATUS_LIMIT_REACHED
 * at the connection's cap. release is called exactly once for each piece that was taken.
 */
MUST_USE enum status muxer_stream_write(
        struct muxer_stream *stream, const struct muxer_piece pieces[], size_t count);

/* Bytes written and not yet given to muxer_output. */
size_t muxer_stream_queued(const struct muxer_stream *stream);

/* The owner has no more use for n committed bytes: the peer may send as many more. */
void muxer_stream_consumed(struct muxer_stream *stream, size_t n);

/* There is room again: delivers what is held. Does nothing inside the stream's own reserve/commit. */
void muxer_stream_resume(struct muxer_stream *stream);

/* Half-close after what is queued. */
void muxer_stream_close_write(struct muxer_stream *stream);
void muxer_stream_reset(struct muxer_stream *stream);

bool muxer_stream_is_outbound(const struct muxer_stream *stream);
uint64_t muxer_stream_id(const struct muxer_stream *stream);
void *muxer_stream_context(const struct muxer_stream *stream);
struct muxer *muxer_stream_muxer(const struct muxer_stream *stream);
