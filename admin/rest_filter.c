/* SPDX-License-Identifier: MIT */

/* /filter/v2: subscriptions with a filter service node, and what it pushed. */

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "admin/rest_format.h"
#include "admin/rest_private.h"
#include "admin/rest_query.h"

/* A subscription request under way. */
struct filter_call {
    struct rest_filter filter;
    char *request_id; /* of a ping, from the path */
    enum rest_filter_verb verb;
};

static void free_call(void *data)
{
    struct filter_call *call = data;
    rest_filter_fini(&call->filter);
    free(call->request_id);
    free(call);
}

static void add_result(struct rest_text *text, const char *request_id, const char *description)
{
    rest_text_add(text, "{\"requestId\":");
    rest_text_add_string(text, span_of_text(request_id));
    rest_text_add(text, ",\"statusDesc\":");
    rest_text_add_string(text, span_of_text(description));
    rest_text_add(text, "}");
}

static void respond_result(struct http_request *request, unsigned status, const char *request_id,
        const char *description)
{
    struct rest_text text = {0};
    add_result(&text, request_id, description);
    rest_respond_json(request, status, &text);
}

static unsigned http_status_of(uint32_t code)
{
    switch (code) {
    case HTTP_OK:
    case HTTP_BAD_REQUEST:
    case HTTP_NOT_FOUND:
    case HTTP_TOO_MANY_REQUESTS:
    case HTTP_UNAVAILABLE:
    case HTTP_GATEWAY_TIMEOUT:
        return code;
    default:
        return HTTP_INTERNAL_ERROR;
    }
}

/* What is subscribed at the service is kept for clients. */
static enum status keep_topics(struct rest_api *api, const struct filter_call *call)
{
    enum status status = STATUS_OK;
    for (size_t i = 0; status == STATUS_OK && i < call->filter.content_topics.count; i++) {
        struct span topic = span_of_text(call->filter.content_topics.items[i]);
        if (call->verb == REST_FILTER_SUBSCRIBE) {
            status = rest_cache_subscribe(api->filter_cache, REST_CONTENT_TOPIC, topic);
        } else {
            rest_cache_unsubscribe(api->filter_cache, REST_CONTENT_TOPIC, topic);
        }
    }
    if (call->verb == REST_FILTER_UNSUBSCRIBE_ALL) {
        rest_cache_clear(api->filter_cache);
    }
    return status;
}

static void end_call(void *context, uint32_t code, const char *description)
{
    struct rest_answer *answer = context;
    struct filter_call *call = answer->data;
    const char *request_id = call->request_id != NULL ? call->request_id : call->filter.request_id;
    if (code == HTTP_OK && call->verb != REST_FILTER_SUBSCRIBE) {
        (void)keep_topics(answer->api, call);
    }
    answer->status = http_status_of(code);
    answer->is_json = true;
    add_result(&answer->text, request_id,
            code == HTTP_OK && description[0] == '\0' ? "OK" : description);
    rest_answer_send(answer);
}

/*
 * Takes the call over. What the service may push as soon as it has subscribed us is kept from before
 * it is asked.
 */
static void ask(struct rest_api *api, struct http_request *request, struct filter_call *call)
{
    const struct rest_services *services = &api->options.services;
    struct rest_answer *answer = rest_answer_begin(api, request);
    if (answer == NULL) {
        free_call(call);
        return;
    }
    answer->data = call;
    answer->free_data = free_call;
    struct rest_filter_ask question = {.verb = call->verb,
            .pubsub_topic = call->filter.pubsub_topic,
            .content_topics = call->filter.content_topics.items,
            .content_topic_count = call->filter.content_topics.count};
    enum status status = STATUS_OK;
    if (call->verb == REST_FILTER_SUBSCRIBE) {
        status = keep_topics(api, call);
    }
    if (status == STATUS_OK) {
        status = services->filter == NULL
                         ? STATUS_NOT_FOUND
                         : services->filter(services->context, &question, end_call, answer);
    }
    if (status == STATUS_NOT_FOUND) {
        end_call(answer, HTTP_UNAVAILABLE, "No suitable service peer & no discovery method");
    } else if (status != STATUS_OK) {
        end_call(answer, HTTP_UNAVAILABLE, status_text(status));
    }
}

