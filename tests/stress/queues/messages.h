/* SPDX-License-Identifier: MIT */
#pragma once

/* Envelopes whose bytes carry a number and a checksum, so that a torn or freed one is recognised. */

#include <string.h>

#include "queues/envelope.h"
#include "tests/stress/queues/stress.h"

enum {
    MESSAGE_WORDS = 6 /* of which the last is the checksum */
};

static inline uint64_t checksum_of(const uint64_t *words)
{
    uint64_t sum = 0x9e3779b97f4a7c15;
    for (int i = 0; i < MESSAGE_WORDS - 1; i++) {
        sum = (sum ^ words[i]) * 0x100000001b3;
    }
    return sum;
}

/* budget may be NULL; NULL without credit. */
static inline struct envelope *try_make_message(struct frame_budget *budget, uint64_t number)
{
    uint64_t words[MESSAGE_WORDS];
    for (uint64_t i = 0; i < MESSAGE_WORDS - 1; i++) {
        words[i] = number + i;
    }
    words[MESSAGE_WORDS - 1] = checksum_of(words);
    struct frame *frame = frame_try_create(budget, FRAME_BUDGET_COMPLETE, sizeof(words));
    if (frame == NULL) {
        return NULL;
    }
    memcpy(frame_bytes(frame), words, sizeof(words));
    struct envelope *envelope = envelope_create(frame);
    CHECK(envelope != NULL);
    envelope->message = span_of(frame_bytes(frame), sizeof(words));
    envelope->timestamp_ns = (int64_t)number;
    return envelope;
}

/* Returns the number. */
static inline uint64_t check_message(const struct envelope *envelope)
{
    uint64_t words[MESSAGE_WORDS];
    CHECK(envelope->message.length == sizeof(words));
    memcpy(words, envelope->message.bytes, sizeof(words));
    CHECK(words[MESSAGE_WORDS - 1] == checksum_of(words));
    CHECK(envelope->timestamp_ns == (int64_t)words[0]);
    return words[0];
}
