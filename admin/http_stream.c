/* SPDX-License-Identifier: MIT */
#include "admin/http_stream.h"

#include <stdlib.h>
#include <string.h>

#include "admin/http_private.h"
#include "base/clock.h"

struct chunk {
    struct inbox_link link;
    size_t length;
    size_t sent;
    char bytes[];
};

struct http_stream {
    struct inbox_link link; /* first; in server->readable while is_signalled */
    struct http_server *server;
    struct MHD_Connection *connection; /* server's thread; NULL when it is over */
    struct inbox *chunks;
    struct chunk *current;
    const char *keep_alive;
    size_t keep_alive_left; /* bytes of it that are still to be sent */
    uint64_t keep_alive_ns;
    uint64_t due_ns;
    size_t queue_bytes_max;
    bool is_suspended;
    struct http_stream *next; /* of server->streams */
    atomic_size_t queued_bytes;
    atomic_uint references;
    atomic_bool is_signalled;
    atomic_bool is_open;
    atomic_bool is_closed; /* by its pusher */
};

static void free_chunks(struct http_stream *stream)
{
    struct inbox_link *link;
    free(stream->current);
    while (stream->chunks != NULL && (link = inbox_try_pop(stream->chunks)) != NULL) {
        free((struct chunk *)link);
    }
}

static void unref(struct http_stream *stream)
{
    /* acq_rel: whoever drops the last reference has seen every other holder finish */
    if (atomic_fetch_sub_explicit(&stream->references, 1, memory_order_acq_rel) > 1) {
        return;
    }
    free_chunks(stream);
    inbox_destroy(&stream->chunks);
    free(stream);
}

static struct chunk *take_chunk(struct http_stream *stream)
{
    if (stream->current == NULL) {
        stream->current = (struct chunk *)inbox_try_pop(stream->chunks);
    }
    return stream->current;
}

static size_t send_chunk(struct http_stream *stream, struct chunk *chunk, char *out, size_t room)
{
    size_t length = chunk->length - chunk->sent;
    length = length < room ? length : room;
    memcpy(out, chunk->bytes + chunk->sent, length);
    chunk->sent += length;
    if (chunk->sent == chunk->length) {
        stream->current = NULL;
        /* relaxed: the bytes themselves went through the inbox */
        atomic_fetch_sub_explicit(&stream->queued_bytes, chunk->length, memory_order_relaxed);
        free(chunk);
    }
    return length;
}

static size_t send_keep_alive(struct http_stream *stream, char *out, size_t room)
{
    size_t length = stream->keep_alive_left < room ? stream->keep_alive_left : room;
    size_t whole = strlen(stream->keep_alive);
    memcpy(out, stream->keep_alive + (whole - stream->keep_alive_left), length);
    stream->keep_alive_left -= length;
    return length;
}

static bool has_ended(const struct http_stream *stream)
{
    /* acquire: what was pushed before is seen by the look at the chunks that follows */
    return atomic_load_explicit(&stream->is_closed, memory_order_acquire) ||
           atomic_load_explicit(&stream->server->is_closing, memory_order_acquire);
}

/* Called by the library when the client has room. */
static ssize_t read_stream(void *context, uint64_t position, char *out, size_t room)
{
    struct http_stream *stream = context;
    (void)position;
    if (stream->current == NULL && stream->keep_alive_left > 0) {
        return (ssize_t)send_keep_alive(stream, out, room);
    }
    bool is_over = has_ended(stream);
    struct chunk *chunk = take_chunk(stream);
    if (chunk != NULL) {
        stream->due_ns = clock_monotonic_ns() + stream->keep_alive_ns;
        return (ssize_t)send_chunk(stream, chunk, out, room);
    }
    if (is_over && inbox_is_empty(stream->chunks)) {
        return MHD_CONTENT_READER_END_OF_STREAM;
    }
    stream->is_suspended = true;
    MHD_suspend_connection(stream->connection);
    return 0;
}

/* The connection is over, one way or the other. */
static void release_stream(void *context)
{
    struct http_stream *stream = context;
    struct http_stream **place = &stream->server->streams;
    while (*place != NULL && *place != stream) {
        place = &(*place)->next;
    }
    if (*place == stream) {
        *place = stream->next;
    }
    stream->connection = NULL;
    stream->is_suspended = false;
    /* relaxed: who pushes once more pushes in vain, no more */
    atomic_store_explicit(&stream->is_open, false, memory_order_relaxed);
    unref(stream);
}

static struct http_stream *make_stream(
        struct http_request *request, const struct http_stream_options *options)
{
    struct http_stream *stream = calloc(1, sizeof(*stream));
    if (stream == NULL) {
        return NULL;
    }
    if (inbox_create(&stream->chunks) != STATUS_OK) {
        free(stream);
        return NULL;
    }
    stream->server = request->server;
    stream->connection = request->connection;
    stream->queue_bytes_max = options->queue_bytes_max;
    stream->keep_alive = options->keep_alive != NULL ? options->keep_alive : "";
    stream->keep_alive_ns = options->keep_alive_ms * NANOSECONDS_PER_MILLISECOND;
    stream->due_ns = clock_monotonic_ns() + stream->keep_alive_ns;
    atomic_init(&stream->queued_bytes, 0);
    atomic_init(&stream->references, 2);
    atomic_init(&stream->is_signalled, false);
    atomic_init(&stream->is_open, true);
    atomic_init(&stream->is_closed, false);
    return stream;
}

