/* SPDX-License-Identifier: MIT */
#include "net/transport/channel.h"

#include <assert.h>
#include <stdio.h>
#include <unistd.h>

#include "base/memory.h"
#include "net/transport/channel_private.h"

enum {
    TLS_RECORD_BYTES = 16384,
    /* Answers to pings that a peer has not read: beyond this it does not read at all. */
    WEBSOCKET_QUEUED_MAX = 64
};

static void receive_plain(struct channel *channel, struct span bytes);

void channel_end(struct channel *channel, enum status reason)
{
    if (channel->is_detached || channel->state == CHANNEL_ENDED) {
        return;
    }
    channel->state = CHANNEL_ENDED;
    channel_socket_stop_reading(channel);
    channel->events->closed(channel->context, reason);
}

/*
 * Cuts what fits in one record off the front of bytes. OpenSSL's memory between the socket and us
 * never shrinks, so it is given only so much at a time.
 */
static struct span take_slice(struct span *bytes)
{
    struct span slice = *bytes;
    if (slice.length <= TLS_RECORD_BYTES) {
        *bytes = span_of(NULL, 0);
        return slice;
    }
    slice.length = TLS_RECORD_BYTES;
    bytes->bytes += TLS_RECORD_BYTES;
    bytes->length -= TLS_RECORD_BYTES;
    return slice;
}

static enum status encrypt(struct channel *channel, struct span plaintext)
{
    uint8_t record[TLS_RECORD_BYTES];
    enum status status;
    do {
        size_t n;
        status = tls_session_write(channel->tls, take_slice(&plaintext));
        while (status == STATUS_OK &&
                (n = tls_session_take_output(channel->tls, record, sizeof(record))) > 0) {
            status = channel_socket_queue(channel, span_of(record, n));
        }
    } while (status == STATUS_OK && plaintext.length > 0);
    return status == STATUS_OK && !channel->is_corked ? channel_socket_flush(channel) : status;
}

static enum status write_below_websocket(struct channel *channel, struct span bytes)
{
    return channel->tls != NULL ? encrypt(channel, bytes) : channel_socket_write(channel, bytes);
}

static void on_websocket_received(void *context, struct span payload)
{
    struct channel *channel = context;
    if (!channel->is_detached && channel->state == CHANNEL_OPEN) {
        channel->events->received(channel->context, payload);
    }
}

static void on_websocket_send(void *context, struct span bytes)
{
    struct channel *channel = context;
    enum status status = write_below_websocket(channel, bytes);
    if (status != STATUS_OK) {
        channel_end(channel, status);
    }
}

static void open_channel(struct channel *channel)
{
    channel->state = CHANNEL_OPEN;
    channel->events->opened(channel->context);
}

static enum status send_upgrade_output(struct channel *channel)
{
    struct span output = websocket_upgrade_output(channel->upgrade);
    enum status status = STATUS_OK;
    if (output.length > 0) {
        status = write_below_websocket(channel, output);
        websocket_upgrade_output_taken(channel->upgrade);
    }
    return status;
}

static enum status finish_upgrade(struct channel *channel)
{
    static const struct websocket_events events = {
            .received = on_websocket_received, .send = on_websocket_send};
    enum status status =
            websocket_create(&channel->websocket, channel->is_server, &events, channel);
    if (status == STATUS_OK) {
        websocket_upgrade_destroy(&channel->upgrade);
        open_channel(channel);
    }
    return status;
}

static enum status receive_upgrade(struct channel *channel, struct span bytes)
{
    size_t consumed;
    enum status status = websocket_upgrade_receive(channel->upgrade, bytes, &consumed);
    enum status sent = send_upgrade_output(channel);
    if (status != STATUS_OK || sent != STATUS_OK) {
        return status != STATUS_OK ? status : sent;
    }
    if (!websocket_upgrade_is_done(channel->upgrade)) {
        return STATUS_OK;
    }
    status = finish_upgrade(channel);
    if (status == STATUS_OK && consumed < bytes.length) {
        receive_plain(channel, span_of(bytes.bytes + consumed, bytes.length - consumed));
    }
    return status;
}

static enum status receive_websocket(struct channel *channel, struct span bytes)
{
    enum status status = websocket_receive(channel->websocket, bytes);
    if (channel->is_detached || channel->state != CHANNEL_OPEN) {
        return STATUS_OK;
    }
    if (status == STATUS_OK && channel_is_writable(channel)) {
        return websocket_flush(channel->websocket);
    }
    if (websocket_queued(channel->websocket) > WEBSOCKET_QUEUED_MAX) {
        return STATUS_LIMIT_REACHED;
    }
    return status;
}

