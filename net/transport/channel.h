/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * A reliable run of bytes to a peer: TCP, or WebSocket over TCP or TLS, behind one face.
 *
 * Ownership:  the owner releases it with channel_close or channel_abort, also after `closed`. It may
 *             do so inside any event; no event follows.
 * Thread:     the io thread of its loop.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "base/attributes.h"
#include "base/span.h"
#include "base/status.h"
#include "net/identity/multiaddr.h"
#include "net/transport/io_loop.h"
#include "net/transport/tls.h"

struct channel;

struct channel_events {
    /* Bytes can flow: the connection stands, TLS and WebSocket have done their handshakes. */
    void (*opened)(void *context);
    /* Where the rest of a half-received frame goes; 0: into the loop's buffer. May be NULL. */
    size_t (*reserve)(void *context, uint8_t **to);
    /* Lies in the place that reserve named or in a buffer that is valid during the call. */
    void (*received)(void *context, struct span bytes);
    /* Everything that was written has gone to the kernel. */
    void (*writable)(void *context);
    /* The peer or an error ended it. STATUS_CLOSED: the peer closed in an orderly way. */
    void (*closed)(void *context, enum status reason);
};

struct channel_options {
    struct io_loop *loop;
    const struct channel_events *events;
    void *context;
    bool is_websocket;
    struct tls_context *BORROWED tls; /* NULL: no TLS */
};

/* Takes a connected socket; on failure the descriptor is closed. No event comes before it returns. */
MUST_USE enum status channel_accept(
        struct channel **out, int descriptor, const struct channel_options *options);

/* Resolves a name off the loop and tries its addresses in turn. */
MUST_USE enum status channel_dial(struct channel **out, const struct multiaddr_endpoint *endpoint,
        const struct channel_options *options);

/* Lets what was written leave for up to a second, then closes; at once when too many do so. */
void channel_close(struct channel **channel);
void channel_abort(struct channel **channel);

/* Takes all of bytes. Only after `opened`; when the socket is full the rest is copied and kept. */
MUST_USE enum status channel_write(struct channel *channel, struct span bytes);

/* False while bytes of an earlier write wait for the socket. */
bool channel_is_writable(const struct channel *channel);

/* Bytes that wait for the socket, and for how long nothing of them has left. */
size_t channel_bytes_in_flight(const struct channel *channel);
uint64_t channel_stalled_ms(struct channel *channel);

void channel_pause(struct channel *channel);
void channel_resume(struct channel *channel);

/* Of the other and of this side; family 0 before a dialled connection stands. */
void channel_remote_address(const struct channel *channel, struct sockaddr_storage *out);
void channel_local_address(const struct channel *channel, struct sockaddr_storage *out);
