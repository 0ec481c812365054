/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Outgoing bytes of one stream: shared pieces in order, given out as spans without copying.
 *
 * Lifetime: a span stays valid until piece_queue_release_sent or piece_queue_fini, which call each
 *           piece's release once.
 */

#include <stddef.h>
#include <stdint.h>

#include "base/attributes.h"
#include "base/span.h"
#include "net/muxer/muxer.h"

struct piece_queue {
    struct muxer_piece *slots; /* a ring; NULL until the first piece */
    uint32_t capacity;         /* a power of two */
    uint32_t head;             /* the oldest piece that is not released */
    uint32_t count;
    uint32_t sent;       /* of those, given out whole */
    size_t offset;       /* of the first piece that is not, given out so far */
    size_t unsent_bytes; /* not given out */
};

/* Makes room for count more pieces: STATUS_LIMIT_REACHED, STATUS_NO_MEMORY. */
MUST_USE enum status piece_queue_prepare(struct piece_queue *queue, size_t count);

/* There is room. A piece of length 0 is taken as well. */
void piece_queue_push(struct piece_queue *queue, const struct muxer_piece *piece);

/* The next bytes, at most max; length 0 when there are none. */
struct span piece_queue_take(struct piece_queue *queue, size_t max);

/* Releases the pieces given out whole. Their release may push to this queue. */
void piece_queue_release_sent(struct piece_queue *queue);

void piece_queue_fini(struct piece_queue *queue);
