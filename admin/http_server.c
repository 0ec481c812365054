/* SPDX-License-Identifier: MIT */
#include "admin/http_server.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "admin/http_exchange.h"
#include "admin/http_private.h"
#include "base/clock.h"
#include "base/log.h"

/* What the library has to say is about single clients. */
static void log_library(void *context, const char *format, va_list arguments)
        __attribute__((format(printf, 2, 0)));
static void log_library(void *context, const char *format, va_list arguments)
{
    char line[256];
    (void)context;
    vsnprintf(line, sizeof(line), format, arguments);
    line[strcspn(line, "\n")] = '\0';
    log_write(LOG_DEBUG, "http", "%s", line);
}

static bool parse_address(struct sockaddr_storage *out, const char *text, uint16_t port)
{
    struct sockaddr_in *four = (struct sockaddr_in *)out;
    struct sockaddr_in6 *six = (struct sockaddr_in6 *)out;
    memset(out, 0, sizeof(*out));
    if (inet_pton(AF_INET, text, &four->sin_addr) == 1) {
        four->sin_family = AF_INET;
        four->sin_port = htons(port);
        return true;
    }
    if (inet_pton(AF_INET6, text, &six->sin6_addr) == 1) {
        six->sin6_family = AF_INET6;
        six->sin6_port = htons(port);
        return true;
    }
    return false;
}

bool http_server_takes_address(const char *text)
{
    struct sockaddr_storage address;
    return parse_address(&address, text, 0);
}

static enum status start_daemon(
        struct http_server *server, const struct http_server_options *options)
{
    struct sockaddr_storage address;
    if (!parse_address(&address, options->address, options->port)) {
        return STATUS_BAD_ADDRESS;
    }
    unsigned flags = MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ERROR_LOG;
    flags |= address.ss_family == AF_INET6 ? MHD_USE_IPv6 : 0;
    errno = 0;
    server->daemon = MHD_start_daemon(flags, 0, NULL, NULL, http_exchange_access, server,
            MHD_OPTION_EXTERNAL_LOGGER, log_library, NULL, MHD_OPTION_SOCK_ADDR,
            (struct sockaddr *)&address, MHD_OPTION_URI_LOG_CALLBACK, http_exchange_begin, server,
            MHD_OPTION_NOTIFY_COMPLETED, http_exchange_end, server,
            MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)HTTP_HEAD_BYTES_MAX,
            MHD_OPTION_CONNECTION_LIMIT, (unsigned)options->connections_max,
            MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)options->idle_timeout_s, MHD_OPTION_END);
    return server->daemon != NULL ? STATUS_OK : STATUS_SYSTEM;
}

static enum status watch(struct http_server *server, int fd)
{
    struct epoll_event event = {.events = EPOLLIN, .data = {.fd = fd}};
    return epoll_ctl(server->epoll, EPOLL_CTL_ADD, fd, &event) == 0 ? STATUS_OK : STATUS_SYSTEM;
}

static enum status start_watching(struct http_server *server)
{
    server->epoll = epoll_create1(EPOLL_CLOEXEC);
    server->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (server->epoll < 0 || server->wake < 0) {
        return STATUS_SYSTEM;
    }
    const union MHD_DaemonInfo *info =
            MHD_get_daemon_info(server->daemon, MHD_DAEMON_INFO_EPOLL_FD);
    enum status status = info != NULL ? watch(server, info->epoll_fd) : STATUS_SYSTEM;
    return status == STATUS_OK ? watch(server, server->wake) : status;
}

static enum status assemble(struct http_server *server, const struct http_server_options *options)
{
    enum status status = inbox_create(&server->resumed);
    if (status == STATUS_OK) {
        status = inbox_create(&server->readable);
    }
    if (status == STATUS_OK) {
        status = http_origins_create(
                &server->origins, options->allowed_origins, options->allowed_origin_count);
    }
    if (status == STATUS_OK) {
        status = start_daemon(server, options);
    }
    return status == STATUS_OK ? start_watching(server) : status;
}

enum status http_server_create(struct http_server **out, const struct http_server_options *options)
{
    struct http_server *server = calloc(1, sizeof(*server));
    if (server == NULL) {
        return STATUS_NO_MEMORY;
    }
    server->epoll = -1;
    server->wake = -1;
    server->body_bytes_max = options->body_bytes_max;
    server->answer_bytes_max = options->answer_bytes_max;
    server->logs_requests = options->logs_requests;
    atomic_init(&server->answer_bytes, 0);
    atomic_init(&server->held, 0);
    atomic_init(&server->is_closing, false);
    enum status status = assemble(server, options);
    if (status != STATUS_OK) {
        int why = errno;
        http_server_destroy(&server);
        errno = why;
        return status;
    }
    *out = server;
    return STATUS_OK;
}

