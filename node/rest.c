/* SPDX-License-Identifier: MIT */
#include "node/rest.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/version.h"
#include "node/network.h"
#include "node/rest_private.h"

enum {
    ORIGINS_MAX = 64,
    PORT_MAX = 65535
};

static enum status explain(struct node_error *error, enum status status, const char *what)
{
    if (status != STATUS_OK && error->text[0] == '\0') {
        snprintf(error->text, sizeof(error->text), "REST: %s: %s", what, status_text(status));
    }
    return status;
}

static uint16_t port_of(const struct options *options)
{
    uint64_t port = options_number(options, "rest-port");
    uint64_t shift = port > 0 ? options_number(options, "ports-shift") : 0;
    return (uint16_t)(port + shift <= PORT_MAX ? port + shift : 0);
}

static enum status open_server(
        struct rest *rest, const struct options *options, struct node_error *error)
{
    const char *origins[ORIGINS_MAX];
    size_t count = options_list_count(options, "rest-allow-origin");
    if (count > ORIGINS_MAX) {
        return explain(error, STATUS_LIMIT_REACHED, "--rest-allow-origin");
    }
    for (size_t i = 0; i < count; i++) {
        origins[i] = options_list_item(options, "rest-allow-origin", i);
    }
    struct http_server_options server = {.address = options_text(options, "rest-address"),
            .port = port_of(options),
            .connections_max = (size_t)options_number(options, "rest-max-connections"),
            .body_bytes_max = (size_t)options_number(options, "rest-body-limit"),
            .idle_timeout_s = (uint32_t)(options_number(options, "rest-idle-timeout") / 1000),
            .allowed_origins = origins,
            .allowed_origin_count = count,
            .answer_bytes_max = (size_t)options_number(options, "rest-answer-limit"),
            .logs_requests = true};
    if (server.port == 0 && options_number(options, "rest-port") != 0) {
        snprintf(error->text, sizeof(error->text), "--rest-port with --ports-shift is above %d",
                PORT_MAX);
        return STATUS_BAD_ARGUMENT;
    }
    enum status status = http_server_create(&rest->server, &server);
    if (status == STATUS_SYSTEM) {
        snprintf(error->text, sizeof(error->text),
                "--rest-port: cannot listen on %.100s port %u: %s", server.address, server.port,
                strerror(errno));
    } else if (status == STATUS_LIMIT_REACHED) {
        return explain(error, status, "--rest-allow-origin");
    }
    return explain(error, status, server.address);
}

static enum status copy_texts(struct rest *rest, const struct options *options)
{
    size_t count = options_list_count(options, "content-topic");
    const char *store_node = options_text(options, "storenode");
    if (store_node[0] != '\0' && (rest->store_node = strdup(store_node)) == NULL) {
        return STATUS_NO_MEMORY;
    }
    rest->content_topics = calloc(count + 1, sizeof(*rest->content_topics));
    if (rest->content_topics == NULL) {
        return STATUS_NO_MEMORY;
    }
    for (size_t i = 0; i < count; i++) {
        char *copy = strdup(options_list_item(options, "content-topic", i));
        if (copy == NULL) {
            return STATUS_NO_MEMORY;
        }
        rest->content_topics[rest->content_topic_count++] = copy;
    }
    return STATUS_OK;
}

static enum status make_api(struct rest *rest, const struct options *options)
{
    struct rest_api_options api = {.server = rest->server,
            .version = SLUICE_API_VERSION,
            .cluster = rest->cluster,
            .shard_count = rest->shard_count,
            .message_bytes_max = rest->message_bytes_max,
            .cache_messages_max = (size_t)options_number(options, "rest-relay-cache-capacity"),
            .cache_bytes_max = (size_t)options_number(options, "rest-relay-cache-limit"),
            .topics_max = (size_t)options_number(options, "max-topics"),
            .has_relay = options_flag(options, "relay"),
            .has_admin = options_flag(options, "rest-admin"),
            .is_strict = options_flag(options, "rest-strict-fields")};
    api.pushes_through_peer = !options_flag(options, "lightpush") ||
                              options_text(options, "lightpushnode")[0] != '\0';
    rest_fill_services(rest, &api.services);
    return rest_api_create(&rest->api, &api);
}

/* Of the topics that the node is started with messages are kept from the beginning. */
static enum status keep_topics(struct rest *rest)
{
    enum status status = STATUS_OK;
    const char *name;
    for (size_t i = 0; status == STATUS_OK && rest->node->network != NULL &&
                       (name = network_topic_at(rest->node->network, i)) != NULL;
            i++) {
        status = rest_api_keep(rest->api, span_of_text(name));
    }
    for (size_t i = 0; status == STATUS_OK && i < rest->content_topic_count; i++) {
        status = rest_api_keep_content(rest->api, span_of_text(rest->content_topics[i]));
    }
    return status;
}

