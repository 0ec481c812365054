/* SPDX-License-Identifier: MIT */

/* Messages of the application's own: one more producer of a lane's inbox. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/ledger.h"
#include "codec/topics.h"
#include "codec/waku_message.h"
#include "hash/message_hash.h"
#include "node/api_private.h"
#include "node/node_private.h"

/* A publish that somebody wants to hear of, from the call to the callback. */
struct publish {
    struct event_task task;
    struct sluice_node *node;
    sluice_publish_callback *done;
    void *context;
    enum sluice_outcome outcome;
    size_t peer_count;
    enum metric reason;
};

/* The reason in lower case, as it is exported. */
static void write_reason(char *out, size_t size, enum metric reason)
{
    const char *text = "";
    for (size_t i = 0; i < ledger_cell_count; i++) {
        if (ledger_cells[i].metric == reason) {
            text = ledger_cells[i].reason;
        }
    }
    snprintf(out, size, "%s", text);
    api_lower(out);
}

static void tell(struct event_task *task)
{
    struct publish *publish = (struct publish *)task;
    struct sluice_node *node = publish->node;
    char reason[64];
    write_reason(reason, sizeof(reason), publish->reason);
    api_calling_node = node;
    publish->done(publish->context, publish->outcome, publish->peer_count, reason);
    api_calling_node = NULL;
    free(publish);
    /* relaxed: a count of what is under way orders nothing */
    atomic_fetch_sub_explicit(&node->publishes, 1, memory_order_relaxed);
}

void api_take_verdict(
        void *context, void *completion, const struct lane_decision *decision, size_t peer_count)
{
    static const enum sluice_outcome outcomes[] = {
            [LANE_NEW] = SLUICE_SENT,
            [LANE_DUPLICATE] = SLUICE_DUPLICATE,
            [LANE_REFUSED] = SLUICE_REFUSED,
    };
    struct sluice_node *node = context;
    struct publish *publish = completion;
    publish->outcome = outcomes[decision->verdict];
    publish->peer_count = peer_count;
    publish->reason = decision->reason;
    node_post_event_task(node->node, &publish->task);
}

/* NULL when there are too many already, or no memory: *result. */
static struct publish *make_publish(struct sluice_node *node, sluice_publish_callback *done,
        void *context, enum sluice_result *result)
{
    *result = SLUICE_LIMIT_REACHED;
    /* relaxed, here and below: a count of what is under way orders nothing */
    if (atomic_fetch_add_explicit(&node->publishes, 1, memory_order_relaxed) <
            node->publishes_max) {
        struct publish *publish = malloc(sizeof(*publish));
        if (publish != NULL) {
            *publish = (struct publish){
                    .task = {.carry_out = tell}, .node = node, .done = done, .context = context};
            return publish;
        }
        *result = SLUICE_NO_MEMORY;
    }
    atomic_fetch_sub_explicit(&node->publishes, 1, memory_order_relaxed);
    return NULL;
}

static void give_up(struct publish *publish)
{
    if (publish != NULL) {
        /* relaxed: as above */
        atomic_fetch_sub_explicit(&publish->node->publishes, 1, memory_order_relaxed);
        free(publish);
    }
}

enum sluice_result api_shard_topic(const struct sluice_node *node, const char *content_topic,
        char name[SHARD_TOPIC_MAX_BYTES], struct span *out)
{
    struct content_topic parsed;
    struct shard shard = {.cluster = node->cluster};
    if (node->shard_count == 0 ||
            content_topic_parse(&parsed, span_of_text(content_topic)) != STATUS_OK) {
        return SLUICE_BAD_ARGUMENT;
    }
    if (content_topic_shard(&shard.index, &parsed, node->shard_count) != STATUS_OK) {
        return SLUICE_FAILED;
    }
    *out = span_of(name, shard_format(name, shard));
    return SLUICE_OK;
}

static enum sluice_result name_topic(const struct sluice_node *node,
        const struct sluice_message *message, char name[SHARD_TOPIC_MAX_BYTES], struct span *out)
{
    if (message->pubsub_topic == NULL) {
        return api_shard_topic(node, message->content_topic, name, out);
    }
    *out = span_of_text(message->pubsub_topic);
    return SLUICE_OK;
}

