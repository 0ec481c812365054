/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The deterministic message hash: what names a message in the archive, in store queries and in
 * store-sync. It is taken from the decoded fields, so two encodings of one message have one hash.
 *
 * SHA-256 of pubsub topic, payload, content topic, meta and timestamp in this order, without
 * separators; the timestamp as 8 bytes, big endian, two's complement, and an absent one as zero. An
 * absent meta and an empty one hash alike.
 *
 * Each hash counts METRIC_MESSAGE_HASHES and METRIC_HASHED_BYTES.
 *
 * Thread: any.
 */

#include <stddef.h>
#include <stdint.h>

#include "base/span.h"
#include "hash/message_id.h"
#include "hash/sha256.h"

struct message_hash_input {
    struct span pubsub_topic;
    struct span payload;
    struct span content_topic;
    struct span meta;
    int64_t timestamp_ns;
};

void message_hash(uint8_t hash[SHA256_BYTES], const struct message_hash_input *input);

struct message_hash_job {
    struct message_hash_input input;
    uint8_t *hash; /* SHA256_BYTES */
};

enum {
    MESSAGE_HASH_JOBS_MAX = 8
};

/*
 * The hashes of several messages, MESSAGE_HASH_JOBS_MAX at most, two side by side likewise: where no
 * message id is wanted.
 */
void message_hash_of_many(const struct message_hash_job jobs[], size_t count);

/*
 * Both names of a new message, message being its serialised form: the two passes run side by side
 * where the processor can (hash/sha256_pair.h). Counts as message_hash and message_id do.
 */
void message_hash_and_id(uint8_t hash[SHA256_BYTES], uint8_t id[SHA256_BYTES],
        const struct message_hash_input *input, struct span message);
