/* SPDX-License-Identifier: MIT */
#include "admin/http_exchange.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "admin/http_private.h"
#include "base/log.h"
#include "base/metrics.h"

static const struct {
    const char *name;
    enum http_method method;
} method_names[] = {{"GET", HTTP_GET}, {"HEAD", HTTP_GET}, {"POST", HTTP_POST}, {"PUT", HTTP_PUT},
        {"DELETE", HTTP_DELETE}, {"OPTIONS", HTTP_OPTIONS}};

void *http_exchange_begin(void *context, const char *uri, struct MHD_Connection *connection)
{
    struct http_request *request = calloc(1, sizeof(*request));
    if (request == NULL) {
        return NULL;
    }
    request->server = context;
    request->connection = connection;
    request->target_status = http_target_parse(&request->target, uri);
    return request;
}

void http_exchange_end(void *context, struct MHD_Connection *connection, void **request_pointer,
        enum MHD_RequestTerminationCode code)
{
    struct http_request *request = *request_pointer;
    (void)context;
    (void)connection;
    (void)code;
    if (request == NULL) {
        return;
    }
    request->server->bodies_bytes -= request->body_room;
    /* relaxed: as in http_request_try_charge */
    atomic_fetch_sub_explicit(
            &request->server->answer_bytes, request->charged_bytes, memory_order_relaxed);
    http_target_fini(&request->target);
    free(request->body);
    free(request);
    *request_pointer = NULL;
}

static void refuse_body(struct http_request *request, enum http_refusal refusal)
{
    request->refusal = refusal;
    request->server->bodies_bytes -= request->body_room;
    free(request->body);
    request->body = NULL;
    request->body_room = request->body_length = 0;
}

static void answer_refusal(struct http_request *request)
{
    if (request->refusal == HTTP_BODY_TOO_LARGE) {
        http_respond_text(request, HTTP_CONTENT_TOO_LARGE,
                "Content body too large: at most %zu bytes", request->server->body_bytes_max);
    } else {
        http_respond_text(request, HTTP_UNAVAILABLE, "No room for another content body now");
    }
}

static void take_method(struct http_request *request, const char *method)
{
    for (size_t i = 0; i < sizeof(method_names) / sizeof(method_names[0]); i++) {
        if (strcmp(method, method_names[i].name) == 0) {
            request->method = method_names[i].method;
            request->is_method_known = true;
            request->is_head = strcmp(method, "HEAD") == 0;
        }
    }
}

struct header_count {
    const char *name;
    size_t count;
};

static enum MHD_Result count_header(
        void *context, enum MHD_ValueKind kind, const char *name, const char *value)
{
    struct header_count *header = context;
    (void)kind;
    (void)value;
    header->count += strcasecmp(name, header->name) == 0 ? 1 : 0;
    return MHD_YES;
}

static size_t count_headers(const struct http_request *request, const char *name)
{
    struct header_count header = {.name = name};
    (void)MHD_get_connection_values(request->connection, MHD_HEADER_KIND, count_header, &header);
    return header.count;
}

/* Whoever stands before us may take another of the lengths, and see other requests than we do. */
static bool has_one_length(const struct http_request *request)
{
    return count_headers(request, "Content-Length") + count_headers(request, "Transfer-Encoding") <=
           1;
}

/* A body that is known to be too large is not waited for, when its sender asks first or it is huge. */
static enum MHD_Result take_head(struct http_request *request, const char *method)
{
    const char *length_text = http_request_header(request, "Content-Length");
    const char *expect = http_request_header(request, "Expect");
    unsigned long long length = length_text != NULL ? strtoull(length_text, NULL, 10) : 0;
    request->is_head_taken = true;
    take_method(request, method);
    if (!has_one_length(request)) {
        metrics_add(METRIC_HTTP_INVALID, 1);
        http_respond_text(
                request, HTTP_BAD_REQUEST, "Invalid request: the body's length is given twice");
        return request->queued;
    }
    if (length <= request->server->body_bytes_max) {
        return MHD_YES;
    }
    request->refusal = HTTP_BODY_TOO_LARGE;
    if (expect != NULL || length > HTTP_DRAIN_BYTES_MAX) {
        answer_refusal(request);
        return request->queued;
    }
    return MHD_YES;
}

/* Room for so many bytes, doubling. False when there is none. */
static bool reserve(struct http_request *request, size_t length)
{
    enum {
        ROOM_MIN = 4096
    };
    struct http_server *server = request->server;
    size_t room = request->body_room > 0 ? request->body_room : ROOM_MIN;
    while (room < length) {
        room *= 2;
    }
    room = room > server->body_bytes_max && server->body_bytes_max >= length
                   ? server->body_bytes_max
                   : room;
    size_t more = room - request->body_room;
    if (more == 0) {
        return true;
    }
    if (server->bodies_bytes + more > HTTP_BODIES_SHARE * server->body_bytes_max) {
        return false;
    }
    char *body = realloc(request->body, room);
    if (body == NULL) {
        return false;
    }
    server->bodies_bytes += more;
    request->body = body;
    request->body_room = room;
    return true;
}

static enum MHD_Result take_body(struct http_request *request, const char *data, size_t length)
{
    if (request->refusal == HTTP_TAKEN &&
            length > request->server->body_bytes_max - request->body_length) {
        refuse_body(request, HTTP_BODY_TOO_LARGE);
    }
    if (request->refusal == HTTP_TAKEN && !reserve(request, request->body_length + length)) {
        refuse_body(request, HTTP_NO_ROOM);
    }
    if (request->refusal != HTTP_TAKEN) {
        request->drained_bytes += length;
        return request->drained_bytes > HTTP_DRAIN_BYTES_MAX ? MHD_NO : MHD_YES;
    }
    memcpy(request->body + request->body_length, data, length);
    request->body_length += length;
    return MHD_YES;
}