static struct filter_call *make_call(struct http_request *request, enum rest_filter_verb verb)
{
    struct filter_call *call = calloc(1, sizeof(*call));
    if (call == NULL) {
        http_respond_text(request, HTTP_UNAVAILABLE, "out of memory");
        return NULL;
    }
    call->verb = verb;
    return call;
}

/* This part of the API takes JSON only. */
static bool has_json_type(const struct http_request *request)
{
    static const char json[] = "application/json";
    const char *type = http_request_header(request, "Content-Type");
    return type == NULL || strncasecmp(type, json, sizeof(json) - 1) == 0;
}

static void change(struct rest_api *api, struct http_request *request, enum rest_filter_verb verb)
{
    struct rest_error error = {.text = "Wrong Content-Type, expected application/json"};
    char description[sizeof(error.text) + 64] = "BAD_REQUEST: Failed to decode request: ";
    struct filter_call *call = make_call(request, verb);
    if (call == NULL) {
        return;
    }
    enum status status = STATUS_BAD_FIELD;
    if (has_json_type(request)) {
        status = rest_filter_parse(&call->filter, http_request_body(request),
                verb == REST_FILTER_UNSUBSCRIBE_ALL, api->options.is_strict, &error);
    }
    if (status != STATUS_OK) {
        free_call(call);
        strcat(description, error.text);
        respond_result(request, HTTP_BAD_REQUEST, "unknown", description);
        return;
    }
    ask(api, request, call);
}

static void post_subscriptions(void *context, struct http_request *request)
{
    change(context, request, REST_FILTER_SUBSCRIBE);
}

static void delete_subscriptions(void *context, struct http_request *request)
{
    change(context, request, REST_FILTER_UNSUBSCRIBE);
}

static void delete_all(void *context, struct http_request *request)
{
    change(context, request, REST_FILTER_UNSUBSCRIBE_ALL);
}

static void get_subscription(void *context, struct http_request *request)
{
    struct filter_call *call = make_call(request, REST_FILTER_PING);
    if (call == NULL) {
        return;
    }
    call->request_id = strdup(http_request_segment(request, 3));
    if (call->request_id == NULL) {
        free_call(call);
        http_respond_text(request, HTTP_UNAVAILABLE, "out of memory");
        return;
    }
    ask(context, request, call);
}

/* As the services say it of a request without an id. */
static void refuse_without_id(void *context, struct http_request *request)
{
    (void)context;
    respond_result(request, HTTP_BAD_REQUEST, "", "BAD_REQUEST: bad request id");
}

static void respond_messages(
        struct rest_api *api, struct http_request *request, const char *content_topic)
{
    struct rest_cached *batch;
    struct rest_text text = {0};
    if (rest_is_encoded_twice(content_topic)) {
        http_respond_text(
                request, HTTP_BAD_REQUEST, "The topic is URL-encoded twice: %.200s", content_topic);
        return;
    }
    if (rest_take_cached(api->filter_cache, request, REST_CONTENT_TOPIC, content_topic, &batch) !=
            STATUS_OK) {
        http_respond_text(
                request, HTTP_BAD_REQUEST, "Not subscribed to topic: %.300s", content_topic);
        return;
    }
    rest_add_batch(&text, batch, REST_FORM_FILTER);
    rest_cached_destroy(&batch);
    rest_respond_json(request, HTTP_OK, &text);
}

static void get_messages(void *context, struct http_request *request)
{
    respond_messages(context, request, http_request_segment(request, 3));
}

const struct http_route rest_filter_routes[] = {
        {HTTP_DELETE, "/filter/v2/subscriptions/all", delete_all},
        {HTTP_POST, "/filter/v2/subscriptions", post_subscriptions},
        {HTTP_PUT, "/filter/v2/subscriptions", post_subscriptions},
        {HTTP_DELETE, "/filter/v2/subscriptions", delete_subscriptions},
        {HTTP_GET, "/filter/v2/subscriptions", refuse_without_id},
        {HTTP_GET, "/filter/v2/subscriptions/{requestId}", get_subscription},
        {HTTP_GET, "/filter/v2/messages/{contentTopic}", get_messages},
};
const size_t rest_filter_route_count = sizeof(rest_filter_routes) / sizeof(rest_filter_routes[0]);
