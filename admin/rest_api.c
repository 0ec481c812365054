/* SPDX-License-Identifier: MIT */
#include "admin/rest_api.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "admin/rest_private.h"
#include "codec/topics.h"

const char rest_json_type[] = "application/json";

static enum status make_caches(struct rest_api *api)
{
    struct rest_cache_options options = {.messages_max = api->options.cache_messages_max,
            .bytes_max = api->options.cache_bytes_max,
            .topics_max = api->options.topics_max};
    enum status status = rest_cache_create(&api->relay_cache, &options);
    return status == STATUS_OK ? rest_cache_create(&api->filter_cache, &options) : status;
}

static void absent_admin(void *context, struct http_request *request)
{
    (void)context;
    http_respond_text(request, HTTP_NOT_FOUND,
            "/admin endpoints are not available. Please check your configuration: "
            "--rest-admin=true");
}

static void absent_relay(void *context, struct http_request *request)
{
    (void)context;
    http_respond_text(request, HTTP_NOT_FOUND,
            "/relay endpoints are not available. Please check your configuration: --relay");
}

/* What is not there says so, whatever is asked of it. */
static void add_absent(struct http_server *server, bool is_admin)
{
    static const struct http_route admin[] = {{HTTP_GET, "/admin/*", absent_admin},
            {HTTP_POST, "/admin/*", absent_admin}, {HTTP_DELETE, "/admin/*", absent_admin}};
    static const struct http_route relay[] = {{HTTP_GET, "/relay/*", absent_relay},
            {HTTP_POST, "/relay/*", absent_relay}, {HTTP_DELETE, "/relay/*", absent_relay}};
    if (is_admin) {
        http_server_add_routes(server, admin, sizeof(admin) / sizeof(admin[0]), NULL);
    } else {
        http_server_add_routes(server, relay, sizeof(relay) / sizeof(relay[0]), NULL);
    }
}

static void add_routes(struct rest_api *api)
{
    struct http_server *server = api->options.server;
    http_server_add_routes(server, rest_node_routes, rest_node_route_count, api);
    http_server_add_routes(server, rest_filter_routes, rest_filter_route_count, api);
    http_server_add_routes(server, rest_lightpush_routes, rest_lightpush_route_count, api);
    http_server_add_routes(server, rest_store_routes, rest_store_route_count, api);
    if (api->options.has_relay) {
        http_server_add_routes(server, rest_relay_routes, rest_relay_route_count, api);
    } else {
        add_absent(server, false);
    }
    if (api->options.has_admin) {
        http_server_add_routes(server, rest_admin_routes, rest_admin_route_count, api);
    } else {
        add_absent(server, true);
    }
}

enum status rest_api_create(struct rest_api **out, const struct rest_api_options *options)
{
    struct rest_api *api = calloc(1, sizeof(*api));
    if (api == NULL) {
        return STATUS_NO_MEMORY;
    }
    api->options = *options;
    enum status status = make_caches(api);
    if (status != STATUS_OK) {
        rest_api_destroy(&api);
        return status;
    }
    add_routes(api);
    *out = api;
    return STATUS_OK;
}

void rest_api_destroy(struct rest_api **api_pointer)
{
    struct rest_api *api = *api_pointer;
    if (api == NULL) {
        return;
    }
    rest_cache_destroy(&api->relay_cache);
    rest_cache_destroy(&api->filter_cache);
    free(api);
    *api_pointer = NULL;
}

enum status rest_api_keep(struct rest_api *api, struct span pubsub_topic)
{
    return rest_cache_subscribe(api->relay_cache, REST_PUBSUB_TOPIC, pubsub_topic);
}

enum status rest_api_keep_content(struct rest_api *api, struct span content_topic)
{
    return rest_cache_subscribe(api->relay_cache, REST_CONTENT_TOPIC, content_topic);
}

void rest_api_take(struct rest_api *api, struct envelope *envelope)
{
    rest_cache_add(api->relay_cache, envelope);
}

void rest_api_take_pushed(struct rest_api *api, struct span pubsub_topic, struct span message)
{
    rest_cache_add_bytes(api->filter_cache, pubsub_topic, message);
}

enum status rest_take_cached(struct rest_cache *cache, const struct http_request *request,
        enum rest_topic_kind kind, const char *topic, struct rest_cached **out)
{
    struct span name = span_of_text(topic);
    if (!http_request_is_head(request)) {
        return rest_cache_fetch(cache, kind, name, out);
    }
    *out = NULL;
    return rest_cache_is_subscribed(cache, kind, name) ? STATUS_OK : STATUS_NOT_FOUND;
}

void rest_respond_json(struct http_request *request, unsigned status, struct rest_text *text)
{
    size_t length;
    char *body = rest_text_take(text, &length);
    if (body == NULL) {
        http_respond_text(request, HTTP_UNAVAILABLE, "out of memory");
        return;
    }
    http_respond_owned(request, status, rest_json_type, body, length);
}

