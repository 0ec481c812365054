/* SPDX-License-Identifier: MIT */
#include "tests/support/parts.h"

#include <stdlib.h>
#include <string.h>

#include "codec/waku_message.h"

struct frame_part *test_part_of_bytes(const struct topic *topic, struct span message)
{
    struct frame *frame = frame_try_create(NULL, FRAME_BUDGET_COMPLETE, message.length);
    if (frame == NULL) {
        abort();
    }
    if (message.length > 0) {
        memcpy(frame_bytes(frame), message.bytes, message.length);
    }
    struct frame_part *part = frame_add_part(frame);
    if (part == NULL) {
        abort();
    }
    part->topic = topic;
    part->message = span_of(frame_bytes(frame), message.length);
    part->received_ns = TEST_RECEIVED_NS;
    part->received_monotonic_ns = (uint64_t)TEST_RECEIVED_NS;
    part->connection = 1;
    part->completion = NULL;
    part->origin = ORIGIN_MESH;
    part->has_signed_fields = false;
    frame_unref(frame);
    return part;
}

struct frame_part *test_part(const struct topic *topic, const struct test_message *message)
{
    struct waku_message_view fields = {
            .payload = span_of_text(message->payload != NULL ? message->payload : ""),
            .content_topic = span_of_text(message->content_topic),
            .meta = span_of_text(message->meta != NULL ? message->meta : ""),
            .timestamp_ns = message->timestamp_ns,
            .has_payload = message->payload != NULL,
            .has_content_topic = true,
            .has_timestamp = message->timestamp_ns != 0,
            .ephemeral = message->ephemeral,
    };
    size_t size = waku_message_size(&fields);
    uint8_t *bytes = malloc(size);
    if (bytes == NULL || waku_message_encode(bytes, size, &fields) != size) {
        abort();
    }
    struct frame_part *part = test_part_of_bytes(topic, span_of(bytes, size));
    free(bytes);
    return part;
}
