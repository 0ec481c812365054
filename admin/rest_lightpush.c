/* SPDX-License-Identifier: MIT */

/*
 * /lightpush: a message goes through a service peer, or where lightpush is served here through this
 * node itself. v1 answers with texts, v3 with the codes of lightpush v3 and JSON.
 */

#include <stdio.h>
#include <string.h>

#include "admin/rest_private.h"
#include "base/clock.h"
#include "codec/topics.h"

enum {
    CODE_INVALID_MESSAGE = 420,
    CODE_UNSUPPORTED_TOPIC = 421,
    CODE_NO_RELAY_PEERS = 505,
    DESCRIPTION_SIZE = 256
};

static const char no_peer[] = "No suitable service peer & no discovery method";

/* Codes of lightpush v3 that HTTP does not have, or has for something else. */
static unsigned http_status_of(uint32_t code)
{
    if (code == CODE_INVALID_MESSAGE) {
        return HTTP_BAD_REQUEST;
    }
    return code >= 200 && code <= 599 ? code : HTTP_INTERNAL_ERROR;
}

static void add_outcome(struct rest_text *text, const struct rest_push_outcome *outcome)
{
    if (outcome->code == HTTP_OK) {
        rest_text_add(text, "{\"relayPeerCount\":");
        rest_text_add_number(text, outcome->has_relay_peer_count ? outcome->relay_peer_count : 0);
    } else {
        rest_text_add(text, "{\"statusDesc\":");
        rest_text_add_string(text, span_of_text(outcome->description));
    }
    rest_text_add(text, "}");
}

static void end_push(void *context, const struct rest_push_outcome *outcome)
{
    struct rest_answer *answer = context;
    answer->status = http_status_of(outcome->code);
    answer->is_json = true;
    add_outcome(&answer->text, outcome);
    rest_answer_send(answer);
}

static void end_legacy_push(void *context, const struct rest_push_outcome *outcome)
{
    struct rest_answer *answer = context;
    if (outcome->code == HTTP_OK) {
        rest_answer_send_text(answer, HTTP_OK, "OK");
    } else if (outcome->code == HTTP_TOO_MANY_REQUESTS) {
        rest_answer_send_text(answer, HTTP_TOO_MANY_REQUESTS, "Request rate limit reached");
    } else if (strcmp(outcome->description, no_peer) == 0) {
        rest_answer_send_text(answer, HTTP_UNAVAILABLE, "%s", no_peer);
    } else {
        rest_answer_send_text(answer, HTTP_UNAVAILABLE, "Failed to request a message push: %s",
                outcome->description);
    }
}

static rest_pushed *end_of(bool is_legacy)
{
    return is_legacy ? end_legacy_push : end_push;
}

static void end_with(
        struct rest_answer *answer, bool is_legacy, uint32_t code, const char *description)
{
    struct rest_push_outcome outcome = {.code = code, .description = description};
    end_of(is_legacy)(answer, &outcome);
}

/* Through this node. */

static void end_published(struct rest_answer *answer, bool is_legacy, enum rest_verdict verdict,
        enum metric reason, size_t peer_count)
{
    char text[DESCRIPTION_SIZE];
    const char *why = rest_refusal_text(answer->api, reason, text, sizeof(text));
    if (verdict == REST_ACCEPTED && peer_count > 0) {
        struct rest_push_outcome outcome = {.code = HTTP_OK,
                .has_relay_peer_count = true,
                .relay_peer_count = (uint32_t)peer_count,
                .description = ""};
        end_of(is_legacy)(answer, &outcome);
    } else if (verdict == REST_ACCEPTED || (verdict == REST_DUPLICATE && is_legacy)) {
        end_with(answer, is_legacy, is_legacy ? (uint32_t)HTTP_UNAVAILABLE : CODE_NO_RELAY_PEERS,
                is_legacy ? "not_published_to_any_peer" : "No peers for topic, skipping publish");
    } else {
        bool is_large = reason == LEDGER_INTAKE_TOO_LARGE;
        end_with(answer, is_legacy, is_large ? HTTP_CONTENT_TOO_LARGE : CODE_INVALID_MESSAGE, why);
    }
}

static void end_publish(
        void *context, enum rest_verdict verdict, enum metric reason, size_t peer_count)
{
    end_published(context, false, verdict, reason, peer_count);
}

static void end_legacy_publish(
        void *context, enum rest_verdict verdict, enum metric reason, size_t peer_count)
{
    end_published(context, true, verdict, reason, peer_count);
}

