/* SPDX-License-Identifier: MIT */

/* /relay/v1: topics that the node takes part in, their last messages, and publishing. */

#include <stdio.h>
#include <string.h>

#include "admin/rest_format.h"
#include "admin/rest_private.h"
#include "admin/rest_query.h"
#include "base/clock.h"
#include "codec/topics.h"

enum {
    REASON_SIZE = 128
};

static const struct rest_services *services_of(const struct rest_api *api)
{
    return &api->options.services;
}

/* False, and answered, when it is none. */
static bool take_list(struct http_request *request, struct rest_list *list)
{
    struct rest_error error = {0};
    if (!rest_has_json_body(request)) {
        return false;
    }
    enum status status = rest_list_parse(list, http_request_body(request), &error);
    if (status != STATUS_OK) {
        rest_respond_bad_body(request, status, &error);
    }
    return status == STATUS_OK;
}

/* False, and answered, when one is no static shard's name. */
static bool are_shards(struct rest_api *api, struct http_request *request,
        const struct rest_list *list, const char *verb)
{
    (void)api;
    (void)verb;
    struct rest_text bad = {0};
    struct shard shard;
    size_t count = 0;
    for (size_t i = 0; i < list->count; i++) {
        struct span name = span_of_text(list->items[i]);
        if (shard_parse(&shard, name) != STATUS_OK) {
            rest_text_add(&bad, count++ > 0 ? ", " : "Invalid pubsub topic(s): @[");
            rest_text_add_string(&bad, name);
        }
    }
    if (count > 0) {
        rest_text_add(&bad, "]");
        size_t length;
        char *text = rest_text_take(&bad, &length);
        http_respond_owned(request, text != NULL ? HTTP_BAD_REQUEST : HTTP_UNAVAILABLE,
                "text/plain", text, length);
    }
    rest_text_fini(&bad);
    return count == 0;
}

static void respond_failed(
        struct http_request *request, const char *what, const char *topic, enum status status)
{
    unsigned code = status == STATUS_LIMIT_REACHED || status == STATUS_NO_MEMORY
                            ? HTTP_UNAVAILABLE
                            : HTTP_INTERNAL_ERROR;
    http_respond_text(request, code, "%s failed: %s: %s", what, topic, status_text(status));
}

/* What is done for each topic of a list, and what it is called. */
struct list_action {
    enum status (*act)(struct rest_api *api, struct span topic);
    bool (*check)(struct rest_api *api, struct http_request *request, const struct rest_list *list,
            const char *name);
    const char *name;
};

static void act_on_list(
        struct rest_api *api, struct http_request *request, const struct list_action *action)
{
    struct rest_list list;
    if (!take_list(request, &list)) {
        return;
    }
    if (action->check(api, request, &list, action->name)) {
        enum status status = STATUS_OK;
        size_t i = 0;
        for (; status == STATUS_OK && i < list.count; i++) {
            status = action->act(api, span_of_text(list.items[i]));
        }
        if (status == STATUS_OK) {
            http_respond_text(request, HTTP_OK, "OK");
        } else {
            respond_failed(request, action->name, list.items[i - 1], status);
        }
    }
    rest_list_fini(&list);
}

static enum status subscribe(struct rest_api *api, struct span name)
{
    const struct rest_services *services = services_of(api);
    enum status status = rest_cache_subscribe(api->relay_cache, REST_PUBSUB_TOPIC, name);
    if (status == STATUS_OK && !services->is_joined(services->context, name)) {
        status = services->join(services->context, name);
    }
    return status;
}

static void post_subscriptions(void *context, struct http_request *request)
{
    static const struct list_action action = {subscribe, are_shards, "Subscribe"};
    act_on_list(context, request, &action);
}

static enum status unsubscribe(struct rest_api *api, struct span name)
{
    const struct rest_services *services = services_of(api);
    rest_cache_unsubscribe(api->relay_cache, REST_PUBSUB_TOPIC, name);
    return services->is_joined(services->context, name) ? services->leave(services->context, name)
                                                        : STATUS_OK;
}

static void delete_subscriptions(void *context, struct http_request *request)
{
    static const struct list_action action = {unsubscribe, are_shards, "Unsubscribe"};
    act_on_list(context, request, &action);
}

/* False, and answered, when a topic was encoded twice. */
static bool is_topic(struct http_request *request, const char *topic)
{
    if (rest_is_encoded_twice(topic)) {
        http_respond_text(
                request, HTTP_BAD_REQUEST, "The topic is URL-encoded twice: %.200s", topic);
        return false;
    }
    return true;
}

