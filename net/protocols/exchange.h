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
#include "base/span.h"
#include "base/status.h"
#include "net/switch/switch.h"

enum {
    EXCHANGE_TIMEOUT_MS = 30 * 1000,
    EXCHANGE_INBOUND_MAX = 64
};

/* A request that waits for its answer, gone after exchange_answer, _refuse or `abandoned`. */
struct exchange;

struct exchange_server {
    const char *id;
    size_t request_max;    /* bytes; longer ones reset the stream */
    unsigned inbound_max;  /* streams of a connection; 0: EXCHANGE_INBOUND_MAX */
    unsigned outbound_max; /* our own calls to a peer at a time; 0: the switch's default */
    /* From the first byte of the request to its last, then for the answer, then for the peer to take
     * it; 0: EXCHANGE_TIMEOUT_MS. */
    uint64_t timeout_ms;

    /* Answers now or later; request is valid until then. */
    void (*requested)(void *context, struct exchange *exchange, struct span request);
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

/* The message in up to EXCHANGE_PIECES_MAX pieces, without its length. All are released. */
enum {
    EXCHANGE_PIECES_MAX = 7
};
void exchange_answer(
        struct exchange *CONSUMED exchange, const struct muxer_piece pieces[], size_t count);
void exchange_answer_copy(struct exchange *CONSUMED exchange, struct span message);
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
