/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * A stream of a connection once its protocol is agreed: what protocol handlers work with.
 *
 * Ownership:  the connection owns it. It is gone after its `closed` event, which comes exactly once,
 *             also when the handler itself resets it (then after the handler's own call returns).
 * Thread:     the io thread of its connection, inside events or tasks of that loop. Other threads
 *             go through net/switch/switch.h with its address.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/attributes.h"
#include "base/status.h"
#include "net/muxer/muxer.h"

struct connection;
struct stream;

/* How other threads name a stream: a number that is never used again (0: none). */
struct stream_address {
    uint64_t connection;
    uint64_t stream;
};

/* Members may be NULL unless they say otherwise. */
struct stream_events {
    /* The protocol is agreed. Anything but STATUS_OK resets the stream, and `closed` follows. */
    enum status (*opened)(struct stream *stream);

    /*
     * Where the next bytes go: returns the capacity at *to. 0 = not now: they are held and credit is
     * withheld until stream_resume. NULL: what comes is thrown away.
     */
    size_t (*reserve)(struct stream *stream, size_t wanted, uint8_t **to);
    void (*commit)(struct stream *stream, size_t n); /* the first n reserved bytes are there now */
    void (*remote_closed)(struct stream *stream);    /* no more bytes will come */
    void (*writable)(struct stream *stream); /* queued bytes fell below the low-water mark */

    /*
     * Last event, never NULL. STATUS_OK: both sides closed in an orderly way. For an outbound stream
     * it is also the answer when no protocol was agreed (STATUS_NO_COMMON_PROTOCOL).
     */
    void (*closed)(struct stream *stream, enum status reason);
};

/*
 * For `reserve`: where bytes go that nobody wants now. `commit` then only calls stream_consumed for
 * them.
 */
size_t stream_reserve_waste(struct stream *stream, size_t wanted, uint8_t **to);

struct connection *BORROWED stream_connection(const struct stream *stream);
struct stream_address stream_address(const struct stream *stream);

/* The agreed protocol; NULL before. */
const char *BORROWED stream_protocol(const struct stream *stream);
bool stream_is_outbound(const struct stream *stream);

/* At first the context of the protocol or of the request that opened it. */
void *stream_context(const struct stream *stream);
void stream_set_context(struct stream *stream, void *context);

/*
 * Queues all pieces in order or none; release is called once for each piece that is taken, when it
 * has been encrypted or the stream is gone. STATUS_LIMIT_REACHED: the connection's cap.
 */
MUST_USE enum status stream_write(
        struct stream *stream, const struct muxer_piece pieces[], size_t count);

/* Copies bytes, for short answers. */
MUST_USE enum status stream_write_copy(struct stream *stream, struct span bytes);

size_t stream_queued(const struct stream *stream);

/* The handler has no more use for n committed bytes: the peer may send as many more. */
void stream_consumed(struct stream *stream, size_t n);
void stream_resume(struct stream *stream);

void stream_close_write(struct stream *stream);

/* reason is what `closed` will say. */
void stream_reset(struct stream *stream, enum status reason);

/* Resets it with STATUS_TIMED_OUT after so long from now, to the second; 0 takes that back. */
void stream_set_timeout(struct stream *stream, uint64_t timeout_ms);
