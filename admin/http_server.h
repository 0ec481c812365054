/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * An HTTP/1.1 server for an operator's programs: the REST API, metrics, the live page. One thread
 * drives it, through the hooks below, and calls every handler; what takes time is done elsewhere and
 * answered later (http_request_hold).
 *
 * Limits:    connections, bytes of a request's head and body, time without traffic; all of them options.
 * Lifetime:  create (binds the port), add routes, turn..., close, turn until held is 0, destroy.
 * Thread:    create and destroy on one thread, turn and wait on the server's own, http_server_close,
 *            http_server_held and http_server_wake on any.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "admin/http_request.h"
#include "base/attributes.h"
#include "base/status.h"

struct http_server;

struct http_server_options {
    const char *address; /* IPv4 or IPv6, as text */
    uint16_t port;       /* 0: any that is free */
    size_t connections_max;
    size_t body_bytes_max;
    uint32_t idle_timeout_s; /* a connection without traffic is closed */
    /*
     * Origins of web pages that may read answers (CORS): "*", or patterns in which '*' stands for any
     * text and '?' for one character at most, with or without scheme. With at least one, a request of
     * another origin is refused (403). Read now, not kept.
     */
    const char *const *allowed_origins;
    size_t allowed_origin_count;
    size_t answer_bytes_max; /* see http_request_try_charge; 0: no bound */
    bool logs_requests;      /* at INFO a line a minute for each path; otherwise all at DEBUG */
};

/* On the server's thread. It responds, opens a stream (http_stream.h) or holds the request. */
typedef void http_handler(void *context, struct http_request *request);

/* pattern: as http_target_matches. The first route that fits is taken; HEAD goes to GET's. */
struct http_route {
    enum http_method method;
    const char *pattern;
    http_handler *handler;
};

/* Whether it is an IPv4 or IPv6 address. */
bool http_server_takes_address(const char *text);

/* STATUS_BAD_ADDRESS, STATUS_SYSTEM: the port cannot be bound (errno says why). */
MUST_USE enum status http_server_create(
        struct http_server **out, const struct http_server_options *options);

/* No request may be held. Open streams end. */
void http_server_destroy(struct http_server **server);

/* Before the first turn. routes must outlive the server; there is room for 16 tables. */
void http_server_add_routes(
        struct http_server *server, const struct http_route *routes, size_t count, void *context);

/* The port that is listened on. */
uint16_t http_server_port(const struct http_server *server);

/* The hooks of a worker (workers/worker.h). */
size_t http_server_turn(struct http_server *server);
void http_server_wait(struct http_server *server, uint64_t timeout_ns);
void http_server_wake(struct http_server *server);

/* No connection is taken any more, requests that still come are answered with 503, streams end. */
void http_server_close(struct http_server *server);

/* Requests that wait for their answer. */
size_t http_server_held(const struct http_server *server);
