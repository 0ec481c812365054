/* SPDX-License-Identifier: MIT */
#include "admin/http_request.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "admin/http_private.h"
#include "base/metrics.h"

/* Without a charset, as the reference has it: there are clients that compare all of it. */
static const char text_type[] = "text/plain";

const char *http_request_segment(const struct http_request *request, size_t i)
{
    return i < request->target.segment_count ? request->target.segments[i] : "";
}

const char *http_request_parameter(const struct http_request *request, const char *name)
{
    return http_target_find(&request->target, name);
}

const char *http_request_header(const struct http_request *request, const char *name)
{
    return MHD_lookup_connection_value(request->connection, MHD_HEADER_KIND, name);
}

bool http_request_is_head(const struct http_request *request)
{
    return request->is_head;
}

struct span http_request_body(const struct http_request *request)
{
    return span_of(request->body, request->body_length);
}

static void add_header(struct MHD_Response *response, const char *name, const char *value)
{
    (void)MHD_add_response_header(response, name, value);
}

static void add_origin_headers(const struct http_request *request, struct MHD_Response *response)
{
    const struct http_origins *origins = request->server->origins;
    const char *origin = http_request_header(request, "Origin");
    if (origin == NULL || http_origins_is_empty(origins)) {
        return;
    }
    if (http_origins_has_all(origins)) {
        add_header(response, "Access-Control-Allow-Origin", "*");
    } else {
        add_header(response, "Vary", "Origin");
        if (!http_origins_match(origins, origin)) {
            return;
        }
        add_header(response, "Access-Control-Allow-Origin", origin);
    }
    add_header(response, "Access-Control-Allow-Headers", "Content-Type");
    if (request->is_method_known && request->method == HTTP_OPTIONS) {
        add_header(response, "Access-Control-Allow-Methods", "GET, POST, PUT, DELETE, OPTIONS");
    }
}

static void count_answer(unsigned status)
{
    static const enum metric classes[] = {
            METRIC_HTTP_REQUESTS_2XX, METRIC_HTTP_REQUESTS_4XX, METRIC_HTTP_REQUESTS_5XX};
    size_t class = status >= 500 ? 2 : status >= 400 ? 1 : 0;
    metrics_add(classes[class], 1);
}

void http_request_queue(struct http_request *request, unsigned status, const char *content_type,
        struct MHD_Response *response)
{
    if (response != NULL) {
        add_header(response, "Content-Type", content_type);
        add_origin_headers(request, response);
        if (request->allow != NULL) {
            add_header(response, "Allow", request->allow);
        }
        request->queued = MHD_queue_response(request->connection, status, response);
        MHD_destroy_response(response);
    }
    request->is_answered = true;
    count_answer(status);
    http_log_answer(request, status);
}

/* The library does not write into a body that it copies or only sends. */
static void *without_const(const void *body)
{
    union {
        const void *given;
        void *taken;
    } bytes = {.given = body};
    return bytes.taken;
}

void http_respond(struct http_request *request, unsigned status, const char *content_type,
        const void *body, size_t length)
{
    http_request_queue(request, status, content_type,
            MHD_create_response_from_buffer(length, without_const(body), MHD_RESPMEM_MUST_COPY));
}

void http_respond_text(struct http_request *request, unsigned status, const char *format, ...)
{
    va_list arguments;
    char *text = NULL;
    va_start(arguments, format);
    int length = vasprintf(&text, format, arguments);
    va_end(arguments);
    if (length < 0) {
        http_respond(request, HTTP_UNAVAILABLE, text_type, "", 0);
        return;
    }
    http_respond_owned(request, status, text_type, text, (size_t)length);
}

void http_respond_owned(struct http_request *request, unsigned status, const char *content_type,
        char *body, size_t length)
{
    struct MHD_Response *response =
            MHD_create_response_from_buffer(length, body, MHD_RESPMEM_MUST_FREE);
    if (response == NULL) {
        free(body);
    }
    http_request_queue(request, status, content_type, response);
}

void http_respond_static(struct http_request *request, unsigned status, const char *content_type,
        const void *body, size_t length)
{
    http_request_queue(request, status, content_type,
            MHD_create_response_from_buffer(length, without_const(body), MHD_RESPMEM_PERSISTENT));
}

bool http_request_try_charge(struct http_request *request, size_t bytes)
{
    struct http_server *server = request->server;
    /* relaxed: only the count itself */
    size_t before = atomic_fetch_add_explicit(&server->answer_bytes, bytes, memory_order_relaxed);
    request->charged_bytes += bytes;
    return server->answer_bytes_max == 0 || before + bytes <= server->answer_bytes_max;
}

void http_request_hold(struct http_request *request)
{
    request->is_held = true;
    /* relaxed: a count; the request itself goes through queues */
    atomic_fetch_add_explicit(&request->server->held, 1, memory_order_relaxed);
}

void http_request_resume(struct http_request *request, http_continuation *next, void *context)
{
    struct http_server *server = request->server;
    request->next = next;
    request->next_context = context;
    inbox_push(server->resumed, &request->link);
    http_server_wake(server);
}