enum status rest_create(struct rest **out, struct node *node, const struct options *options,
        struct node_error *error)
{
    *out = NULL;
    if (!options_flag(options, "rest")) {
        return STATUS_OK;
    }
    struct rest *rest = calloc(1, sizeof(*rest));
    if (rest == NULL) {
        return STATUS_NO_MEMORY;
    }
    rest->node = node;
    rest->serves_filter = node->hooks.has_network && options_flag(options, "filter");
    rest->query_timeout_ms = options_number(options, "store-query-timeout");
    rest->message_bytes_max = (size_t)options_number(options, "max-msg-size");
    rest->cluster = (uint16_t)options_number(options, "cluster-id");
    rest->shard_count = (uint16_t)options_number(options, "num-shards-in-network");
    rest->capabilities = rest_capabilities(options);
    rest->enr_sequence = (uint64_t)(clock_wall_ns() / NANOSECONDS_PER_MILLISECOND);
    enum status status = inbox_create(&rest->jobs);
    if (status == STATUS_OK) {
        status = copy_texts(rest, options);
    }
    if (status == STATUS_OK) {
        status = open_server(rest, options, error);
    }
    if (status == STATUS_OK) {
        status = make_api(rest, options);
    }
    if (status == STATUS_OK) {
        status = keep_topics(rest);
    }
    if (status != STATUS_OK) {
        rest_destroy(&rest);
        return explain(error, status, "start");
    }
    log_write(LOG_NOTICE, "rest", "REST API on http://%s:%u/",
            options_text(options, "rest-address"), http_server_port(rest->server));
    *out = rest;
    return STATUS_OK;
}

void rest_destroy(struct rest **rest_pointer)
{
    struct rest *rest = *rest_pointer;
    if (rest == NULL) {
        return;
    }
    http_server_destroy(&rest->server);
    rest_api_destroy(&rest->api);
    if (rest->jobs != NULL) {
        inbox_destroy(&rest->jobs);
    }
    for (size_t i = 0; i < rest->content_topic_count; i++) {
        free(rest->content_topics[i]);
    }
    free(rest->content_topics);
    free(rest->store_node);
    free(rest);
    *rest_pointer = NULL;
}

void rest_close(struct rest *rest)
{
    struct timespec slice = {.tv_nsec = NANOSECONDS_PER_MILLISECOND};
    http_server_close(rest->server);
    while (http_server_held(rest->server) > 0) {
        nanosleep(&slice, NULL);
    }
}

void rest_take(struct rest *rest, struct envelope *envelope)
{
    rest_api_take(rest->api, envelope);
}

struct http_server *rest_server(const struct rest *rest)
{
    return rest->server;
}

/* The thread that serves. */

static size_t serve(void *context)
{
    struct rest *rest = context;
    return http_server_turn(rest->server);
}

static void wait_for_requests(void *context, uint64_t timeout_ns)
{
    struct rest *rest = context;
    http_server_wait(rest->server, timeout_ns);
}

static void wake_server(void *context)
{
    struct rest *rest = context;
    http_server_wake(rest->server);
}

struct worker_role rest_http_role(struct rest *rest, const char *name)
{
    return (struct worker_role){.name = name,
            .context = rest,
            .turn = serve,
            .wait = wait_for_requests,
            .wake = wake_server};
}

/* The thread that waits. */

void rest_post_job(struct rest *rest, struct rest_job *job)
{
    inbox_push(rest->jobs, &job->link);
    inbox_wake(rest->jobs);
}

static size_t run_job(void *context)
{
    struct rest *rest = context;
    struct inbox_link *link = inbox_try_pop(rest->jobs);
    if (link == NULL) {
        return 0;
    }
    struct rest_job *job = (struct rest_job *)((char *)link - offsetof(struct rest_job, link));
    worker_block_begin();
    job->run(job);
    worker_block_end();
    return 1;
}

static bool has_jobs(void *context)
{
    struct rest *rest = context;
    return !inbox_is_empty(rest->jobs);
}

struct worker_role rest_wait_role(struct rest *rest, const char *name)
{
    return (struct worker_role){.name = name,
            .context = rest,
            .turn = run_job,
            .has_work = has_jobs,
            .parking = inbox_parking(rest->jobs)};
}