/* Bytes below WebSocket and above TLS. */
static void receive_plain(struct channel *channel, struct span bytes)
{
    enum status status = STATUS_OK;
    if (channel->is_detached) {
        return;
    }
    switch (channel->state) {
    case CHANNEL_UPGRADING:
        status = receive_upgrade(channel, bytes);
        break;
    case CHANNEL_OPEN:
        if (channel->websocket != NULL) {
            status = receive_websocket(channel, bytes);
        } else {
            channel->events->received(channel->context, bytes);
        }
        break;
    case CHANNEL_DIALLING:
    case CHANNEL_TLS:
    case CHANNEL_ENDED:
        break;
    }
    if (status != STATUS_OK) {
        channel_end(channel, status);
    }
}

static enum status start_upgrade(struct channel *channel)
{
    channel->state = CHANNEL_UPGRADING;
    return send_upgrade_output(channel);
}

static enum status go_on_with_tls(struct channel *channel)
{
    bool is_done = false;
    enum status status = tls_session_handshake(channel->tls, &is_done);
    enum status sent = encrypt(channel, span_of(NULL, 0));
    if (status != STATUS_OK || sent != STATUS_OK) {
        return status != STATUS_OK ? status : sent;
    }
    if (!is_done) {
        return STATUS_OK;
    }
    if (channel->is_websocket) {
        return start_upgrade(channel);
    }
    open_channel(channel);
    return STATUS_OK;
}

static enum status receive_tls_slice(struct channel *channel, struct span bytes)
{
    enum status status = tls_session_feed(channel->tls, bytes);
    if (status == STATUS_OK && channel->state == CHANNEL_TLS) {
        status = go_on_with_tls(channel);
    }
    uint8_t plain[TLS_RECORD_BYTES];
    while (status == STATUS_OK && !channel->is_detached &&
            (channel->state == CHANNEL_OPEN || channel->state == CHANNEL_UPGRADING)) {
        size_t n = 0;
        status = tls_session_read(channel->tls, plain, sizeof(plain), &n);
        if (n == 0) {
            break;
        }
        receive_plain(channel, span_of(plain, n));
    }
    return status;
}

static enum status receive_tls(struct channel *channel, struct span bytes)
{
    enum status status = STATUS_OK;
    while (status == STATUS_OK && bytes.length > 0 && !channel->is_detached &&
            channel->state != CHANNEL_ENDED) {
        status = receive_tls_slice(channel, take_slice(&bytes));
    }
    return status;
}

void channel_socket_received(struct channel *channel, struct span bytes)
{
    if (channel->is_detached) {
        return;
    }
    if (channel->tls == NULL) {
        receive_plain(channel, bytes);
        return;
    }
    enum status status = receive_tls(channel, bytes);
    if (status != STATUS_OK) {
        channel_end(channel, status);
    }
}

void channel_socket_drained(struct channel *channel)
{
    if (channel->is_detached || channel->state != CHANNEL_OPEN) {
        return;
    }
    if (channel->websocket != NULL) {
        enum status status = websocket_flush(channel->websocket);
        if (status != STATUS_OK) {
            channel_end(channel, status);
            return;
        }
    }
    if (!channel->is_detached && channel->state == CHANNEL_OPEN && channel_is_writable(channel)) {
        channel->events->writable(channel->context);
    }
}

static void read_addresses(struct channel *channel)
{
    int length = sizeof(channel->remote);
    uv_tcp_getpeername(&channel->tcp, (struct sockaddr *)&channel->remote, &length);
    length = sizeof(channel->local);
    uv_tcp_getsockname(&channel->tcp, (struct sockaddr *)&channel->local, &length);
}

void channel_socket_ready(struct channel *channel)
{
    read_addresses(channel);
    channel_socket_configure(channel);
    enum status status = STATUS_OK;
    if (channel->tls != NULL) {
        channel->state = CHANNEL_TLS;
        status = go_on_with_tls(channel);
    } else if (channel->is_websocket) {
        status = start_upgrade(channel);
    } else {
        open_channel(channel);
    }
    if (channel->is_detached) {
        return;
    }
    if (status != STATUS_OK) {
        channel_end(channel, status);
    } else if (!channel->is_paused && channel->state != CHANNEL_ENDED) {
        channel_socket_start_reading(channel);
    }
}

static enum status create(struct channel **out, const struct channel_options *options)
{
    struct channel *channel = memory_allocate_zeroed(sizeof(*channel));
    if (channel == NULL) {
        return STATUS_NO_MEMORY;
    }
    channel->loop = options->loop;
    channel->events = options->events;
    channel->context = options->context;
    channel->tls_context = options->tls;
    channel->is_websocket = options->is_websocket;
    enum status status = channel_socket_init(channel);
    if (status != STATUS_OK) {
        memory_free(channel);
        return status;
    }
    *out = channel;
    return STATUS_OK;
}

/* Accepted sockets start with the next turn, so that the owner has the channel before any event. */
static void on_accepted_turn(uv_timer_t *timer)
{
    struct channel *channel = (struct channel *)((char *)timer - offsetof(struct channel, timer));
    channel_socket_ready(channel);
}

