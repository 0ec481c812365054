/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * A serialised WakuMessage seen where it lies: the fields are spans of the received bytes, so that
 * decoding touches only tags and lengths.
 *
 * Lifetime: a view is good as long as the bytes it was decoded from.
 * Thread:   any; no state.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/attributes.h"
#include "base/span.h"
#include "base/status.h"

enum {
    WAKU_META_MAX_BYTES = 64
};

struct waku_message_view {
    struct span payload;
    struct span content_topic;
    struct span meta;
    struct span rate_limit_proof;
    int64_t timestamp_ns; /* 0 when absent */
    uint32_t version;     /* 0 when absent; wider numbers lose their upper bits, as in protobuf */
    uint32_t unknown_field_count;
    bool has_payload; /* present, even with zero bytes; so for the others */
    bool has_content_topic;
    bool has_timestamp;
    bool ephemeral;
};

/*
 * Syntax only. The last of a repeated field wins, fields that are not known (or known with another
 * wire type) are skipped and counted. STATUS_TRUNCATED, STATUS_BAD_VARINT or STATUS_BAD_FIELD: the
 * bytes are no protobuf message, and out is undefined. Counts METRIC_DECODES and DECODED_BYTES.
 */
MUST_USE enum status waku_message_decode(struct waku_message_view *out, struct span bytes);

/* Defaults: waku_message_limits_default. */
struct waku_message_limits {
    size_t meta_bytes; /* WAKU_META_MAX_BYTES */
};

extern const struct waku_message_limits waku_message_limits_default;

/*
 * Whether the network takes such a message; the first that applies:
 *
 *   payload absent                       STATUS_PAYLOAD_MISSING (present with zero bytes is good)
 *   content topic absent or zero bytes   STATUS_CONTENT_TOPIC_MISSING
 *   content topic is not UTF-8           STATUS_BAD_TOPIC
 *   meta longer than the limit           STATUS_META_TOO_LONG
 *
 * A content topic has no length limit but the message's, and need not have the form that
 * autosharding asks for. The reference takes the empty and the non-UTF-8 topic, go and js refuse
 * the first, and go the second: such a message can be neither subscribed to, nor queried, nor shown
 * as JSON, so it is refused here; but a peer that forwards it may be honest.
 */
MUST_USE enum status waku_message_check(
        const struct waku_message_view *view, const struct waku_message_limits *limits);

/* The bytes waku_message_encode writes for these fields. */
size_t waku_message_size(const struct waku_message_view *fields);

/*
 * Writes the fields in order of their numbers, which is how the other implementations write them.
 * Left out: what has_... says is absent, version 0, ephemeral false, empty meta and proof. Returns
 * the bytes written, 0 when capacity is below waku_message_size. The payload is a counted copy.
 */
size_t waku_message_encode(uint8_t *out, size_t capacity, const struct waku_message_view *fields);

/* The same; view has the fields as they lie in out, as if they had been decoded from there. */
size_t waku_message_encode_view(uint8_t *out, size_t capacity,
        const struct waku_message_view *fields, struct waku_message_view *view);
