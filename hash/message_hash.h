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

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/span.h"
#include "hash/message_id.h"
#include "hash/sha256.h"
#include "hash/sha256_pair.h"

struct message_hash_input {
    struct span pubsub_topic;
    struct span payload;
    struct span content_topic;
    struct span meta;
    int64_t timestamp_ns;
};

void message_hash(uint8_t hash[SHA256_BYTES], const struct message_hash_input *input);

enum {
    MESSAGE_HASH_PIECES = 5,
    MESSAGE_HASH_TIMESTAMP_BYTES = 8
};

/* What is hashed, in order. Points into the input and into itself: it must not be moved. */
struct message_hash_pieces {
    struct span spans[MESSAGE_HASH_PIECES];
    uint8_t timestamp[MESSAGE_HASH_TIMESTAMP_BYTES];
};

/* A message hash to come; it and the message stay where they are until it is done. */
struct message_hash_task {
    struct message_hash_pieces pieces;
    struct sha256_task task;
};

/*
 * Where no message id is wanted the hashes of several messages run side by side, as
 * hash/sha256_pair.h says: done some time after start, at the latest after finish.
 */
void message_hash_start(struct sha256_pair *pair, struct message_hash_task *task,
        uint8_t hash[SHA256_BYTES], const struct message_hash_input *input);
bool message_hash_is_done(const struct message_hash_task *task);
void message_hash_finish(struct sha256_pair *pair, const struct message_hash_task *task);

/*
 * Both names of a new message, message being its serialised form: the two passes run side by side
 * where the processor can (hash/sha256_pair.h). Counts as message_hash and message_id do.
 */
void message_hash_and_id(uint8_t hash[SHA256_BYTES], uint8_t id[SHA256_BYTES],
        const struct message_hash_input *input, struct span message);
