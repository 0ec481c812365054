/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The messages of lightpush v3 and of the legacy protocol, read where they lie.
 *
 * Lifetime: what is read points into the bytes that it was read from.
 * Thread:   any; no state.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/attributes.h"
#include "base/span.h"
#include "base/status.h"

#define LIGHTPUSH_PROTOCOL_ID        "/vac/waku/lightpush/3.0.0"
#define LIGHTPUSH_LEGACY_PROTOCOL_ID "/vac/waku/lightpush/2.0.0-beta1"

enum {
    LIGHTPUSH_REQUEST_ID_MAX = 1024,
    LIGHTPUSH_DESCRIPTION_MAX = 256,
    LIGHTPUSH_ANSWER_MAX = LIGHTPUSH_REQUEST_ID_MAX + LIGHTPUSH_DESCRIPTION_MAX + 64
};

enum lightpush_version {
    LIGHTPUSH_LEGACY,
    LIGHTPUSH_V3
};

struct lightpush_request {
    struct span request_id; /* empty: there is none */
    struct span pubsub_topic;
    struct span message;
    bool has_pubsub_topic;
    bool has_message;
};

/* STATUS_TRUNCATED, STATUS_BAD_VARINT, STATUS_BAD_FIELD: no protobuf message. */
MUST_USE enum status lightpush_request_read(
        struct lightpush_request *out, struct span bytes, enum lightpush_version version);

/* The bytes before request->message, at most size_max; has_pubsub_topic as it says. */
size_t lightpush_request_head_max(const struct lightpush_request *request);
size_t lightpush_request_write_head(
        uint8_t *to, const struct lightpush_request *request, enum lightpush_version version);

/* The content topic of a serialised WakuMessage, for its shard; empty when there is none. */
struct span lightpush_content_topic(struct span message);

struct lightpush_answer {
    struct span request_id;
    struct span description; /* at most LIGHTPUSH_DESCRIPTION_MAX bytes when written */
    uint32_t code;           /* legacy: 200 or, for a failure, 0 when read */
    uint32_t relay_peer_count;
    bool has_relay_peer_count; /* legacy: never */
};

/* to has room for LIGHTPUSH_ANSWER_MAX; an id above LIGHTPUSH_REQUEST_ID_MAX is left out. */
size_t lightpush_answer_write(
        uint8_t *to, const struct lightpush_answer *answer, enum lightpush_version version);
MUST_USE enum status lightpush_answer_read(
        struct lightpush_answer *out, struct span bytes, enum lightpush_version version);