/* False, and answered, when a page of another origin asks. */
static bool is_origin_allowed(struct http_request *request)
{
    const struct http_origins *origins = request->server->origins;
    if (http_origins_is_empty(origins)) {
        return true;
    }
    size_t count = count_headers(request, "Origin");
    if (count > 1) {
        http_respond_text(
                request, HTTP_BAD_REQUEST, "Only a single Origin header must be specified");
        return false;
    }
    if (count == 1 && !http_origins_match(origins, http_request_header(request, "Origin"))) {
        http_respond_text(request, HTTP_FORBIDDEN, "Origin not allowed");
        return false;
    }
    return true;
}

/* The route of the method in a table; *other is set when the path has routes of other methods. */
static const struct http_route *find_in_table(
        const struct http_request *request, const struct http_table *table, bool *other)
{
    for (size_t i = 0; i < table->count; i++) {
        const struct http_route *route = &table->routes[i];
        if (!http_target_matches(&request->target, route->pattern)) {
            continue;
        }
        if (request->is_method_known && route->method == request->method) {
            return route;
        }
        *other = true;
    }
    return NULL;
}

static const struct http_route *find_route(
        const struct http_request *request, void **context, bool *other)
{
    const struct http_server *server = request->server;
    *other = false;
    for (size_t t = 0; t < server->table_count; t++) {
        const struct http_route *route = find_in_table(request, &server->tables[t], other);
        if (route != NULL) {
            *context = server->tables[t].context;
            return route;
        }
    }
    return NULL;
}

static const char *list_methods(const struct http_request *request, char *out)
{
    bool has[HTTP_METHODS] = {false};
    *out = '\0';
    for (size_t t = 0; t < request->server->table_count; t++) {
        const struct http_table *table = &request->server->tables[t];
        for (size_t i = 0; i < table->count; i++) {
            has[table->routes[i].method] |=
                    http_target_matches(&request->target, table->routes[i].pattern);
        }
    }
    for (size_t i = 0; i < sizeof(method_names) / sizeof(method_names[0]); i++) {
        if (has[method_names[i].method]) {
            strcat(out, *out != '\0' ? ", " : "");
            strcat(out, method_names[i].name);
        }
    }
    return out;
}

static void answer_bad_target(struct http_request *request)
{
    switch (request->target_status) {
    case STATUS_BAD_ADDRESS:
        http_respond_text(request, HTTP_BAD_REQUEST, "Invalid request: the target is no path");
        return;
    case STATUS_NO_MEMORY:
        http_respond_text(request, HTTP_UNAVAILABLE, "out of memory");
        return;
    case STATUS_LIMIT_REACHED:
        http_respond_text(
                request, HTTP_BAD_REQUEST, "Invalid request: the path or query has too many parts");
        return;
    default:
        http_respond_text(request, HTTP_BAD_REQUEST,
                "Invalid request: the path or query has a malformed percent encoding");
        return;
    }
}

static void dispatch(struct http_request *request)
{
    char methods[64];
    void *context = NULL;
    bool has_others;
    if (request->target_status != STATUS_OK) {
        metrics_add(METRIC_HTTP_INVALID, 1);
        answer_bad_target(request);
        return;
    }
    if (!is_origin_allowed(request)) {
        return;
    }
    const struct http_route *route = find_route(request, &context, &has_others);
    if (route != NULL) {
        route->handler(context, request);
    } else if (!has_others) {
        metrics_add(METRIC_HTTP_NO_ROUTE, 1);
        http_respond_text(request, HTTP_NOT_FOUND, "Not found: no such path");
    } else if (request->is_method_known && request->method == HTTP_OPTIONS) {
        http_respond_text(request, HTTP_OK, "OK");
    } else {
        metrics_add(METRIC_HTTP_INVALID, 1);
        request->allow = list_methods(request, methods);
        http_respond_text(request, HTTP_METHOD_NOT_ALLOWED, "Method not allowed here; there is %s",
                request->allow);
    }
}

static void handle(struct http_request *request)
{
    http_continuation *next = request->next;
    if (next != NULL) {
        request->next = NULL;
        next(request->next_context, request);
    } else if (request->refusal != HTTP_TAKEN) {
        answer_refusal(request);
        /* acquire: as in http_server_turn */
    } else if (atomic_load_explicit(&request->server->is_closing, memory_order_acquire)) {
        http_respond_text(request, HTTP_UNAVAILABLE, "The node stops");
    } else {
        dispatch(request);
    }
}

/* Its parameters are the library's. NOLINTNEXTLINE(readability-function-size) */
enum MHD_Result http_exchange_access(void *context, struct MHD_Connection *connection,
        const char *url, const char *method, const char *version, const char *data, size_t *length,
        void **request_pointer)
{
    struct http_request *request = *request_pointer;
    (void)context;
    (void)url;
    (void)version;
    if (request == NULL) {
        return MHD_NO;
    }
    if (!request->is_head_taken) {
        return take_head(request, method);
    }
    if (*length > 0) {
        enum MHD_Result result = take_body(request, data, *length);
        *length = 0;
        return result;
    }
    request->is_held = false;
    handle(request);
    if (request->is_answered) {
        return request->queued;
    }
    if (!request->is_held) {
        log_write(LOG_ERROR, "http", "a handler left a request without answer");
        http_respond_text(request, HTTP_INTERNAL_ERROR, "No answer");
        return request->queued;
    }
    MHD_suspend_connection(connection);
    return MHD_YES;
}
