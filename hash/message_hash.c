/* SPDX-License-Identifier: MIT */
#include "hash/message_hash.h"

#include "base/metrics.h"
#include "hash/sha256_pair.h"

static struct sha256_pieces lay_out(
        struct message_hash_pieces *pieces, const struct message_hash_input *input)
{
    uint64_t timestamp = (uint64_t)input->timestamp_ns; /* two's complement */
    for (size_t i = MESSAGE_HASH_TIMESTAMP_BYTES; i-- > 0; timestamp >>= 8) {
        pieces->timestamp[i] = (uint8_t)timestamp;
    }
    pieces->spans[0] = input->pubsub_topic;
    pieces->spans[1] = input->payload;
    pieces->spans[2] = input->content_topic;
    pieces->spans[3] = input->meta;
    pieces->spans[4] = span_of(pieces->timestamp, MESSAGE_HASH_TIMESTAMP_BYTES);
    struct sha256_pieces all = {.spans = pieces->spans, .count = MESSAGE_HASH_PIECES};
    metrics_add(METRIC_MESSAGE_HASHES, 1);
    metrics_add(METRIC_HASHED_BYTES, sha256_pieces_length(all));
    return all;
}

void message_hash(uint8_t hash[SHA256_BYTES], const struct message_hash_input *input)
{
    struct message_hash_pieces pieces;
    sha256(hash, lay_out(&pieces, input));
}

void message_hash_and_id(uint8_t hash[SHA256_BYTES], uint8_t id[SHA256_BYTES],
        const struct message_hash_input *input, struct span message)
{
    struct message_hash_pieces pieces;
    struct sha256_pieces hashed = lay_out(&pieces, input);
    metrics_add(METRIC_ID_HASHES, 1);
    metrics_add(METRIC_ID_HASHED_BYTES, message.length);
    sha256_both(id, (struct sha256_pieces){.spans = &message, .count = 1}, hash, hashed);
}

void message_hash_start(struct sha256_pair *pair, struct message_hash_task *task,
        uint8_t hash[SHA256_BYTES], const struct message_hash_input *input)
{
    task->task = (struct sha256_task){.pieces = lay_out(&task->pieces, input), .digest = hash};
    sha256_pair_start(pair, &task->task);
}

bool message_hash_is_done(const struct message_hash_task *task)
{
    return task->task.is_done;
}

void message_hash_finish(struct sha256_pair *pair, const struct message_hash_task *task)
{
    sha256_pair_finish(pair, &task->task);
}
