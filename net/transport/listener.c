/* SPDX-License-Identifier: MIT */
#include "net/transport/listener.h"

#include <assert.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <unistd.h>
#include <uv.h>

#include "base/log.h"
#include "base/memory.h"
#include "base/metrics.h"
#include "net/transport/address.h"

enum {
    ACCEPTS_PER_TURN = 64, /* then the other sockets of the loop have their turn */
    EXHAUSTED_LOG_MS = 10 * 1000
};

struct listener {
    uv_poll_t poll;
    uv_timer_t backoff;
    struct io_loop *loop;
    listener_accepted *accepted;
    void *context;
    struct multiaddr_endpoint endpoint;
    uint64_t exhausted_log_ms; /* when the next line about it may be written; 0: at once */
    unsigned handles;
    int descriptor;
};

static void on_ready(uv_poll_t *poll, int status, int events);

static void on_backoff_over(uv_timer_t *timer)
{
    struct listener *listener = timer->data;
    uv_poll_start(&listener->poll, UV_READABLE, on_ready);
}

static void back_off(struct listener *listener, int error)
{
    uint64_t now_ms = io_loop_now_ms(listener->loop);
    metrics_add(METRIC_NET_ACCEPT_EXHAUSTED, 1);
    if (now_ms >= listener->exhausted_log_ms) {
        listener->exhausted_log_ms = now_ms + EXHAUSTED_LOG_MS;
        log_write(LOG_WARN, "listener",
                "cannot accept connections on port %u: %s; trying again every %d ms",
                (unsigned)listener->endpoint.port, strerror(error), LISTENER_BACKOFF_MS);
    }
    uv_poll_stop(&listener->poll);
    uv_timer_start(&listener->backoff, on_backoff_over, LISTENER_BACKOFF_MS, 0);
}

/* Errors of one connection that died in the queue: the next one may be fine (accept(2)). */
static bool is_of_one_connection(int error)
{
    return error == ECONNABORTED || error == EINTR || error == EPROTO || error == ENETDOWN ||
           error == ENOPROTOOPT || error == EHOSTDOWN || error == ENONET || error == EHOSTUNREACH ||
           error == EOPNOTSUPP || error == ENETUNREACH || error == EPERM;
}

/* False when there is nothing more to accept now. */
static bool accept_one(struct listener *listener)
{
    struct sockaddr_storage remote;
    socklen_t length = sizeof(remote);
    int descriptor = accept4(listener->descriptor, (struct sockaddr *)&remote, &length,
            SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (descriptor >= 0) {
        listener->accepted(
                listener->context, listener, descriptor, (const struct sockaddr *)&remote);
        return true;
    }
    if (is_of_one_connection(errno)) {
        return true;
    }
    if (errno != EAGAIN && errno != EWOULDBLOCK) {
        back_off(listener, errno);
    }
    return false;
}

static void on_ready(uv_poll_t *poll, int status, int events)
{
    (void)events;
    struct listener *listener = poll->data;
    if (status != 0) {
        back_off(listener, -status);
        return;
    }
    for (int i = 0; i < ACCEPTS_PER_TURN; i++) {
        if (!accept_one(listener)) {
            return;
        }
    }
}

static int open_descriptor(const struct sockaddr_storage *address)
{
    int descriptor =
            socket(address->ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_TCP);
    if (descriptor < 0) {
        return -1;
    }
    int on = 1;
    setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    if (address->ss_family == AF_INET6) {
        /* /ip6/:: and /ip4/0.0.0.0 may be listened on side by side. */
        setsockopt(descriptor, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on));
    }
    if (bind(descriptor, (const struct sockaddr *)address, address_length(address)) != 0 ||
            listen(descriptor, LISTENER_BACKLOG) != 0) {
        int error = errno;
        close(descriptor);
        errno = error;
        return -1;
    }
    return descriptor;
}

static void read_bound_address(struct listener *listener)
{
    struct sockaddr_storage bound;
    socklen_t length = sizeof(bound);
    if (getsockname(listener->descriptor, (struct sockaddr *)&bound, &length) == 0) {
        address_to_endpoint(&listener->endpoint, &bound);
    }
}

static void free_listener(struct listener *listener)
{
    if (listener->descriptor >= 0) {
        close(listener->descriptor);
    }
    memory_free(listener);
}

static void on_handle_closed(uv_handle_t *handle)
{
    struct listener *listener = handle->data;
    listener->handles--;
    if (listener->handles == 0) {
        free_listener(listener);
    }
}

static enum status start(struct listener *listener)
{
    uv_loop_t *uv = io_loop_uv(listener->loop);
    if (uv_timer_init(uv, &listener->backoff) != 0) {
        return STATUS_SYSTEM;
    }
    listener->backoff.data = listener;
    listener->handles = 1;
    if (uv_poll_init(uv, &listener->poll, listener->descriptor) != 0) {
        return STATUS_SYSTEM;
    }
    listener->poll.data = listener;
    listener->handles = 2;
    return uv_poll_start(&listener->poll, UV_READABLE, on_ready) == 0 ? STATUS_OK : STATUS_SYSTEM;
}

enum status listener_create(struct listener **out, const struct listener_options *options)
{
    struct sockaddr_storage address;
    enum status status = address_from_endpoint(&address, options->endpoint);
    if (status != STATUS_OK) {
        return status;
    }
    struct listener *listener = memory_allocate_zeroed(sizeof(*listener));
    if (listener == NULL) {
        return STATUS_NO_MEMORY;
    }
    listener->loop = options->loop;
    listener->accepted = options->accepted;
    listener->context = options->context;
    listener->endpoint = *options->endpoint;
    listener->descriptor = open_descriptor(&address);
    if (listener->descriptor < 0) {
        int why = errno;
        status = why == EADDRINUSE ? STATUS_BUSY : STATUS_SYSTEM;
        memory_free(listener);
        errno = why;
        return status;
    }
    read_bound_address(listener);
    status = start(listener);
    if (status != STATUS_OK) {
        listener_destroy(&listener);
        return status;
    }
    *out = listener;
    return STATUS_OK;
}

void listener_destroy(struct listener **listener_pointer)
{
    struct listener *listener = *listener_pointer;
    *listener_pointer = NULL;
    if (listener == NULL) {
        return;
    }
    unsigned handles = listener->handles;
    if (handles == 0) {
        free_listener(listener);
        return;
    }
    uv_close((uv_handle_t *)&listener->backoff, on_handle_closed);
    if (handles == 2) {
        uv_close((uv_handle_t *)&listener->poll, on_handle_closed);
    }
}

const struct multiaddr_endpoint *listener_endpoint(const struct listener *listener)
{
    return &listener->endpoint;
}
