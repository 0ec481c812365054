/* SPDX-License-Identifier: MIT */
#pragma once

/* Frames the peer is owed that belong to no living stream, in the order they came up. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/attributes.h"
#include "base/status.h"

enum answer_kind {
    ANSWER_RESET,
    ANSWER_PING,
    ANSWER_PING_REQUEST,
    ANSWER_GO_AWAY
};

struct muxer_answer {
    uint64_t value; /* key, the ping's number, or the reason */
    enum answer_kind kind;
};

struct answer_queue {
    struct muxer_answer *slots; /* a ring; NULL until the first answer */
    size_t capacity;            /* a power of two */
    size_t head;
    size_t count;
};

MUST_USE enum status answer_queue_push(struct answer_queue *queue, struct muxer_answer answer);
MUST_USE bool answer_queue_try_pop(struct answer_queue *queue, struct muxer_answer *out);
void answer_queue_fini(struct answer_queue *queue);
