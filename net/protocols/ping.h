/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * /ipfs/ping/1.0.0, the asking side: 32 random bytes that must come back. The answering side is
 * registered with ping_register (net/protocols/echo.h).
 *
 * Ownership:  it is gone after `ended`.
 * Thread:     the io thread of the connection.
 */

#include <stdint.h>

#include "base/attributes.h"
#include "base/status.h"
#include "net/switch/connection.h"

#define PING_PROTOCOL_ID "/ipfs/ping/1.0.0"

enum {
    PING_BYTES = 32,
    PING_TIMEOUT_MS = 20 * 1000
};

struct ping;

struct ping_events {
    void (*ready)(void *context, struct ping *ping); /* the peer has agreed to be pinged */
    void (*answered)(void *context, struct ping *ping, uint64_t round_trip_ns);
    /* STATUS_OK after ping_close, else what went wrong; ping is gone after. */
    void (*ended)(void *context, struct ping *ping, enum status reason);
};

/* On failure no event comes. */
MUST_USE enum status ping_open(struct connection *connection, const struct ping_events *events,
        void *context, struct ping **BORROWED out);

/* One at a time: after `ready`, and after each `answered`. */
void ping_send(struct ping *ping);
void ping_close(struct ping *ping);