static enum sluice_result find_topic(const struct sluice_node *node,
        const struct sluice_message *message, struct local_message *out)
{
    char name[SHARD_TOPIC_MAX_BYTES];
    struct span topic_name;
    enum sluice_result result = name_topic(node, message, name, &topic_name);
    if (result != SLUICE_OK) {
        return result;
    }
    out->topic = node_publish_topic(node->node, topic_name, &out->is_fanout);
    return out->topic != NULL ? SLUICE_OK : SLUICE_NOT_FOUND;
}

struct span api_span(struct sluice_bytes bytes)
{
    return span_of(bytes.data, bytes.size);
}

enum sluice_result api_fields(struct waku_message_view *out, const struct sluice_message *message)
{
    int64_t timestamp = message->timestamp_ns;
    if (message->content_topic == NULL || message->meta.size > WAKU_META_MAX_BYTES) {
        return SLUICE_BAD_ARGUMENT;
    }
    *out = (struct waku_message_view){.payload = api_span(message->payload),
            .content_topic = span_of_text(message->content_topic),
            .meta = api_span(message->meta),
            .timestamp_ns = timestamp != 0 ? timestamp : clock_wall_ns(),
            .version = message->version,
            .has_payload = true,
            .has_content_topic = true,
            .has_timestamp = true,
            .ephemeral = message->is_ephemeral};
    return SLUICE_OK;
}

static enum sluice_result post(
        struct sluice_node *node, const struct sluice_message *message, struct publish *publish)
{
    struct waku_message_view fields;
    struct local_message local = {.fields = &fields, .completion = publish};
    enum sluice_result result = api_fields(&fields, message);
    if (result == SLUICE_OK) {
        result = find_topic(node, message, &local);
    }
    if (result != SLUICE_OK) {
        return result;
    }
    struct frame *frame = NULL;
    if (!intake_is_behind(node_intake(node->node))) {
        frame = frame_try_create(
                node_budget(node->node), FRAME_BUDGET_COMPLETE, waku_message_size(&fields));
    }
    if (frame == NULL) {
        return SLUICE_LIMIT_REACHED;
    }
    struct intake_source source = {.received_ns = clock_wall_ns(),
            .received_monotonic_ns = clock_monotonic_ns(),
            .origin = ORIGIN_API};
    enum status status = intake_post_fields(node_intake(node->node), frame, &local, &source);
    if (status != STATUS_OK) {
        frame_unref(frame);
    }
    return api_result(status);
}

enum sluice_result sluice_node_publish(struct sluice_node *node,
        const struct sluice_message *message, sluice_publish_callback *done, void *context)
{
    enum sluice_result result = SLUICE_OK;
    struct publish *publish = NULL;
    if (!api_enter(node)) {
        return SLUICE_NOT_RUNNING;
    }
    if (done != NULL) {
        publish = make_publish(node, done, context, &result);
    }
    if (done == NULL || publish != NULL) {
        result = post(node, message, publish);
        if (result != SLUICE_OK) {
            give_up(publish);
        }
    }
    api_leave(node);
    return result;
}

enum sluice_result sluice_message_hash(const struct sluice_node *node,
        const struct sluice_message *message, uint8_t out[SLUICE_HASH_BYTES])
{
    char name[SHARD_TOPIC_MAX_BYTES];
    struct waku_message_view fields;
    struct message_hash_input input = {.timestamp_ns = message->timestamp_ns};
    enum sluice_result result = api_fields(&fields, message);
    if (result == SLUICE_OK) {
        result = message->timestamp_ns != 0 ? name_topic(node, message, name, &input.pubsub_topic)
                                            : SLUICE_BAD_ARGUMENT;
    }
    if (result != SLUICE_OK) {
        return result;
    }
    input.payload = fields.payload;
    input.content_topic = fields.content_topic;
    input.meta = fields.meta;
    message_hash(out, &input);
    return SLUICE_OK;
}