static void publish_here(struct rest_answer *answer, const struct rest_push *push, bool is_legacy)
{
    const struct rest_api *api = answer->api;
    const struct rest_services *services = &api->options.services;
    const struct waku_message_view *fields = &push->message.fields;
    char name[SHARD_TOPIC_MAX_BYTES];
    struct span topic;
    enum status status = STATUS_OK;
    if (push->pubsub_topic != NULL) {
        topic = span_of_text(push->pubsub_topic);
    } else {
        status = rest_shard_of(api, name, sizeof(name), &topic, fields->content_topic);
    }
    if (status != STATUS_OK) {
        end_with(answer, is_legacy, CODE_INVALID_MESSAGE,
                status == STATUS_UNSUPPORTED
                        ? "Pubsub topic must be specified when static sharding is enabled"
                        : "Invalid content-topic: it has no shard");
        return;
    }
    status = services->publish(
            services->context, topic, fields, is_legacy ? end_legacy_publish : end_publish, answer);
    if (status == STATUS_NOT_FOUND) {
        end_with(answer, is_legacy, CODE_UNSUPPORTED_TOPIC,
                is_legacy ? "not_published_to_any_peer" : "Node not subscribed to topic");
    } else if (status == STATUS_TOO_LARGE) {
        end_published(answer, is_legacy, REST_REFUSED, LEDGER_INTAKE_TOO_LARGE, 0);
    } else if (status != STATUS_OK) {
        end_with(answer, is_legacy, HTTP_UNAVAILABLE, status_text(status));
    }
}

/* Through a peer. */

static void push_to_peer(struct rest_answer *answer, const struct rest_push *push, bool is_legacy)
{
    const struct rest_services *services = &answer->api->options.services;
    struct rest_peer_push content = {.is_legacy = is_legacy,
            .pubsub_topic = push->pubsub_topic,
            .fields = &push->message.fields};
    enum status status = services->push == NULL ? STATUS_NOT_FOUND
                                                : services->push(services->context, &content,
                                                          end_of(is_legacy), answer);
    if (status != STATUS_OK) {
        end_with(answer, is_legacy, HTTP_UNAVAILABLE,
                status == STATUS_NOT_FOUND ? no_peer : status_text(status));
    }
}

static void respond_bad_push(struct http_request *request, bool is_legacy, enum status status,
        const struct rest_error *error)
{
    char description[sizeof(error->text) + 64];
    struct rest_text text = {0};
    if (is_legacy && error->is_base64) {
        http_respond_text(request, HTTP_BAD_REQUEST, "Invalid message: %s", error->text);
        return;
    }
    if (is_legacy || status == STATUS_NO_MEMORY) {
        rest_respond_bad_body(request, status, error);
        return;
    }
    snprintf(description, sizeof(description), "Invalid %s! %s",
            error->is_base64 ? "message" : "push request", error->text);
    struct rest_push_outcome outcome = {.code = HTTP_BAD_REQUEST, .description = description};
    add_outcome(&text, &outcome);
    rest_respond_json(request, HTTP_BAD_REQUEST, &text);
}

static void push(struct rest_api *api, struct http_request *request, bool is_legacy)
{
    struct rest_push content;
    struct rest_error error = {0};
    const char *fault = rest_body_fault(request);
    if (fault != NULL && is_legacy) {
        http_respond_text(request, HTTP_BAD_REQUEST, "%s", fault);
        return;
    }
    if (fault != NULL) {
        snprintf(error.text, sizeof(error.text), "%s", fault);
        respond_bad_push(request, is_legacy, STATUS_BAD_FIELD, &error);
        return;
    }
    enum status status = rest_push_parse(
            &content, http_request_body(request), clock_wall_ns(), api->options.is_strict, &error);
    if (status != STATUS_OK) {
        respond_bad_push(request, is_legacy, status, &error);
        return;
    }
    struct rest_answer *answer = rest_answer_begin(api, request);
    if (answer != NULL && api->options.pushes_through_peer) {
        push_to_peer(answer, &content, is_legacy);
    } else if (answer != NULL) {
        publish_here(answer, &content, is_legacy);
    }
    rest_push_fini(&content);
}

static void post_v1(void *context, struct http_request *request)
{
    push(context, request, true);
}

static void post_v3(void *context, struct http_request *request)
{
    push(context, request, false);
}

const struct http_route rest_lightpush_routes[] = {
        {HTTP_POST, "/lightpush/v1/message", post_v1},
        {HTTP_POST, "/lightpush/v3/message", post_v3},
};
const size_t rest_lightpush_route_count =
        sizeof(rest_lightpush_routes) / sizeof(rest_lightpush_routes[0]);
