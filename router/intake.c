/* SPDX-License-Identifier: MIT */
#include "router/intake.h"

#include <assert.h>
#include <stdbool.h>

#include "base/memory.h"
#include "base/metrics.h"

_Static_assert(INTAKE_LANES_MAX <= 32, "lanes to be woken are the bits of a uint32_t");

static void wake_lanes(const struct intake *intake, uint32_t lanes)
{
    for (size_t i = 0; i < intake->lane_count; i++) {
        if ((lanes >> i & 1) != 0) {
            inbox_wake(intake->lanes[i]);
        }
    }
}

static void fill_source(struct frame_part *part, const struct intake_source *source)
{
    part->received_ns = source->received_ns;
    part->received_monotonic_ns = source->received_monotonic_ns;
    part->connection = source->connection;
    part->origin = source->origin;
}

static void refuse_unposted(enum metric reason)
{
    metrics_add(LEDGER_INTAKE_RECEIVED, 1);
    metrics_add(reason, 1);
}

static const struct topic *find_topic(const struct intake *intake, struct span name)
{
    const struct topic *topic = topic_registry_find_subscribed(intake->topics, name);
    if (topic == NULL && intake->unknown_topic != NULL) {
        topic = intake->unknown_topic(intake->unknown_context, name);
    }
    return topic;
}

static bool post_entry(const struct intake *intake, struct frame *frame,
        const struct gossip_entry *entry, const struct intake_source *source, uint32_t *lanes)
{
    const struct topic *topic = find_topic(intake, entry->topic);
    if (topic == NULL) {
        refuse_unposted(LEDGER_INTAKE_TOPIC_NOT_SUBSCRIBED);
        return false;
    }
    struct frame_part *part = frame_add_part(frame);
    if (part == NULL) {
        refuse_unposted(LEDGER_INTAKE_NO_MEMORY);
        return false;
    }
    fill_source(part, source);
    part->topic = topic;
    part->message = entry->data;
    part->has_signed_fields = entry->has_signed_fields;
    part->completion = NULL;
    inbox_push(intake->lanes[topic->lane], &part->link);
    *lanes |= 1U << topic->lane;
    return true;
}

enum status intake_post_rpc(const struct intake *intake, struct frame *frame,
        const struct intake_source *source, size_t *posted)
{
    struct gossip_reader reader;
    struct gossip_entry entry;
    struct span rpc = span_of(frame_bytes(frame), frame_length(frame));
    uint32_t lanes = 0;
    *posted = 0;
    enum status status = gossip_reader_init(&reader, rpc, &gossip_limits_default);
    while (status == STATUS_OK && gossip_reader_next(&reader, &entry)) {
        if (entry.kind == GOSSIP_PUBLISH) {
            *posted += post_entry(intake, frame, &entry, source, &lanes);
        } else if (source->control != NULL) {
            source->control(source->control_context, &entry);
        }
    }
    wake_lanes(intake, lanes);
    frame_unref_posted(frame);
    return status;
}

/* What is posted besides the frame it stands in. */
struct posted_message {
    struct span bytes;
    const struct topic *topic;
    void *completion;
    void *fields; /* what the part shall own, or NULL */
    bool is_fanout;
};

static enum status post_local(const struct intake *intake, struct frame *frame,
        const struct intake_source *source, const struct posted_message *message)
{
    struct frame_part *part = frame_add_part(frame);
    if (part == NULL) {
        return STATUS_NO_MEMORY;
    }
    fill_source(part, source);
    part->topic = message->topic;
    part->message = message->bytes;
    part->has_signed_fields = false;
    part->completion = message->completion;
    part->fields = message->fields;
    part->is_fanout = message->is_fanout;
    if (intake->pace != NULL && message_origin_is_publisher(source->origin)) {
        relay_pace_add(intake->pace, message->bytes.length);
    }
    frame_unref(frame);
    struct inbox *lane = intake->lanes[message->topic->lane];
    inbox_push(lane, &part->link);
    inbox_wake(lane);
    return STATUS_OK;
}

enum status intake_post_part(const struct intake *intake, struct frame *frame,
        const struct local_message *message, const struct intake_source *source)
{
    struct posted_message posted = {.bytes = message->bytes,
            .topic = message->topic,
            .completion = message->completion,
            .is_fanout = message->is_fanout};
    return post_local(intake, frame, source, &posted);
}

enum status intake_post_message(const struct intake *intake, struct frame *frame,
        const struct topic *topic, const struct intake_source *source, void *completion)
{
    struct posted_message posted = {.bytes = span_of(frame_bytes(frame), frame_length(frame)),
            .topic = topic,
            .completion = completion};
    return post_local(intake, frame, source, &posted);
}

enum status intake_post_fields(const struct intake *intake, struct frame *frame,
        const struct local_message *message, const struct intake_source *source)
{
    struct waku_message_view *encoded = memory_allocate(sizeof(*encoded));
    if (encoded == NULL) {
        return STATUS_NO_MEMORY;
    }
    size_t length = frame_length(frame);
    size_t written = waku_message_encode_view(frame_bytes(frame), length, message->fields, encoded);
    assert(written == length);
    (void)written;
    struct posted_message posted = {.bytes = span_of(frame_bytes(frame), length),
            .topic = message->topic,
            .completion = message->completion,
            .fields = encoded,
            .is_fanout = message->is_fanout};
    enum status status = post_local(intake, frame, source, &posted);
    if (status != STATUS_OK) {
        memory_free(encoded);
    }
    return status;
}

bool intake_is_behind(const struct intake *intake)
{
    return intake->pace != NULL && relay_pace_is_full(intake->pace);
}

void intake_post_event(const struct intake *intake, size_t lane, struct lane_event *event)
{
    inbox_push(intake->events[lane], &event->link);
    inbox_wake(intake->lanes[lane]);
}
