/* SPDX-License-Identifier: MIT */
#include "hash/message_hash.h"

#include <assert.h>

#include "base/metrics.h"
#include "hash/sha256_pair.h"

enum {
    PIECES = 5,
    TIMESTAMP_BYTES = 8
};

/* What is hashed, in order. Points into the input and into itself: it must not be moved. */
struct hashed_pieces {
    struct span spans[PIECES];
    uint8_t timestamp[TIMESTAMP_BYTES];
};

static struct sha256_pieces lay_out(
        struct hashed_pieces *pieces, const struct message_hash_input *input)
{
    uint64_t timestamp = (uint64_t)input->timestamp_ns; /* two's complement */
    for (size_t i = TIMESTAMP_BYTES; i-- > 0; timestamp >>= 8) {
        pieces->timestamp[i] = (uint8_t)timestamp;
    }
    pieces->spans[0] = input->pubsub_topic;
    pieces->spans[1] = input->payload;
    pieces->spans[2] = input->content_topic;
    pieces->spans[3] = input->meta;
    pieces->spans[4] = span_of(pieces->timestamp, TIMESTAMP_BYTES);
    struct sha256_pieces all = {.spans = pieces->spans, .count = PIECES};
    metrics_add(METRIC_MESSAGE_HASHES, 1);
    metrics_add(METRIC_HASHED_BYTES, sha256_pieces_length(all));
    return all;
}

void message_hash(uint8_t hash[SHA256_BYTES], const struct message_hash_input *input)
{
    struct hashed_pieces pieces;
    sha256(hash, lay_out(&pieces, input));
}

void message_hash_and_id(uint8_t hash[SHA256_BYTES], uint8_t id[SHA256_BYTES],
        const struct message_hash_input *input, struct span message)
{
    struct hashed_pieces pieces;
    struct sha256_pieces hashed = lay_out(&pieces, input);
    metrics_add(METRIC_ID_HASHES, 1);
    metrics_add(METRIC_ID_HASHED_BYTES, message.length);
    sha256_pair(id, (struct sha256_pieces){.spans = &message, .count = 1}, hash, hashed);
}

void message_hash_of_many(const struct message_hash_job jobs[], size_t count)
{
    struct hashed_pieces pieces[MESSAGE_HASH_JOBS_MAX];
    struct sha256_job hashed[MESSAGE_HASH_JOBS_MAX];
    assert(count <= MESSAGE_HASH_JOBS_MAX);
    for (size_t i = 0; i < count; i++) {
        hashed[i] = (struct sha256_job){
                .pieces = lay_out(&pieces[i], &jobs[i].input), .digest = jobs[i].hash};
    }
    sha256_side_by_side(hashed, count);
}