static enum status start_timer(struct channel *channel)
{
    if (uv_timer_init(io_loop_uv(channel->loop), &channel->timer) != 0) {
        return STATUS_SYSTEM;
    }
    channel->is_timer_live = true;
    channel->references++;
    return STATUS_OK;
}

enum status channel_accept(
        struct channel **out, int descriptor, const struct channel_options *options)
{
    struct channel *channel;
    enum status status = create(&channel, options);
    if (status != STATUS_OK) {
        close(descriptor);
        return status;
    }
    channel->is_server = true;
    if (uv_tcp_open(&channel->tcp, descriptor) != 0) {
        close(descriptor);
        status = STATUS_SYSTEM;
        goto fail;
    }
    if (options->tls != NULL) {
        status = tls_session_create(&channel->tls, options->tls, NULL);
    }
    if (status == STATUS_OK && options->is_websocket) {
        status = websocket_upgrade_create_server(&channel->upgrade);
    }
    if (status == STATUS_OK) {
        status = start_timer(channel);
    }
    if (status != STATUS_OK) {
        goto fail;
    }
    read_addresses(channel);
    uv_timer_start(&channel->timer, on_accepted_turn, 0, 0);
    *out = channel;
    return STATUS_OK;
fail:
    channel_abort(&channel);
    return status;
}

static enum status create_layers(struct channel *channel, const struct multiaddr_endpoint *endpoint)
{
    if (channel->tls_context != NULL) {
        enum status status = tls_session_create(&channel->tls, channel->tls_context, endpoint->sni);
        if (status != STATUS_OK) {
            return status;
        }
    }
    if (!channel->is_websocket) {
        return STATUS_OK;
    }
    char host[MULTIADDR_NAME_SIZE + 16];
    bool is_ip6 = endpoint->host_kind == MULTIADDR_HOST_IP6;
    snprintf(host, sizeof(host), is_ip6 ? "[%s]:%u" : "%s:%u", endpoint->host,
            (unsigned)endpoint->port);
    return websocket_upgrade_create_client(&channel->upgrade, host);
}

enum status channel_dial(struct channel **out, const struct multiaddr_endpoint *endpoint,
        const struct channel_options *options)
{
    struct channel *channel;
    enum status status = create(&channel, options);
    if (status != STATUS_OK) {
        return status;
    }
    status = create_layers(channel, endpoint);
    if (status == STATUS_OK) {
        status = start_timer(channel);
    }
    if (status == STATUS_OK) {
        status = channel_dial_start(channel, endpoint);
    }
    if (status != STATUS_OK) {
        channel_abort(&channel);
        return status;
    }
    *out = channel;
    return STATUS_OK;
}

void channel_close(struct channel **channel_pointer)
{
    struct channel *channel = *channel_pointer;
    *channel_pointer = NULL;
    if (channel == NULL) {
        return;
    }
    bool can_send = channel->state == CHANNEL_OPEN || channel->state == CHANNEL_UPGRADING;
    channel->is_detached = true;
    channel_socket_stop_reading(channel);
    if (!can_send) {
        channel_socket_close(channel);
        return;
    }
    if (channel->websocket != NULL) {
        websocket_finish(channel->websocket);
    }
    channel_socket_linger(channel);
}

void channel_abort(struct channel **channel_pointer)
{
    struct channel *channel = *channel_pointer;
    *channel_pointer = NULL;
    if (channel != NULL) {
        channel->is_detached = true;
        channel_socket_close(channel);
    }
}

enum status channel_write(struct channel *channel, struct span bytes)
{
    assert(channel->state == CHANNEL_OPEN || channel->state == CHANNEL_ENDED);
    if (channel->state != CHANNEL_OPEN) {
        return STATUS_CLOSED;
    }
    if (channel->websocket == NULL) {
        return write_below_websocket(channel, bytes);
    }
    channel->is_corked = true;
    enum status status = websocket_write(channel->websocket, bytes);
    channel->is_corked = false;
    return status == STATUS_OK ? channel_socket_flush(channel) : status;
}

bool channel_is_writable(const struct channel *channel)
{
    return channel->state == CHANNEL_OPEN && !channel->is_writing && channel->next.length == 0;
}

void channel_pause(struct channel *channel)
{
    channel->is_paused = true;
    channel_socket_stop_reading(channel);
}

void channel_resume(struct channel *channel)
{
    channel->is_paused = false;
    bool can_read = channel->state != CHANNEL_DIALLING && channel->state != CHANNEL_ENDED;
    if (can_read && !channel->is_detached) {
        channel_socket_start_reading(channel);
    }
}

void channel_remote_address(const struct channel *channel, struct sockaddr_storage *out)
{
    *out = channel->remote;
}

void channel_local_address(const struct channel *channel, struct sockaddr_storage *out)
{
    *out = channel->local;
}
