/* SPDX-License-Identifier: MIT */
#pragma once

/* What the parts of a channel share: its socket (channel_socket.c), dialling (channel_dial.c), and
 * the layers between socket and owner (channel.c). */

#include <uv.h>

#include "net/transport/channel.h"
#include "net/transport/websocket.h"
#include "net/transport/websocket_upgrade.h"

enum channel_state {
    CHANNEL_DIALLING,  /* resolving and connecting */
    CHANNEL_TLS,       /* TLS handshake */
    CHANNEL_UPGRADING, /* HTTP */
    CHANNEL_OPEN,
    CHANNEL_ENDED, /* no more bytes either way */
};

struct channel_dial;

/* Bytes on their way to the kernel: one block is with libuv, the next one collects. */
struct channel_output {
    uint8_t *bytes;
    size_t length;
    size_t capacity;
};

struct channel {
    uv_tcp_t tcp;
    uv_timer_t timer; /* of a connection attempt, or of the linger after close */
    uv_write_t write;
    uv_shutdown_t shutdown;

    struct io_loop *loop;
    const struct channel_events *events;
    void *context;

    struct tls_context *tls_context;
    struct tls_session *tls;
    struct websocket_upgrade *upgrade;
    struct websocket *websocket;
    struct channel_dial *dial;

    struct channel_output in_flight; /* with libuv */
    struct channel_output next;
    uint64_t progress_ms;  /* when the kernel last took something */
    size_t progress_bytes; /* what libuv had left at that time */

    struct sockaddr_storage remote;
    struct sockaddr_storage local;

    unsigned references; /* handles and requests that libuv still knows */
    enum channel_state state;
    bool is_server;
    bool is_websocket;
    bool is_corked; /* collect in next: more comes in this call */
    bool is_paused;
    bool is_reading;
    bool is_writing;  /* in_flight is with libuv */
    bool is_detached; /* the owner has released it */
    bool is_closing;  /* its handles are being closed */
    bool is_lingering;
    bool is_timer_live;
};

/* channel.c */
void channel_socket_ready(struct channel *channel); /* the socket is connected */
void channel_socket_received(struct channel *channel, struct span bytes);
void channel_socket_drained(struct channel *channel); /* all output is with the kernel */
void channel_end(struct channel *channel, enum status reason);

/* channel_socket.c */
MUST_USE enum status channel_socket_init(struct channel *channel);

/* No delay, and TCP's own keep-alive. */
void channel_socket_configure(struct channel *channel);
void channel_socket_start_reading(struct channel *channel);
void channel_socket_stop_reading(struct channel *channel);

/* Queues behind what waits already; channel_socket_flush hands it to the kernel. */
MUST_USE enum status channel_socket_queue(struct channel *channel, struct span bytes);
MUST_USE enum status channel_socket_flush(struct channel *channel);

/* Tries the kernel first, so that bytes are copied only when the socket is full. */
MUST_USE enum status channel_socket_write(struct channel *channel, struct span bytes);

/* After the output is gone, or a second: closes. */
void channel_socket_linger(struct channel *channel);
void channel_socket_close(struct channel *channel);
void channel_drop_reference(struct channel *channel);

/* channel_dial.c */
MUST_USE enum status channel_dial_start(
        struct channel *channel, const struct multiaddr_endpoint *endpoint);
void channel_dial_cancel(struct channel *channel);
