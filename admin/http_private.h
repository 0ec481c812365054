/* SPDX-License-Identifier: MIT */
#pragma once

/* The inside of the HTTP server, for admin/http_*.c only. */

#include <microhttpd.h>
#include <stdatomic.h>

#include "admin/http_origins.h"
#include "admin/http_server.h"
#include "admin/http_stream.h"
#include "admin/http_target.h"
#include "queues/inbox.h"

enum {
    HTTP_TABLES_MAX = 16,
    HTTP_HEAD_BYTES_MAX = 64 * 1024, /* of a connection: request line, headers, and its buffers */
    HTTP_DRAIN_BYTES_MAX = 32 * 1024 * 1024, /* of a refused body, so that its sender reads why */
    HTTP_BODIES_SHARE = 8                    /* bodies of all requests: so many of the largest */
};

struct http_table {
    const struct http_route *routes;
    size_t count;
    void *context;
};

/* One line a minute for each path at most at INFO, with the number of the others; those at DEBUG. */
enum {
    HTTP_LOG_PATHS = 64
};

struct http_log_path {
    uint64_t next_ns;
    uint64_t others;
};

struct http_server {
    struct MHD_Daemon *daemon;
    int epoll;
    int wake;
    bool has_events;
    bool is_quiesced;
    size_t body_bytes_max;
    size_t bodies_bytes; /* of all requests at this moment */
    struct http_origins *origins;
    struct http_table tables[HTTP_TABLES_MAX];
    size_t answer_bytes_max;
    atomic_size_t answer_bytes; /* charged by requests that are not over */
    bool logs_requests;
    struct http_log_path log_paths[HTTP_LOG_PATHS];
    size_t table_count;
    struct http_stream *streams; /* those that are open */
    uint64_t next_keep_alive_ns;
    struct inbox *resumed;  /* requests, by their link */
    struct inbox *readable; /* streams, by theirs */
    atomic_size_t held;
    atomic_bool is_closing;
};

enum http_refusal {
    HTTP_TAKEN,
    HTTP_BODY_TOO_LARGE,
    HTTP_NO_ROOM
};

struct http_request {
    struct inbox_link link; /* first: what the inbox gives back is the request */
    struct http_server *server;
    struct MHD_Connection *connection;
    struct http_target target;
    enum status target_status;
    enum http_method method;
    bool is_head_taken;
    bool is_method_known;
    bool is_head; /* HEAD: GET's route, and nothing may change by it */
    bool is_answered;
    bool is_held;
    enum MHD_Result queued;
    enum http_refusal refusal;
    char *body;
    size_t body_length;
    size_t body_room;
    size_t drained_bytes;
    size_t charged_bytes; /* of server->answer_bytes; who makes the answer changes it */
    http_continuation *next;
    void *next_context;
    const char *allow; /* header of a 405 */
};

/* admin/http_log.c */
void http_log_answer(struct http_request *request, unsigned status);

/* Queues the response, which it takes over, with the headers that every answer has. */
void http_request_queue(struct http_request *request, unsigned status, const char *content_type,
        struct MHD_Response *CONSUMED response);

/* Streams that have something to send, or whose time has come. */
size_t http_streams_turn(struct http_server *server);
/* Monotonic time of the next keep-alive; UINT64_MAX: none. */
uint64_t http_streams_deadline(const struct http_server *server);
void http_streams_end(struct http_server *server);
