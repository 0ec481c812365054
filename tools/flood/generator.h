/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Numbered, checksummed messages for load tests: payload = number (8 bytes), XXH3 of the rest
 * (8 bytes), bytes drawn from a pool by the number. Any message can be made again from its number
 * and its timestamp, and checked wherever it comes out.
 *
 * Thread: generator_fill on one; generator_check on any.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/attributes.h"
#include "base/span.h"
#include "base/status.h"

enum {
    GENERATOR_PAYLOAD_MIN = 16,
    GENERATOR_SIZES_MAX = 16
};

struct generator;

struct generator_options {
    uint64_t seed;
    const char *sizes; /* "10k:25,50k:50,150k:25": payload size and weight in percent */
    uint32_t pubsub_topics;
    uint32_t content_topics;
    uint16_t cluster;
};

struct generator_message {
    uint64_t number;
    int64_t timestamp_ns;
};

/* STATUS_BAD_ARGUMENT: sizes does not parse, or a payload is below GENERATOR_PAYLOAD_MIN. */
MUST_USE enum status generator_create(
        struct generator **out, const struct generator_options *options);
void generator_destroy(struct generator **generator);

struct span generator_pubsub_topic(const struct generator *generator, uint64_t number);
struct span generator_content_topic(const struct generator *generator, uint64_t number);
struct span generator_pubsub_topic_at(const struct generator *generator, uint32_t index);
struct span generator_content_topic_at(const struct generator *generator, uint32_t index);
uint32_t generator_content_topic_index(const struct generator *generator, uint64_t number);
size_t generator_payload_size(const struct generator *generator, uint64_t number);

/* Bytes of the RPC (without length prefix) that carries the message, and of the WakuMessage in it. */
size_t generator_rpc_size(const struct generator *generator, struct generator_message message);
size_t generator_message_size(const struct generator *generator, struct generator_message message);

/* Writes the RPC or the WakuMessage; out has room for its size. */
void generator_fill_rpc(
        const struct generator *generator, struct generator_message message, uint8_t *out);
void generator_fill_message(
        const struct generator *generator, struct generator_message message, uint8_t *out);

/* True when payload is whole; *number is then its number. */
MUST_USE bool generator_check(uint64_t *number, struct span payload);

/* Whether messages on that content topic are a generator's. */
bool generator_is_ours(struct span content_topic);
