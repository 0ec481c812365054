/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * How many requests of a service one peer may make in a period, and who has made too many.
 *
 * A limit counts for each peer by itself, so that a greedy one takes nothing from the others. A peer
 * may use the whole period's number at once; each request comes back after period / volume (the
 * generic cell rate algorithm). Refused requests cost the peer nothing.
 *
 * The text form is that of the reference's --rate-limit: "[PROTOCOL:]VOLUME/PERIOD", PROTOCOL one of
 * store, storev3, lightpush, px, filter, PERIOD a whole number of h, m, s or ms; spaces may stand
 * between the parts, case does not matter. Without a protocol: for all that are not named. A volume
 * or a period of 0: no limit.
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
    uint64_t volume; /* requests of one peer */
    uint64_t period_ns;
};

struct rate_limits {
    struct rate_limit of[RATE_SERVICES];
};

/*
 * What the reference does when none is given: filter 100/1s, lightpush 5/1s, px 5/1s, store without
 * limit.
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
