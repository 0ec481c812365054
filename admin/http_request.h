/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * One request and its answer.
 *
 * Thread:    the server's, but for http_request_resume.
 * Ownership: a request lives until it is answered or a stream that it became has ended; what accessors
 *            return lives as long.
 */

#include <stdbool.h>
#include <stddef.h>

#include "base/attributes.h"
#include "base/span.h"

struct http_request;

enum http_method {
    HTTP_GET,
    HTTP_POST,
    HTTP_PUT,
    HTTP_DELETE,
    HTTP_OPTIONS, /* answered by the server itself for every path that it has */
    HTTP_METHODS
};

enum http_status {
    HTTP_OK = 200,
    HTTP_BAD_REQUEST = 400,
    HTTP_FORBIDDEN = 403,
    HTTP_NOT_FOUND = 404,
    HTTP_METHOD_NOT_ALLOWED = 405,
    HTTP_PRECONDITION_FAILED = 412,
    HTTP_CONTENT_TOO_LARGE = 413,
    HTTP_TOO_MANY_REQUESTS = 429,
    HTTP_INTERNAL_ERROR = 500,
    HTTP_UNAVAILABLE = 503,
    HTTP_GATEWAY_TIMEOUT = 504,
};

/* The i-th segment of the path, decoded; "" behind the last. */
const char *BORROWED http_request_segment(const struct http_request *request, size_t i);

/* A parameter of the query, decoded; NULL when it is not there. */
const char *BORROWED http_request_parameter(const struct http_request *request, const char *name);

/* A header; NULL when it is not there. */
const char *BORROWED http_request_header(const struct http_request *request, const char *name);

/* HEAD: handled as GET is, whose body is not sent. What GET takes away must stay then. */
bool http_request_is_head(const struct http_request *request);

struct span http_request_body(const struct http_request *request);

/* Exactly one of these, once; body is copied, and text/plain when a function does not say. */
void http_respond(struct http_request *request, unsigned status, const char *content_type,
        const void *body, size_t length);
void http_respond_text(struct http_request *request, unsigned status, const char *format, ...)
        __attribute__((format(printf, 3, 4)));

/* body came from malloc and is freed when it is sent. */
void http_respond_owned(struct http_request *request, unsigned status, const char *content_type,
        char *CONSUMED body, size_t length);

/* body outlives the server: pages that are part of the program. */
void http_respond_static(struct http_request *request, unsigned status, const char *content_type,
        const void *body, size_t length);

/*
 * Counts bytes of an answer that is being made until it is sent or its client is gone. False: all answers
 * together are as large as they may be, since their clients do not read. Thread: whose the request is,
 * the one that makes the answer of a held one.
 */
MUST_USE bool http_request_try_charge(struct http_request *request, size_t bytes);

/*
 * For an answer that comes later: the handler calls hold, has somebody do the work, and returns. That
 * somebody calls resume, on any thread and exactly once; then next runs on the server's thread, and
 * responds or holds again. Everybody who holds a request must resume it in bounded time: the client
 * waits, and so does the server's end.
 */
void http_request_hold(struct http_request *request);

typedef void http_continuation(void *context, struct http_request *request);
void http_request_resume(struct http_request *request, http_continuation *next, void *context);
