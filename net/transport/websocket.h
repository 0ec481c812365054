/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * WebSocket frames around a run of bytes, without sockets: binary messages of any size, pings
 * answered, frames of a message not kept together. wslay does the framing.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/attributes.h"
#include "base/span.h"
#include "base/status.h"

struct websocket;

struct websocket_events {
    /* A piece of payload; valid during the call. */
    void (*received)(void *context, struct span payload);
    /* Bytes for the socket; they must all be taken. */
    void (*send)(void *context, struct span bytes);
};

MUST_USE enum status websocket_create(struct websocket **out, bool is_server,
        const struct websocket_events *events, void *context);
void websocket_destroy(struct websocket **websocket);

/* STATUS_CLOSED after the peer's close frame, STATUS_BAD_FRAME for a breach of the protocol. */
MUST_USE enum status websocket_receive(struct websocket *websocket, struct span input);

/* One binary message. */
MUST_USE enum status websocket_write(struct websocket *websocket, struct span payload);

/* Sends a close frame; nothing may be written after. */
void websocket_finish(struct websocket *websocket);

/* Sends what is queued (pongs); only while the socket takes bytes. */
MUST_USE enum status websocket_flush(struct websocket *websocket);

/* Control frames that wait for websocket_flush. */
size_t websocket_queued(const struct websocket *websocket);
