/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Reads the RPCs of a relay stream, each with its length before it, straight into frames.
 *
 * A frame is charged whole when its length is known, and not as its bytes come: it has to be one run
 * of memory, and frames that were begun with credit for their first bytes only could wait for each
 * other's for ever. A peer that names a length and sends nothing is bounded by one frame a peer and
 * by the deadline that the stream's owner sets while relay_reader_is_inside.
 *
 * Thread: that of the stream.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/attributes.h"
#include "base/status.h"
#include "codec/varint.h"
#include "queues/frame.h"

struct relay_reader {
    struct frame_budget *budget; /* NULL: nothing is charged */
    struct frame_share *share;   /* the peer's; NULL: it has no limit of its own */
    size_t max;                  /* longest RPC that is taken */
    uint8_t prefix[VARINT_MAX_BYTES];
    size_t prefix_length;
    struct frame *frame; /* NULL between frames, and while there is no credit for one */
    size_t length;
    size_t received;
    bool has_length;
    bool is_skipping; /* the bytes of this RPC go nowhere */
};

void relay_reader_init(struct relay_reader *reader, struct frame_budget *BORROWED budget,
        struct frame_share *BORROWED share, size_t max);

/* Drops what is half read; the reader then stands before a frame. */
void relay_reader_reset(struct relay_reader *reader);

/* Where the next bytes go. 0: no credit for this frame yet (relay_reader_is_starved). */
size_t relay_reader_reserve(struct relay_reader *reader, size_t wanted, uint8_t **to);

/*
 * The first n reserved bytes are there. *out: the RPC that is complete now, the caller's; else NULL.
 * STATUS_TOO_LARGE, STATUS_BAD_VARINT: the stream cannot be read on.
 */
MUST_USE enum status relay_reader_commit(struct relay_reader *reader, size_t n, struct frame **out);

/* Throws this RPC away instead of waiting for credit. */
void relay_reader_skip(struct relay_reader *reader);

bool relay_reader_is_starved(const struct relay_reader *reader);

/* Some of a frame has come and some has not. */
bool relay_reader_is_inside(const struct relay_reader *reader);
