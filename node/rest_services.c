/* SPDX-License-Identifier: MIT */

/* What the REST API asks a node for: its addresses, its topics, publishing. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "node/health.h"
#include "node/lightpush.h"
#include "node/network.h"
#include "node/rest_private.h"

static bool address_at(void *context, size_t i, char *out, size_t size)
{
    const struct rest *rest = context;
    struct multiaddr address;
    char text[MULTIADDR_TEXT_SIZE];
    if (rest->node->network == NULL || !network_address_at(rest->node->network, i, &address)) {
        return false;
    }
    snprintf(out, size, "%s", multiaddr_print(text, &address));
    return true;
}

static char *health(void *context)
{
    const struct rest *rest = context;
    return node_health_text(rest->node);
}

static enum status join(void *context, struct span pubsub_topic)
{
    const struct rest *rest = context;
    return node_subscribe_topic(rest->node, NULL, pubsub_topic);
}

static enum status leave(void *context, struct span pubsub_topic)
{
    const struct rest *rest = context;
    return node_unsubscribe_topic(rest->node, pubsub_topic);
}

static bool is_joined(void *context, struct span pubsub_topic)
{
    const struct rest *rest = context;
    return topic_registry_find_subscribed(rest->node->topics, pubsub_topic) != NULL;
}

static bool joined_at(void *context, size_t i, struct span *pubsub_topic)
{
    const struct rest *rest = context;
    const struct topic_registry *topics = rest->node->topics;
    uint32_t count = topic_registry_count(topics);
    for (uint32_t at = 0; at < count; at++) {
        const struct topic *topic = topic_registry_at(topics, at);
        if (topic_registry_is_subscribed(topics, topic) && i-- == 0) {
            *pubsub_topic = topic->name;
            return true;
        }
    }
    return false;
}

/* Publishing: one more producer of a lane's inbox. */

struct rest_publish {
    rest_published *done;
    void *context;
};

/* On the lane's decode thread. */
void rest_settle(
        void *context, void *completion, const struct lane_decision *decision, size_t peer_count)
{
    static const enum rest_verdict verdicts[] = {[LANE_NEW] = REST_ACCEPTED,
            [LANE_DUPLICATE] = REST_DUPLICATE,
            [LANE_REFUSED] = REST_REFUSED};
    struct rest_publish *publish = completion;
    (void)context;
    publish->done(publish->context, verdicts[decision->verdict], decision->reason, peer_count);
    free(publish);
}

static enum status post(struct rest *rest, const struct local_message *local)
{
    struct intake_source source = {.received_ns = clock_wall_ns(),
            .received_monotonic_ns = clock_monotonic_ns(),
            .origin = ORIGIN_REST};
    size_t size = waku_message_size(local->fields);
    if (size > rest->message_bytes_max) {
        return STATUS_TOO_LARGE;
    }
    struct frame *frame = NULL;
    if (!intake_is_behind(&rest->node->intake)) {
        frame = frame_try_create(rest->node->budget, FRAME_BUDGET_COMPLETE, size);
    }
    if (frame == NULL) {
        return STATUS_LIMIT_REACHED;
    }
    enum status status = intake_post_fields(&rest->node->intake, frame, local, &source);
    if (status != STATUS_OK) {
        frame_unref(frame);
    }
    return status;
}

static enum status publish(void *context, struct span pubsub_topic,
        const struct waku_message_view *fields, rest_published *done, void *done_context)
{
    struct rest *rest = context;
    struct local_message local = {.fields = fields};
    local.topic = node_publish_topic(rest->node, pubsub_topic, &local.is_fanout);
    if (local.topic == NULL) {
        return STATUS_NOT_FOUND;
    }
    struct rest_publish *completion = malloc(sizeof(*completion));
    if (completion == NULL) {
        return STATUS_NO_MEMORY;
    }
    *completion = (struct rest_publish){.done = done, .context = done_context};
    local.completion = completion;
    enum status status = post(rest, &local);
    if (status != STATUS_OK) {
        free(completion);
    }
    return status;
}

/* Through a service peer. */

struct pushed {
    rest_pushed *done;
    void *context;
};

static void end_push(void *context, const struct node_push_outcome *outcome)
{
    struct pushed *push = context;
    struct rest_push_outcome result = {.code = outcome->code,
            .has_relay_peer_count = outcome->has_relay_peer_count,
            .relay_peer_count = outcome->relay_peer_count,
            .description = outcome->description};
    push->done(push->context, &result);
    free(push);
}

static enum status push_encoded(
        struct rest *rest, const struct node_push *push, rest_pushed *done, void *done_context)
{
    struct pushed *completion = malloc(sizeof(*completion));
    if (completion == NULL) {
        return STATUS_NO_MEMORY;
    }
    *completion = (struct pushed){.done = done, .context = done_context};
    enum status status = node_push(rest->node, push, end_push, completion);
    if (status != STATUS_OK) {
        free(completion);
    }
    return status;
}

static enum status push(
        void *context, const struct rest_peer_push *asked, rest_pushed *done, void *done_context)
{
    size_t size = waku_message_size(asked->fields);
    uint8_t *bytes = malloc(size + 1);
    if (bytes == NULL) {
        return STATUS_NO_MEMORY;
    }
    size_t length = waku_message_encode(bytes, size, asked->fields);
    struct node_push request = {.version = asked->is_legacy ? LIGHTPUSH_LEGACY : LIGHTPUSH_V3,
            .message = span_of(bytes, length)};
    if (asked->pubsub_topic != NULL) {
        request.pubsub_topic = span_of_text(asked->pubsub_topic);
    }
    enum status status = push_encoded(context, &request, done, done_context);
    free(bytes);
    return status;
}

void rest_fill_services(struct rest *rest, struct rest_services *services)
{
    bool has_network = rest->node->hooks.has_network;
    *services = (struct rest_services){.context = rest,
            .address_at = address_at,
            .enr = rest_enr,
            .health = health,
            .join = join,
            .leave = leave,
            .is_joined = is_joined,
            .joined_at = joined_at,
            .publish = publish,
            .push = has_network ? push : NULL,
            .filter = has_network ? rest_ask_filter : NULL,
            .query = rest_query,
            .peers = has_network ? rest_list_peers : NULL,
            .dial = has_network ? rest_dial : NULL,
            .is_peer_id = rest_is_peer_id,
            .disconnect = rest_disconnect,
            .sync_now = has_network ? rest_sync_now : NULL,
            .subscribers = rest->serves_filter ? rest_list_subscribers : NULL};
}
