/* SPDX-License-Identifier: MIT */
#pragma once

/* Frame parts as an io thread would post them, for tests of what stands behind the inbox. */

#include <stdint.h>

#include "queues/frame.h"
#include "queues/topic.h"

/* The time of receipt of all test parts: 2024-01-01T00:00:00Z. */
#define TEST_RECEIVED_NS ((int64_t)1704067200000000000)

/* A part whose message is exactly these bytes. Destroy with frame_part_destroy. */
struct frame_part *test_part_of_bytes(const struct topic *topic, struct span message);

/* A WakuMessage with these fields; payload NULL: none. */
struct test_message {
    const char *payload;
    const char *content_topic;
    const char *meta;
    int64_t timestamp_ns;
    bool ephemeral;
};

struct frame_part *test_part(const struct topic *topic, const struct test_message *message);
