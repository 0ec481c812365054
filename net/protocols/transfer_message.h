/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The messages of store-sync's transfer: a stored message with its pubsub topic, each with its length
 * before it.
 *
 * Lifetime: what is read points into the bytes that it was read from.
 * Thread:   any; no state.
 */

#include <stddef.h>
#include <stdint.h>

#include "base/attributes.h"
#include "base/span.h"
#include "base/status.h"

#define TRANSFER_PROTOCOL_ID "/vac/waku/transfer/1.0.0"

enum {
    TRANSFER_BYTES_MAX = 153600, /* the reference reads no longer one; without its length */
    TRANSFER_HEAD_MAX = 24       /* beside the topic's name */
};

struct transfer_message {
    struct span pubsub_topic;
    struct span message; /* the serialised WakuMessage */
};

/* STATUS_TRUNCATED, STATUS_BAD_VARINT, STATUS_BAD_FIELD: also when one of the two is missing. */
MUST_USE enum status transfer_message_read(struct transfer_message *out, struct span bytes);

/* Without its length before it. */
size_t transfer_message_size(struct span pubsub_topic, size_t message_length);

/* All that stands before the message, its length among it. Returns the place behind it. */
uint8_t *transfer_write_head(uint8_t *to, struct span pubsub_topic, size_t message_length);