void http_server_destroy(struct http_server **server_pointer)
{
    struct http_server *server = *server_pointer;
    if (server == NULL) {
        return;
    }
    assert(http_server_held(server) == 0);
    if (server->daemon != NULL) {
        http_server_close(server);
        (void)http_server_turn(server); /* nothing may be suspended when the library ends */
        MHD_stop_daemon(server->daemon);
        (void)http_streams_turn(server); /* signals that came meanwhile */
    }
    http_origins_destroy(&server->origins);
    inbox_destroy(&server->resumed);
    inbox_destroy(&server->readable);
    if (server->epoll >= 0) {
        close(server->epoll);
    }
    if (server->wake >= 0) {
        close(server->wake);
    }
    free(server);
    *server_pointer = NULL;
}

void http_server_add_routes(
        struct http_server *server, const struct http_route *routes, size_t count, void *context)
{
    assert(server->table_count < HTTP_TABLES_MAX);
    server->tables[server->table_count++] =
            (struct http_table){.routes = routes, .count = count, .context = context};
}

uint16_t http_server_port(const struct http_server *server)
{
    const union MHD_DaemonInfo *info =
            MHD_get_daemon_info(server->daemon, MHD_DAEMON_INFO_BIND_PORT);
    return info != NULL ? info->port : 0;
}

static void quiesce(struct http_server *server)
{
    if (!server->is_quiesced) {
        MHD_socket listener = MHD_quiesce_daemon(server->daemon);
        server->is_quiesced = true;
        if (listener != MHD_INVALID_SOCKET) {
            close(listener);
        }
    }
    http_streams_end(server);
}

static size_t take_resumed(struct http_server *server)
{
    size_t count = 0;
    struct inbox_link *link;
    while ((link = inbox_try_pop(server->resumed)) != NULL) {
        struct http_request *request = (struct http_request *)link;
        /* relaxed: a count */
        atomic_fetch_sub_explicit(&server->held, 1, memory_order_relaxed);
        MHD_resume_connection(request->connection);
        count++;
    }
    return count;
}

size_t http_server_turn(struct http_server *server)
{
    uint64_t wakes;
    size_t done = server->has_events ? 1 : 0;
    server->has_events = false;
    (void)!read(server->wake, &wakes, sizeof(wakes));
    done += take_resumed(server);
    done += http_streams_turn(server);
    /* acquire: pairs with the release in http_server_close */
    if (atomic_load_explicit(&server->is_closing, memory_order_acquire)) {
        quiesce(server);
    }
    (void)MHD_run(server->daemon);
    return done;
}

void http_server_wait(struct http_server *server, uint64_t timeout_ns)
{
    enum {
        WAIT_MAX_MS = 60000
    };
    struct epoll_event events[2];
    MHD_UNSIGNED_LONG_LONG library_ms;
    uint64_t wait_ms = timeout_ns / NANOSECONDS_PER_MILLISECOND;
    if (MHD_get_timeout(server->daemon, &library_ms) == MHD_YES && library_ms < wait_ms) {
        wait_ms = library_ms;
    }
    uint64_t deadline = http_streams_deadline(server);
    uint64_t now = clock_monotonic_ns();
    if (deadline != UINT64_MAX) {
        uint64_t left_ms = deadline > now ? (deadline - now) / NANOSECONDS_PER_MILLISECOND + 1 : 0;
        wait_ms = left_ms < wait_ms ? left_ms : wait_ms;
    }
    wait_ms = wait_ms < WAIT_MAX_MS ? wait_ms : WAIT_MAX_MS;
    server->has_events = epoll_wait(server->epoll, events, 2, (int)wait_ms) > 0;
}

void http_server_wake(struct http_server *server)
{
    static const uint64_t one = 1;
    (void)!write(server->wake, &one, sizeof(one));
}

void http_server_close(struct http_server *server)
{
    /* release: pairs with the acquire in http_server_turn and of the streams */
    atomic_store_explicit(&server->is_closing, true, memory_order_release);
    http_server_wake(server);
}

size_t http_server_held(const struct http_server *server)
{
    /* relaxed: a count */
    return atomic_load_explicit(&server->held, memory_order_relaxed);
}
