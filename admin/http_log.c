/* SPDX-License-Identifier: MIT */

/* Requests in the log: enough at INFO to see who uses the API, all of them at DEBUG. */

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "admin/http_private.h"
#include "base/clock.h"
#include "base/log.h"

enum {
    PATH_SEGMENTS = 3, /* that are shown; a path with the same ones is the same path */
    SEGMENT_SHOWN = 60,
    PATH_SIZE = PATH_SEGMENTS * (SEGMENT_SHOWN + 1) + 1,
    PERIOD_S = 60
};

static const char *method_name(const struct http_request *request)
{
    static const char *const names[] = {[HTTP_GET] = "GET",
            [HTTP_POST] = "POST",
            [HTTP_PUT] = "PUT",
            [HTTP_DELETE] = "DELETE",
            [HTTP_OPTIONS] = "OPTIONS"};
    if (!request->is_method_known) {
        return "?";
    }
    return request->is_head ? "HEAD" : names[request->method];
}

/* Two paths in one place share the minute, no more. */
static struct http_log_path *find_path(struct http_request *request, unsigned status)
{
    uint64_t hash = 14695981039346656037ULL ^ request->method ^ (uint64_t)(status / 100) << 8;
    for (size_t i = 0; i < PATH_SEGMENTS; i++) {
        for (const char *at = http_request_segment(request, i); *at != '\0'; at++) {
            hash = (hash ^ (uint8_t)*at) * 1099511628211ULL;
        }
        hash = (hash ^ '/') * 1099511628211ULL;
    }
    return &request->server->log_paths[hash % HTTP_LOG_PATHS];
}

/* Probes and scrapes say nothing about who uses the API. */
static bool is_probe(const struct http_request *request)
{
    const char *first = http_request_segment(request, 0);
    return strcmp(first, "health") == 0 || strcmp(first, "metrics") == 0;
}

static void write_line(
        struct http_request *request, unsigned status, enum log_level level, const char *note)
{
    char path[PATH_SIZE] = "/";
    size_t length = 0;
    for (size_t i = 0; i < PATH_SEGMENTS && i < request->target.segment_count; i++) {
        int more = snprintf(path + length, sizeof(path) - length, "/%.*s", SEGMENT_SHOWN,
                http_request_segment(request, i));
        length += (size_t)more;
    }
    log_write(level, "http", "%s %s: %u%s", method_name(request), path, status, note);
}

void http_log_answer(struct http_request *request, unsigned status)
{
    struct http_log_path *path = find_path(request, status);
    uint64_t now_ns = clock_monotonic_ns();
    char note[64] = "";
    if (!request->server->logs_requests || is_probe(request) || now_ns < path->next_ns) {
        path->others++;
        write_line(request, status, LOG_DEBUG, note);
        return;
    }
    if (path->others > 0) {
        snprintf(note, sizeof(note), " (%" PRIu64 " more since the last such line)", path->others);
    }
    path->next_ns = now_ns + (uint64_t)PERIOD_S * NANOSECONDS_PER_SECOND;
    path->others = 0;
    write_line(request, status, LOG_INFO, note);
}