const char *rest_body_fault(const struct http_request *request)
{
    static const char *const types[] = {"application/json", "text/plain"};
    const char *type = http_request_header(request, "Content-Type");
    if (http_request_body(request).length == 0) {
        return "Missing content body";
    }
    for (size_t i = 0; type != NULL && i < sizeof(types) / sizeof(types[0]); i++) {
        size_t length = strlen(types[i]);
        if (strncasecmp(type, types[i], length) == 0 &&
                strchr("; \t", type[length]) != NULL) { /* the end counts as well */
            return NULL;
        }
    }
    return type == NULL ? NULL : "Wrong Content-Type, expected application/json or text/plain";
}

bool rest_has_json_body(struct http_request *request)
{
    const char *fault = rest_body_fault(request);
    if (fault != NULL) {
        http_respond_text(request, HTTP_BAD_REQUEST, "%s", fault);
    }
    return fault == NULL;
}

void rest_respond_bad_body(
        struct http_request *request, enum status status, const struct rest_error *error)
{
    if (status == STATUS_NO_MEMORY) {
        http_respond_text(request, HTTP_UNAVAILABLE, "out of memory");
        return;
    }
    http_respond_text(request, HTTP_BAD_REQUEST, "%s%s",
            error->is_base64
                    ? ""
                    : "Invalid content body, could not decode: Unable to deserialize data: ",
            error->text);
}

struct rest_answer *rest_answer_begin(struct rest_api *api, struct http_request *request)
{
    struct rest_answer *answer = calloc(1, sizeof(*answer));
    if (answer == NULL) {
        http_respond_text(request, HTTP_UNAVAILABLE, "out of memory");
        return NULL;
    }
    answer->api = api;
    answer->request = request;
    answer->status = HTTP_OK;
    http_request_hold(request);
    return answer;
}

static void send_answer(void *context, struct http_request *request)
{
    struct rest_answer *answer = context;
    size_t length;
    if (answer->finish != NULL) {
        answer->finish(answer);
    }
    if (answer->is_json) {
        rest_respond_json(request, answer->status, &answer->text);
    } else {
        char *body = rest_text_take(&answer->text, &length);
        http_respond_text(request, body != NULL ? answer->status : HTTP_UNAVAILABLE, "%s",
                body != NULL ? body : "out of memory");
        free(body);
    }
    if (answer->free_data != NULL) {
        answer->free_data(answer->data);
    }
    rest_text_fini(&answer->text);
    free(answer);
}

void rest_answer_send(struct rest_answer *answer)
{
    http_request_resume(answer->request, send_answer, answer);
}

void rest_answer_send_text(struct rest_answer *answer, unsigned status, const char *format, ...)
{
    char text[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    rest_text_fini(&answer->text);
    rest_text_add(&answer->text, text);
    answer->is_json = false;
    answer->status = status;
    rest_answer_send(answer);
}

enum status rest_shard_of(const struct rest_api *api, char *out, size_t size, struct span *name,
        struct span content_topic)
{
    char formatted[SHARD_TOPIC_MAX_BYTES];
    struct content_topic topic;
    struct shard shard = {.cluster = api->options.cluster};
    if (api->options.shard_count == 0) {
        return STATUS_UNSUPPORTED;
    }
    enum status status = content_topic_parse(&topic, content_topic);
    if (status == STATUS_OK) {
        status = content_topic_shard(&shard.index, &topic, api->options.shard_count);
    }
    if (status == STATUS_OK) {
        size_t length = shard_format(formatted, shard);
        snprintf(out, size, "%s", formatted);
        *name = span_of(out, length);
    }
    /* UNSUPPORTED would be taken for the absence of autosharding */
    return status == STATUS_UNSUPPORTED ? STATUS_BAD_TOPIC : status;
}

const char *rest_refusal_text(
        const struct rest_api *api, enum metric reason, char *out, size_t size)
{
    switch ((int)reason) {
    case LEDGER_INTAKE_TOO_LARGE:
        snprintf(out, size, "Message size exceeded maximum of %zu bytes",
                api->options.message_bytes_max);
        return out;
    case LEDGER_INTAKE_PAYLOAD_MISSING:
        return "missing Payload field";
    case LEDGER_INTAKE_CONTENT_TOPIC_MISSING:
        return "missing ContentTopic field";
    case LEDGER_INTAKE_CONTENT_TOPIC_NOT_UTF8:
        return "content topic is not UTF-8";
    case LEDGER_INTAKE_META_TOO_LONG:
        return "invalid length for Meta field: longer than 64 bytes";
    case LEDGER_INTAKE_NOT_SIGNED:
        return "the shard is protected and the message has not its signature";
    case LEDGER_INTAKE_TIMESTAMP_OUT_OF_RANGE:
        return "timestamp is too far from the node's clock";
    case LEDGER_INTAKE_TOPIC_NOT_SUBSCRIBED:
        return "Node not subscribed to topic";
    case LEDGER_INTAKE_DUPLICATE:
        return "Dropping already-seen message";
    default:
        return "the node is out of memory";
    }
}