static void respond_messages(struct rest_api *api, struct http_request *request,
        enum rest_topic_kind kind, const char *topic)
{
    struct rest_cached *batch;
    struct rest_text text = {0};
    if (!is_topic(request, topic)) {
        return;
    }
    if (rest_take_cached(api->relay_cache, request, kind, topic, &batch) != STATUS_OK) {
        http_respond_text(request, HTTP_NOT_FOUND, "Not subscribed to topic: %.300s", topic);
        return;
    }
    rest_add_batch(&text, batch, REST_FORM_RELAY);
    rest_cached_destroy(&batch);
    rest_respond_json(request, HTTP_OK, &text);
}

static void get_messages(void *context, struct http_request *request)
{
    respond_messages(context, request, REST_PUBSUB_TOPIC, http_request_segment(request, 3));
}

static void get_auto_messages(void *context, struct http_request *request)
{
    respond_messages(context, request, REST_CONTENT_TOPIC, http_request_segment(request, 4));
}

/* Publishing: the request is held until the lane has decided. */

static void end_publish(
        void *context, enum rest_verdict verdict, enum metric reason, size_t peer_count)
{
    struct rest_answer *answer = context;
    char text[REASON_SIZE];
    bool wants_peers = answer->data != NULL;
    if (verdict == REST_REFUSED) {
        rest_answer_send_text(answer, HTTP_BAD_REQUEST, "Failed to publish: %s",
                rest_refusal_text(answer->api, reason, text, sizeof(text)));
    } else if (verdict == REST_ACCEPTED && peer_count == 0 && wants_peers) {
        rest_answer_send_text(answer, HTTP_BAD_REQUEST,
                "Failed to publish: publish failed in relay: NoPeersToPublish");
    } else {
        rest_answer_send_text(answer, HTTP_OK, "OK");
    }
}

/* wants_peers: nobody to send it to is a failure. */
static void publish(struct rest_api *api, struct http_request *request, struct span topic,
        const struct waku_message_view *fields, bool wants_peers)
{
    const struct rest_services *services = services_of(api);
    struct rest_answer *answer = rest_answer_begin(api, request);
    if (answer == NULL) {
        return;
    }
    answer->data = wants_peers ? answer : NULL;
    enum status status = services->publish(services->context, topic, fields, end_publish, answer);
    if (status == STATUS_NOT_FOUND && wants_peers) {
        rest_answer_send_text(answer, HTTP_BAD_REQUEST,
                "Failed to publish: publish failed in relay: NoPeersToPublish, the node is not "
                "subscribed to %.*s",
                (int)topic.length, (const char *)topic.bytes);
    } else if (status == STATUS_NOT_FOUND) {
        rest_answer_send_text(answer, HTTP_BAD_REQUEST,
                "Failed to publish: Node not subscribed to topic: %.*s", (int)topic.length,
                (const char *)topic.bytes);
    } else if (status == STATUS_TOO_LARGE) {
        char text[REASON_SIZE];
        rest_answer_send_text(answer, HTTP_BAD_REQUEST, "Failed to publish: %s",
                rest_refusal_text(api, LEDGER_INTAKE_TOO_LARGE, text, sizeof(text)));
    } else if (status != STATUS_OK) {
        rest_answer_send_text(
                answer, HTTP_UNAVAILABLE, "Failed to publish: %s", status_text(status));
    }
}

/* False, and answered, when it is none. */
static bool take_message(
        struct rest_api *api, struct http_request *request, struct rest_message *message)
{
    struct rest_error error = {0};
    if (!rest_has_json_body(request)) {
        return false;
    }
    enum status status = rest_message_parse(
            message, http_request_body(request), clock_wall_ns(), api->options.is_strict, &error);
    if (status != STATUS_OK) {
        rest_respond_bad_body(request, status, &error);
    }
    return status == STATUS_OK;
}

static void post_messages(void *context, struct http_request *request)
{
    struct rest_api *api = context;
    const struct rest_services *services = services_of(api);
    const char *topic = http_request_segment(request, 3);
    struct rest_message message;
    if (!is_topic(request, topic)) {
        return;
    }
    if (!services->is_joined(services->context, span_of_text(topic))) {
        http_respond_text(request, HTTP_BAD_REQUEST,
                "Failed to publish: Node not subscribed to topic: %.300s", topic);
        return;
    }
    if (take_message(api, request, &message)) {
        publish(api, request, span_of_text(topic), &message.fields, false);
        rest_message_fini(&message);
    }
}

static void respond_no_shard(struct http_request *request, const char *what, enum status status)
{
    if (status == STATUS_UNSUPPORTED) {
        http_respond_text(request, HTTP_BAD_REQUEST, "%s Autosharding is disabled", what);
    } else {
        http_respond_text(
                request, HTTP_BAD_REQUEST, "%s Autosharding error: %s", what, status_text(status));
    }
}

