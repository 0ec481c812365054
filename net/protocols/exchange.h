/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * One request and one answer on a stream, each a message with its length before it: the form of
 * metadata, filter-subscribe, store, lightpush and peer exchange. The answering side closes its
 * write side after the answer, which clients rely on.
 *
 * Thread: the io thread of the connection.
 */

#include <stddef.h>
#include <stdint.h>

#include "base/attributes.h"
#include "base/metrics.h"
#include "base/span.h"
#include "base/status.h"
#include "net/switch/switch.h"
#include "router/rate_limit.h"

enum {
    EXCHANGE_TIMEOUT_MS = 30 * 1000,
    EXCHANGE_INBOUND_MAX = 64,
    EXCHANGE_BEGINNING_MAX = 2048,         /* of a declined request, for what names it */
    EXCHANGE_EXCESS_MAX = 16 * 1024 * 1024 /* of a declined request's rest, before a reset */
};

/* A request that waits for its answer, gone after exchange_answer, _refuse or `abandoned`. */
struct exchange;

/* Where requests are read to, when not to memory of the exchange's own. */
struct exchange_memory {
    /* A place for length bytes, or NULL: the exchange uses its own memory then. */
    void *(*create)(void *context, size_t length);
    uint8_t *(*bytes)(void *place);
    void (*destroy)(void *CONSUMED place);
    void *context;
};

/* An answer that is made while it is sent: the next pieces are asked for when those before have left. */
struct exchange_body {
    size_t length; /* of all pieces */
    /* Fills up to max pieces, each released once; 0: there are no more. */
    size_t (*next)(void *context, struct muxer_piece pieces[], size_t max);
    void (*done)(void *context); /* once, when the stream is gone; nothing is asked for after it */
    void *context;
};

/* How many requests a peer may make, and where all are counted. */
struct exchange_limit {
    struct rate_limiter *BORROWED limiter; /* NULL: as many as it likes */
    enum metric served;
    enum metric rejected; /* for the rate */
};

struct exchange_server {
    const char *id;
    size_t request_max;    /* bytes; longer ones are declined */
    unsigned inbound_max;  /* streams of a connection; 0: EXCHANGE_INBOUND_MAX */
    unsigned outbound_max; /* our own calls to a peer at a time; 0: the switch's default */
    /* From the first byte of the request to its last, then for the answer, then for the peer to take
     * it; 0: EXCHANGE_TIMEOUT_MS. */
    uint64_t timeout_ms;
    const struct exchange_memory *memory; /* NULL: the exchange's own */
    const struct exchange_limit *limit;   /* NULL: none, and not counted */

    /* Answers now or later; request is valid until then. */
    void (*requested)(void *context, struct exchange *exchange, struct span request);
    /*
     * In place of requested, before the request is read: STATUS_TOO_LARGE (request_max) or
     * STATUS_LIMIT_REACHED (the rate). beginning is at most EXCHANGE_BEGINNING_MAX bytes of it; what
     * follows is thrown away. Answers at once, with exchange_answer_copy. NULL: the stream is reset.
     */
    void (*declined)(
            void *context, struct exchange *exchange, enum status reason, struct span beginning);
    /* The stream is gone before it was answered. May be NULL. */
    void (*abandoned)(void *context, struct exchange *exchange);
    void *context;
};

/* server outlives the switch. */
MUST_USE enum status exchange_serve(
        struct net_switch *net_switch, const struct exchange_server *server);

struct stream *BORROWED exchange_stream(const struct exchange *exchange);

/* Of the one who serves, from requested to the answer. */
void exchange_set_context(struct exchange *exchange, void *context);
void *exchange_context(const struct exchange *exchange);

/* The place that the request was read to, the caller's from now on; NULL: it is not in one. */
MUST_USE void *exchange_take_memory(struct exchange *exchange);

/* The message in up to EXCHANGE_PIECES_MAX pieces, without its length. All are released. */
enum {
    EXCHANGE_PIECES_MAX = 7
};
void exchange_answer(
        struct exchange *CONSUMED exchange, const struct muxer_piece pieces[], size_t count);
void exchange_answer_copy(struct exchange *CONSUMED exchange, struct span message);
void exchange_answer_body(struct exchange *CONSUMED exchange, const struct exchange_body *body);
void exchange_refuse(struct exchange *CONSUMED exchange, enum status reason);

struct exchange_call {
    const char *const *protocols; /* in order of preference */
    size_t protocol_count;
    struct span request; /* copied */
    size_t answer_max;
    uint64_t timeout_ms; /* for everything; 0: EXCHANGE_TIMEOUT_MS */
    /* Once; protocol is the agreed one, NULL when there is none. answer is valid during the call. */
    void (*done)(void *context, enum status status, const char *protocol, struct span answer);
    void *context;
};

/* On failure done is not called. */
MUST_USE enum status exchange_call(struct connection *connection, const struct exchange_call *call);
