/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * multistream-select 1.0: two sides agree on the protocol of a connection or stream.
 *
 * Bytes go in by multistream_receive and come out by multistream_output; there is no socket, clock
 * or thread in it. It takes no byte beyond the agreement: those belong to the protocol.
 *
 * Lifetime: the protocol names are borrowed until destroy.
 * Thread:   one at a time.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/attributes.h"
#include "base/span.h"
#include "base/status.h"

enum {
    MULTISTREAM_MAX_LINE = 1024,    /* bytes of one message, its newline included */
    MULTISTREAM_MAX_REQUESTS = 64,  /* proposals and ls that a responder answers */
    MULTISTREAM_MAX_OUTPUT = 16384, /* answers that may wait to be sent */
    MULTISTREAM_MAX_LIST = 8192     /* bytes of an answer to ls */
};

struct multistream;

/* What a responder offers. */
struct multistream_offer {
    /* The offered protocol of that name, or NULL. */
    const char *(*find)(void *context, struct span name);
    /* The i-th for the answer to ls, NULL behind the last; may be NULL: ls names nothing. */
    const char *(*at)(void *context, size_t i);
    void *context;
};

/* Proposes the protocols in order, the first at once with the header; count is at least 1. */
MUST_USE enum status multistream_create_initiator(
        struct multistream **out, const char *const protocols[], size_t count);

MUST_USE enum status multistream_create_responder(
        struct multistream **out, const struct multistream_offer *offer);

void multistream_destroy(struct multistream **negotiation);

/*
 * Takes input up to the agreement: *consumed is less than input.length only when done.
 * STATUS_NO_COMMON_PROTOCOL: the other side refused all. STATUS_BAD_HANDSHAKE, STATUS_TOO_LARGE,
 * STATUS_LIMIT_REACHED: it does not keep to the protocol. After an error it accepts nothing more.
 */
MUST_USE enum status multistream_receive(
        struct multistream *negotiation, struct span input, size_t *consumed);

/* What is to be sent; stays valid until the next call that changes the negotiation. */
struct span multistream_output(const struct multistream *negotiation);
void multistream_output_taken(struct multistream *negotiation, size_t n);

/* The agreed protocol, as the caller's list or find names it; NULL while there is none. */
const char *BORROWED multistream_protocol(const struct multistream *negotiation);

/* The latest name that a responder refused, cut to fit, for the log; empty when there is none. */
const char *BORROWED multistream_refused(const struct multistream *negotiation);