enum status http_stream_open(struct http_stream **out, struct http_request *request,
        const struct http_stream_options *options)
{
    enum {
        BLOCK = 4096
    };
    struct http_stream *stream = make_stream(request, options);
    struct MHD_Response *response = NULL;
    if (stream != NULL) {
        response = MHD_create_response_from_callback(
                MHD_SIZE_UNKNOWN, BLOCK, read_stream, stream, release_stream);
    }
    if (response == NULL) {
        if (stream != NULL) {
            unref(stream);
            unref(stream);
        }
        http_respond_text(request, HTTP_UNAVAILABLE, "out of memory");
        return STATUS_NO_MEMORY;
    }
    stream->next = request->server->streams;
    request->server->streams = stream;
    (void)MHD_add_response_header(response, "Cache-Control", "no-cache");
    http_request_queue(request, HTTP_OK, options->content_type, response);
    *out = stream;
    return STATUS_OK;
}

/* False when the queue would hold more than it may. */
static bool try_charge(struct http_stream *stream, size_t length)
{
    /* relaxed: only the count itself */
    size_t now = atomic_load_explicit(&stream->queued_bytes, memory_order_relaxed);
    /* Ends because a failure means that another thread's charge got through. */
    while (length <= stream->queue_bytes_max && now <= stream->queue_bytes_max - length) {
        if (atomic_compare_exchange_weak_explicit(&stream->queued_bytes, &now, now + length,
                    memory_order_relaxed, memory_order_relaxed)) {
            return true;
        }
    }
    return false;
}

bool http_stream_try_push(struct http_stream *stream, const void *bytes, size_t length)
{
    if (!http_stream_is_open(stream) || !try_charge(stream, length)) {
        return false;
    }
    struct chunk *chunk = malloc(sizeof(*chunk) + length);
    if (chunk == NULL) {
        atomic_fetch_sub_explicit(&stream->queued_bytes, length, memory_order_relaxed);
        return false;
    }
    chunk->length = length;
    chunk->sent = 0;
    memcpy(chunk->bytes, bytes, length);
    inbox_push(stream->chunks, &chunk->link);
    return true;
}

void http_stream_wake(struct http_stream *stream)
{
    /* acq_rel: the server that takes the signal sees what was pushed before it */
    if (atomic_exchange_explicit(&stream->is_signalled, true, memory_order_acq_rel)) {
        return;
    }
    /* relaxed: the caller's own reference keeps it meanwhile */
    atomic_fetch_add_explicit(&stream->references, 1, memory_order_relaxed);
    inbox_push(stream->server->readable, &stream->link);
    http_server_wake(stream->server);
}

bool http_stream_is_open(const struct http_stream *stream)
{
    /* relaxed: it may end at any moment after */
    return atomic_load_explicit(&stream->is_open, memory_order_relaxed);
}

void http_stream_close(struct http_stream **stream_pointer)
{
    struct http_stream *stream = *stream_pointer;
    if (stream == NULL) {
        return;
    }
    *stream_pointer = NULL;
    /* release: the server that sees it sees everything that was pushed */
    atomic_store_explicit(&stream->is_closed, true, memory_order_release);
    http_stream_wake(stream);
    unref(stream);
}

static void resume(struct http_stream *stream)
{
    if (stream->is_suspended) {
        stream->is_suspended = false;
        MHD_resume_connection(stream->connection);
    }
}

static size_t take_signals(struct http_server *server)
{
    size_t count = 0;
    struct inbox_link *link;
    while ((link = inbox_try_pop(server->readable)) != NULL) {
        struct http_stream *stream = (struct http_stream *)link;
        /* acq_rel: a push after this signals anew, one before it is seen by the reader */
        (void)atomic_exchange_explicit(&stream->is_signalled, false, memory_order_acq_rel);
        resume(stream);
        unref(stream);
        count++;
    }
    return count;
}

static void keep_alive(struct http_server *server, uint64_t now)
{
    for (struct http_stream *stream = server->streams; stream != NULL; stream = stream->next) {
        if (stream->keep_alive_ns == 0 || now < stream->due_ns) {
            continue;
        }
        stream->due_ns = now + stream->keep_alive_ns;
        if (stream->is_suspended) {
            stream->keep_alive_left = strlen(stream->keep_alive);
            resume(stream);
        }
    }
}

uint64_t http_streams_deadline(const struct http_server *server)
{
    uint64_t deadline = UINT64_MAX;
    for (const struct http_stream *stream = server->streams; stream != NULL;
            stream = stream->next) {
        if (stream->keep_alive_ns != 0 && stream->due_ns < deadline) {
            deadline = stream->due_ns;
        }
    }
    return deadline;
}

size_t http_streams_turn(struct http_server *server)
{
    size_t count = take_signals(server);
    if (server->streams != NULL) {
        keep_alive(server, clock_monotonic_ns());
    }
    return count;
}

void http_streams_end(struct http_server *server)
{
    for (struct http_stream *stream = server->streams; stream != NULL; stream = stream->next) {
        resume(stream);
    }
}
