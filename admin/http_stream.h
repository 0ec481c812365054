/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * An answer without an end: what is pushed is sent as it comes (server-sent events). What one client
 * has not read yet is bounded; beyond that a push is refused, and the caller counts what was lost.
 *
 *                    server's thread   any thread
 *   open                   x
 *   try_push, close        x               x
 *   is_open                x               x
 *
 * Ownership: open returns a stream with two references, one of them the server's own; close gives back
 *            the caller's. A client that goes away ends the stream, after which pushes are refused
 *            and is_open is false; the caller closes it all the same. It must be closed, by whoever
 *            pushes, before the server is destroyed.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "admin/http_request.h"
#include "base/attributes.h"
#include "base/status.h"

struct http_stream;

struct http_stream_options {
    const char *content_type; /* such as "text/event-stream" */
    size_t queue_bytes_max;   /* of what was pushed and is not sent yet */
    /*
     * Sent by the server when nothing else was for so long, so that a client that is gone is noticed
     * (": \n\n" is a comment of server-sent events). NULL: nothing.
     */
    const char *keep_alive; /* outlives the stream */
    uint64_t keep_alive_ms;
};

/* Answers the request with 200. STATUS_NO_MEMORY: it is answered with 503 instead. */
MUST_USE enum status http_stream_open(struct http_stream **out, struct http_request *request,
        const struct http_stream_options *options);

/*
 * Copies the bytes. False: there is no room for all of them, or the client is gone. The server's
 * thread is woken by http_stream_wake, once after one or several pushes to streams of one server.
 */
MUST_USE bool http_stream_try_push(struct http_stream *stream, const void *bytes, size_t length);
void http_stream_wake(struct http_stream *stream);
bool http_stream_is_open(const struct http_stream *stream);

/* What was pushed is still sent, then the client sees the end. */
void http_stream_close(struct http_stream **stream);
