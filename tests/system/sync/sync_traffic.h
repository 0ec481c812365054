/* SPDX-License-Identifier: MIT */
#pragma once

/* Messages of any age, put into a node as if a peer had transferred them. */

#include <stdint.h>

#include "base/clock.h"
#include "codec/wire.h"
#include "queues/frame.h"
#include "router/intake.h"
#include "tests/support/cmocka.h"
#include "tests/support/live_node.h"

enum {
    TRAFFIC_MESSAGE_MAX = 256
};

/* A WakuMessage that is determined by number and timestamp. Returns its length. */
static inline size_t traffic_message(
        uint8_t out[TRAFFIC_MESSAGE_MAX], uint64_t number, int64_t timestamp_ns)
{
    uint8_t *end =
            wire_write_bytes(out, WIRE_TAG(1, WIRE_LENGTH), span_of(&number, sizeof(number)));
    end = wire_write_bytes(end, WIRE_TAG(2, WIRE_LENGTH), span_of_text("/test/1/sync/proto"));
    end = wire_write_number(end, WIRE_TAG(10, WIRE_VARINT), varint_zigzag(timestamp_ns));
    return (size_t)(end - out);
}

static inline void traffic_post(struct live_node *live, struct span message)
{
    struct frame *frame = node_wait_frame(live->node, message.length);
    assert_non_null(frame);
    memcpy(frame_bytes(frame), message.bytes, message.length);
    struct intake_source source = {.received_ns = clock_wall_ns(),
            .received_monotonic_ns = clock_monotonic_ns(),
            .origin = ORIGIN_SYNC};
    assert_int_equal(
            intake_post_message(node_intake(live->node), frame, live->topic, &source, NULL),
            STATUS_OK);
}

/* count messages, one a nanosecond from first_ns on. */
static inline void traffic_fill(
        struct live_node *live, uint64_t first, uint64_t count, int64_t first_ns)
{
    for (uint64_t i = 0; i < count; i++) {
        uint8_t message[TRAFFIC_MESSAGE_MAX];
        size_t length = traffic_message(message, first + i, first_ns + (int64_t)i);
        traffic_post(live, span_of(message, length));
    }
}
