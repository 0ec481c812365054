/* SPDX-License-Identifier: MIT */
#include <assert.h>
#include <netdb.h>
#include <stdio.h>

#include "base/memory.h"
#include "net/transport/address.h"
#include "net/transport/channel_private.h"

enum {
    ATTEMPT_MS = 3000 /* for one address while others are left */
};

/* Alive while the channel dials; a request that libuv still runs keeps it longer. */
struct channel_dial {
    struct channel *channel; /* NULL once cancelled */
    uv_getaddrinfo_t resolve;
    uv_connect_t connect;
    struct addrinfo *addresses;
    struct addrinfo *next;
    struct sockaddr_storage numeric;
    struct addrinfo numeric_entry;
    enum status failure; /* of the last attempt */
    bool is_busy;        /* libuv runs a request */
};

static void connect_next(struct channel_dial *dial);

static void free_dial(struct channel_dial *dial)
{
    if (dial->addresses != NULL) {
        uv_freeaddrinfo(dial->addresses);
    }
    memory_free(dial);
}

void channel_dial_cancel(struct channel *channel)
{
    struct channel_dial *dial = channel->dial;
    channel->dial = NULL;
    if (dial == NULL) {
        return;
    }
    dial->channel = NULL;
    if (!dial->is_busy) {
        free_dial(dial);
        return;
    }
    /* A connect request ends when its handle closes, a resolve request in its own time. */
    uv_cancel((uv_req_t *)&dial->resolve);
}

static void finish_dial(struct channel_dial *dial, enum status status)
{
    struct channel *channel = dial->channel;
    if (channel->is_timer_live) {
        uv_timer_stop(&channel->timer);
    }
    channel->dial = NULL;
    free_dial(dial);
    if (status == STATUS_OK) {
        channel_socket_ready(channel);
    } else {
        channel_end(channel, status);
    }
}

/* The failed handle is closed and a new one made in its place for the next address. */
static void on_attempt_closed(uv_handle_t *handle)
{
    struct channel *channel = handle->data;
    if (channel->is_closing || channel->dial == NULL) {
        channel_drop_reference(channel);
        return;
    }
    enum status status = channel_socket_init(channel);
    if (status != STATUS_OK) {
        finish_dial(channel->dial, status);
    } else {
        connect_next(channel->dial);
    }
    channel_drop_reference(channel);
}

static void give_up_attempt(struct channel_dial *dial, enum status failure)
{
    dial->failure = failure;
    if (dial->next == NULL) {
        finish_dial(dial, failure);
        return;
    }
    uv_handle_t *handle = (uv_handle_t *)&dial->channel->tcp;
    if (!uv_is_closing(handle)) {
        uv_close(handle, on_attempt_closed);
    }
}

static void on_connected(uv_connect_t *request, int result)
{
    struct channel_dial *dial =
            (struct channel_dial *)((char *)request - offsetof(struct channel_dial, connect));
    dial->is_busy = false;
    if (dial->channel == NULL) {
        free_dial(dial);
        return;
    }
    if (result == UV_ECANCELED) {
        return; /* the attempt's time was up; on_attempt_closed goes on */
    }
    if (result != 0) {
        give_up_attempt(dial, STATUS_UNREACHABLE);
        return;
    }
    finish_dial(dial, STATUS_OK);
}

static void on_attempt_late(uv_timer_t *timer)
{
    struct channel *channel = (struct channel *)((char *)timer - offsetof(struct channel, timer));
    if (channel->dial != NULL && channel->dial->next != NULL) {
        give_up_attempt(channel->dial, STATUS_TIMED_OUT);
    }
}

static void connect_next(struct channel_dial *dial)
{
    struct channel *channel = dial->channel;
    struct addrinfo *entry = dial->next;
    dial->next = entry->ai_next;
    int result = uv_tcp_connect(&dial->connect, &channel->tcp, entry->ai_addr, on_connected);
    if (result != 0) {
        give_up_attempt(dial, STATUS_UNREACHABLE);
        return;
    }
    dial->is_busy = true;
    if (dial->next != NULL) {
        uv_timer_start(&channel->timer, on_attempt_late, ATTEMPT_MS, 0);
    }
}

static void on_resolved(uv_getaddrinfo_t *request, int result, struct addrinfo *addresses)
{
    struct channel_dial *dial =
            (struct channel_dial *)((char *)request - offsetof(struct channel_dial, resolve));
    dial->is_busy = false;
    dial->addresses = addresses;
    if (dial->channel == NULL) {
        free_dial(dial);
        return;
    }
    if (result != 0 || addresses == NULL) {
        finish_dial(dial, STATUS_UNREACHABLE);
        return;
    }
    dial->next = addresses;
    connect_next(dial);
}

static int family_of(enum multiaddr_host kind)
{
    switch (kind) {
    case MULTIADDR_HOST_IP4:
    case MULTIADDR_HOST_DNS4:
        return AF_INET;
    case MULTIADDR_HOST_IP6:
    case MULTIADDR_HOST_DNS6:
        return AF_INET6;
    case MULTIADDR_HOST_DNS:
        break;
    }
    return AF_UNSPEC;
}

static enum status resolve(struct channel_dial *dial, const struct multiaddr_endpoint *endpoint)
{
    char port[8];
    snprintf(port, sizeof(port), "%u", (unsigned)endpoint->port);
    struct addrinfo hints = {
            .ai_family = family_of(endpoint->host_kind), .ai_socktype = SOCK_STREAM};
    int result = uv_getaddrinfo(io_loop_uv(dial->channel->loop), &dial->resolve, on_resolved,
            endpoint->host, port, &hints);
    if (result != 0) {
        return STATUS_UNREACHABLE;
    }
    dial->is_busy = true;
    return STATUS_OK;
}

static enum status connect_numeric(struct channel_dial *dial)
{
    dial->numeric_entry = (struct addrinfo){
            .ai_addr = (struct sockaddr *)&dial->numeric,
            .ai_addrlen = address_length(&dial->numeric),
    };
    int result = uv_tcp_connect(&dial->connect, &dial->channel->tcp,
            (const struct sockaddr *)&dial->numeric, on_connected);
    if (result != 0) {
        return STATUS_UNREACHABLE;
    }
    dial->is_busy = true;
    return STATUS_OK;
}

enum status channel_dial_start(struct channel *channel, const struct multiaddr_endpoint *endpoint)
{
    struct channel_dial *dial = memory_allocate_zeroed(sizeof(*dial));
    if (dial == NULL) {
        return STATUS_NO_MEMORY;
    }
    dial->channel = channel;
    enum status status = address_from_endpoint(&dial->numeric, endpoint);
    status = status == STATUS_OK ? connect_numeric(dial) : resolve(dial, endpoint);
    if (status != STATUS_OK) {
        memory_free(dial);
        return status;
    }
    channel->dial = dial;
    return STATUS_OK;
}