static void post_auto_messages(void *context, struct http_request *request)
{
    struct rest_api *api = context;
    const struct rest_services *services = services_of(api);
    struct rest_message message;
    char name[SHARD_TOPIC_MAX_BYTES];
    struct span topic;
    if (!take_message(api, request, &message)) {
        return;
    }
    enum status status =
            rest_shard_of(api, name, sizeof(name), &topic, message.fields.content_topic);
    if (status == STATUS_OK) {
        /* On a shard of ours the message is stored and served, though there be no peer to relay to. */
        bool is_joined = services->is_joined(services->context, topic);
        publish(api, request, topic, &message.fields, !is_joined);
    } else {
        respond_no_shard(request, "Failed to publish.", status);
    }
    rest_message_fini(&message);
}

/* Subscriptions by content topic. */

/* False, and answered, when one has no shard. */
static bool have_shards(struct rest_api *api, struct http_request *request,
        const struct rest_list *list, const char *verb)
{
    char what[32];
    char name[SHARD_TOPIC_MAX_BYTES];
    struct span topic;
    for (size_t i = 0; i < list->count; i++) {
        enum status status =
                rest_shard_of(api, name, sizeof(name), &topic, span_of_text(list->items[i]));
        if (status != STATUS_OK) {
            snprintf(what, sizeof(what), "%s failed:", verb);
            respond_no_shard(request, what, status);
            return false;
        }
    }
    return true;
}

static enum status subscribe_content(struct rest_api *api, struct span content_topic)
{
    const struct rest_services *services = services_of(api);
    char name[SHARD_TOPIC_MAX_BYTES];
    struct span topic;
    enum status status = rest_shard_of(api, name, sizeof(name), &topic, content_topic);
    if (status == STATUS_OK) {
        status = rest_cache_subscribe(api->relay_cache, REST_CONTENT_TOPIC, content_topic);
    }
    if (status == STATUS_OK && !services->is_joined(services->context, topic)) {
        status = services->join(services->context, topic);
    }
    return status;
}

static void post_auto_subscriptions(void *context, struct http_request *request)
{
    static const struct list_action action = {subscribe_content, have_shards, "Subscribe"};
    act_on_list(context, request, &action);
}

/* Looks for content topics of one shard. */
struct shard_search {
    struct rest_api *api;
    struct span shard;
    bool is_found;
};

static void compare_shard(void *context, struct span content_topic)
{
    struct shard_search *search = context;
    char name[SHARD_TOPIC_MAX_BYTES];
    struct span topic;
    if (rest_shard_of(search->api, name, sizeof(name), &topic, content_topic) == STATUS_OK) {
        search->is_found |= span_equal(topic, search->shard);
    }
}

/* Leaves the shard when no other subscription of the REST API is in it. */
static enum status unsubscribe_content(struct rest_api *api, struct span content_topic)
{
    const struct rest_services *services = services_of(api);
    char name[SHARD_TOPIC_MAX_BYTES];
    struct shard_search search = {.api = api};
    rest_cache_unsubscribe(api->relay_cache, REST_CONTENT_TOPIC, content_topic);
    enum status status = rest_shard_of(api, name, sizeof(name), &search.shard, content_topic);
    if (status != STATUS_OK) {
        return status;
    }
    rest_cache_for_each(api->relay_cache, REST_CONTENT_TOPIC, compare_shard, &search);
    if (search.is_found ||
            rest_cache_is_subscribed(api->relay_cache, REST_PUBSUB_TOPIC, search.shard) ||
            !services->is_joined(services->context, search.shard)) {
        return STATUS_OK;
    }
    return services->leave(services->context, search.shard);
}

static void delete_auto_subscriptions(void *context, struct http_request *request)
{
    static const struct list_action action = {unsubscribe_content, have_shards, "Unsubscribe"};
    act_on_list(context, request, &action);
}

const struct http_route rest_relay_routes[] = {
        {HTTP_POST, "/relay/v1/subscriptions", post_subscriptions},
        {HTTP_DELETE, "/relay/v1/subscriptions", delete_subscriptions},
        {HTTP_GET, "/relay/v1/messages/{topic}", get_messages},
        {HTTP_POST, "/relay/v1/messages/{topic}", post_messages},
        {HTTP_POST, "/relay/v1/auto/subscriptions", post_auto_subscriptions},
        {HTTP_DELETE, "/relay/v1/auto/subscriptions", delete_auto_subscriptions},
        {HTTP_GET, "/relay/v1/auto/messages/{topic}", get_auto_messages},
        {HTTP_POST, "/relay/v1/auto/messages", post_auto_messages},
};
const size_t rest_relay_route_count = sizeof(rest_relay_routes) / sizeof(rest_relay_routes[0]);
