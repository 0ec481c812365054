/* SPDX-License-Identifier: MIT */
#include "bench/archive_messages.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "codec/waku_message.h"
#include "queues/topic.h"

enum {
    PAYLOAD_MAX = 1 << 18
};

static const char topic_name[] = "/waku/2/rs/1/0";
static const struct topic topic = {.name = {(const uint8_t *)topic_name, sizeof(topic_name) - 1}};

uint64_t archive_bench_random(void)
{
    static uint64_t state = 42;
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

struct envelope *archive_bench_envelope(const struct archive_message *message)
{
    static uint8_t payload[PAYLOAD_MAX];
    char content_topic[64];
    snprintf(content_topic, sizeof(content_topic), "/bench/1/topic-%u/proto",
            message->number % message->content_topics);
    memcpy(payload, &message->number, sizeof(message->number));
    struct waku_message_view view;
    struct waku_message_view fields = {.payload = span_of(payload, message->payload_bytes),
            .content_topic = span_of_text(content_topic),
            .timestamp_ns = message->timestamp_ns,
            .has_payload = true,
            .has_content_topic = true,
            .has_timestamp = true};
    size_t size = waku_message_size(&fields);
    struct frame *frame = frame_try_create(NULL, FRAME_BUDGET_COMPLETE, size);
    struct envelope *envelope = frame == NULL ? NULL : envelope_create(frame);
    if (envelope == NULL ||
            waku_message_encode_view(frame_bytes(frame), size, &fields, &view) != size) {
        fprintf(stderr, "no memory for a message\n");
        exit(1);
    }
    envelope->message = span_of(frame_bytes(frame), size);
    envelope->payload = view.payload;
    envelope->content_topic = view.content_topic;
    envelope->timestamp_ns = view.timestamp_ns;
    envelope->topic = &topic;
    for (size_t i = 0; i < MESSAGE_HASH_BYTES; i += 8) {
        uint64_t bytes = archive_bench_random();
        memcpy(envelope->hash + i, &bytes, sizeof(bytes));
    }
    return envelope;
}
