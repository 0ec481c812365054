/* SPDX-License-Identifier: MIT */
#include "node/metrics_server.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "node/metrics_export.h"

enum {
    PORT_MAX = 65535,
    BODY_BYTES_MAX = 4096, /* nobody posts anything here */
    IDLE_TIMEOUT_S = 60
};

struct metrics_server {
    struct node *node;
    struct http_server *server;
    struct metrics_seen seen; /* of pages without zeros */
    enum metrics_names names;
    struct service_peers service_peers;
};

static void show_metrics(void *context, struct http_request *request)
{
    struct metrics_server *server = context;
    const char *zeros = http_request_parameter(request, "zeros");
    bool has_zeros = zeros != NULL && strcmp(zeros, "true") == 0;
    struct metrics_export_options options = {.seen = has_zeros ? NULL : &server->seen,
            .names = server->names,
            .service_peers = &server->service_peers};
    size_t length;
    char *page = metrics_export(server->node, &options, &length);
    if (page == NULL) {
        http_respond_text(request, HTTP_UNAVAILABLE, "out of memory");
        return;
    }
    http_respond_owned(request, HTTP_OK, "text/plain; version=0.0.4; charset=utf-8", page, length);
}

static enum status read_names(
        struct metrics_server *server, const struct options *options, struct node_error *error)
{
    static const char *const names[] = {[METRICS_NAMES_WAKU] = "waku",
            [METRICS_NAMES_LOGOS_DELIVERY] = "logos_delivery",
            [METRICS_NAMES_BOTH] = "both"};
    const char *text = options_text(options, "metrics-names");
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (strcmp(text, names[i]) == 0) {
            server->names = (enum metrics_names)i;
            return STATUS_OK;
        }
    }
    snprintf(error->text, sizeof(error->text),
            "--metrics-names=%.50s is none of waku, logos_delivery, both", text);
    return STATUS_BAD_ARGUMENT;
}

static const struct http_route routes[] = {{HTTP_GET, "/metrics", show_metrics}};

static enum status open_server(
        struct metrics_server *server, const struct options *options, struct node_error *error)
{
    uint64_t port = options_number(options, "metrics-server-port");
    uint64_t shifted = port == 0 ? 0 : port + options_number(options, "ports-shift");
    struct http_server_options http = {.address = options_text(options, "metrics-server-address"),
            .port = (uint16_t)shifted,
            .connections_max = (size_t)options_number(options, "metrics-server-connections"),
            .body_bytes_max = BODY_BYTES_MAX,
            .idle_timeout_s = IDLE_TIMEOUT_S};
    if (shifted > PORT_MAX) {
        snprintf(error->text, sizeof(error->text),
                "--metrics-server-port with --ports-shift is above %d", PORT_MAX);
        return STATUS_BAD_ARGUMENT;
    }
    enum status status = http_server_create(&server->server, &http);
    if (status != STATUS_OK) {
        snprintf(error->text, sizeof(error->text),
                "--metrics-server-port: cannot listen on %.100s port %u: %s", http.address,
                http.port, status == STATUS_SYSTEM ? strerror(errno) : status_text(status));
    }
    return status;
}

enum status metrics_server_create(struct metrics_server **out, struct node *node,
        const struct options *options, struct node_error *error)
{
    *out = NULL;
    if (!options_flag(options, "metrics-server")) {
        return STATUS_OK;
    }
    struct metrics_server *server = memory_allocate_zeroed(sizeof(*server));
    if (server == NULL) {
        return STATUS_NO_MEMORY;
    }
    server->node = node;
    if (options_flag(options, "network")) {
        service_peers_read(&server->service_peers, options);
    }
    enum status status = read_names(server, options, error);
    if (status == STATUS_OK) {
        status = open_server(server, options, error);
    }
    if (status != STATUS_OK) {
        metrics_server_destroy(&server);
        return status;
    }
    http_server_add_routes(server->server, routes, sizeof(routes) / sizeof(routes[0]), server);
    *out = server;
    return STATUS_OK;
}

void metrics_server_destroy(struct metrics_server **server)
{
    if (*server != NULL) {
        http_server_destroy(&(*server)->server);
        memory_free(*server);
        *server = NULL;
    }
}

static size_t turn(void *context)
{
    struct metrics_server *server = context;
    return http_server_turn(server->server);
}

static void wait_for_requests(void *context, uint64_t timeout_ns)
{
    struct metrics_server *server = context;
    http_server_wait(server->server, timeout_ns);
}

static void wake(void *context)
{
    struct metrics_server *server = context;
    http_server_wake(server->server);
}

struct worker_role metrics_server_role(struct metrics_server *server, const char *name)
{
    return (struct worker_role){
            .name = name, .context = server, .turn = turn, .wait = wait_for_requests, .wake = wake};
}

void metrics_server_close(struct metrics_server *server)
{
    http_server_close(server->server);
}

struct http_server *metrics_server_http(const struct metrics_server *server)
{
    return server->server;
}
