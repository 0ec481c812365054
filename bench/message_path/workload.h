/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The reference's workload: seed 42, payloads of 10, 50 and 150 kB at 25, 50 and 25 %, a unique
 * 8-byte prefix each, one content topic, the time of building as timestamp.
 */

#include <stddef.h>
#include <stdint.h>

#include "base/attributes.h"
#include "base/span.h"
#include "base/status.h"
#include "codec/waku_message.h"

enum {
    WORKLOAD_SEED = 42
};

#define WORKLOAD_PUBSUB_TOPIC  "/waku/2/rs/66/0"
#define WORKLOAD_CONTENT_TOPIC "/bench/1/message-path/proto"

struct workload {
    size_t count;
    size_t *payload_bytes;  /* of message i */
    uint64_t message_bytes; /* serialised, all together */
};

/* Decides the sizes of count messages. */
MUST_USE enum status workload_create(struct workload *out, size_t count, uint64_t seed);
void workload_destroy(struct workload *workload);

/* Serialised bytes of the first count messages. */
uint64_t workload_bytes_until(const struct workload *workload, size_t count);

size_t workload_message_size(const struct workload *workload, size_t index, int64_t timestamp_ns);

/*
 * The fields of message index (taken modulo count for its size), whose payload is good until the next
 * call. Thread: one.
 */
void workload_fields(const struct workload *workload, size_t index, uint64_t nonce,
        int64_t timestamp_ns, struct waku_message_view *out);

/* Writes the serialised WakuMessage; nonce makes messages of different runs differ. */
void workload_fill(const struct workload *workload, size_t index, uint64_t nonce,
        int64_t timestamp_ns, uint8_t *out);

/* The RPC around it, without length prefix. */
size_t workload_rpc_size(const struct workload *workload, size_t index, int64_t timestamp_ns);
void workload_fill_rpc(const struct workload *workload, size_t index, uint64_t nonce,
        int64_t timestamp_ns, uint8_t *out);
