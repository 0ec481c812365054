/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * How many requests of a service may be made in a period, and who has made too many.
 *
 * A limit is one of two kinds. One that counts each peer by itself: a peer may use the whole period's
 * number at once, and each request comes back after period / volume (the generic cell rate algorithm).
 * One that all peers share, as the reference has it for all services but filter: what is not used is
 * saved up for some periods (ten for a period of up to a second, three for one of up to a minute, else
 * two), and of what all may have in that time one peer may have three quarters. Unlike there, a peer
 * that has asked for more than its share of a period leaves a quarter of a period's number to others.
 * Refused requests cost the peer nothing.
 *
 * The text form is that of the reference's --rate-limit: "[PROTOCOL:]VOLUME/PERIOD", PROTOCOL one of
 * store, storev3, lightpush, px, filter, PERIOD a whole number of h, m, s or ms; spaces may stand
 * between the parts, case does not matter. Without a protocol: for all that are not named. A volume
 * or a period of 0: no limit. Of our own is " each" at the end: it counts each peer by itself.
 *
 * Ownership:  the table of a limiter is of a fixed size (RATE_LIMITER_PEERS); of more peers at a time
 *             the one longest unheard of starts afresh.
 * Thread:     rate_limiter_admit on any; no locks.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/attributes.h"
#include "base/span.h"
#include "base/status.h"

enum {
    RATE_LIMITER_PEERS = 8192
};

enum rate_service {
    RATE_STORE,
    RATE_LIGHTPUSH,
    RATE_PEER_EXCHANGE,
    RATE_FILTER,
    RATE_SERVICES
};

/* Zeroed: no limit. */
struct rate_limit {
    uint64_t volume;
    uint64_t period_ns;
    bool is_shared; /* by all peers; else it is each peer's */
};

struct rate_limits {
    struct rate_limit of[RATE_SERVICES];
};

/*
 * When none is given: filter 100/1s, lightpush 5/1s, px 5/1s, store without limit, as in the
 * reference, but each peer by itself.
 */
void rate_limits_default(struct rate_limits *out);

/*
 * count texts, at least one. Of several for one protocol the last prevails; "store" stands for a
 * storev3 that was not named before. Not named: without limit, but filter 30/1m, as in the reference.
 * STATUS_BAD_ARGUMENT: texts[*bad] is malformed.
 */
MUST_USE enum status rate_limits_parse(
        struct rate_limits *out, const char *const texts[], size_t count, size_t *bad);

struct rate_limiter;

/* *out is NULL for a limit that is none. */
MUST_USE enum status rate_limiter_create(struct rate_limiter **out, struct rate_limit limit);
void rate_limiter_destroy(struct rate_limiter **limiter);

/* Whether the peer, named by any bytes, may make a request at now_ns (monotonic). NULL: it may. */
MUST_USE bool rate_limiter_admit(struct rate_limiter *limiter, struct span peer, uint64_t now_ns);
