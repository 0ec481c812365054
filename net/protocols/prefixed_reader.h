/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Reads one message with its length before it (an unsigned varint) from a stream, straight into
 * memory of its own that grows with the bytes that really come.
 *
 * Thread: that of the stream.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/attributes.h"
#include "base/span.h"
#include "base/status.h"
#include "codec/varint.h"

struct prefixed_reader {
    uint8_t header[VARINT_MAX_BYTES];
    size_t header_length;
    uint8_t *message; /* NULL while the length is not known */
    size_t capacity;
    size_t length;
    size_t received;
    size_t max;
    bool has_length;
    bool is_placed; /* message is the caller's memory */
};

/* max: longest message that is taken. */
void prefixed_reader_init(struct prefixed_reader *reader, size_t max);
void prefixed_reader_fini(struct prefixed_reader *reader);

/* Whether the length is known, is not 0, and no byte of the message has come. */
bool prefixed_reader_is_unplaced(const struct prefixed_reader *reader);

/* Has the message read to memory of the caller's, with room for all of it. Only while unplaced. */
void prefixed_reader_place(struct prefixed_reader *reader, uint8_t *message);

/* Has the message end after at most kept bytes. Only while unplaced. */
void prefixed_reader_cut(struct prefixed_reader *reader, size_t kept);

/* Where the next bytes go, never beyond the message; 0 when it is complete or there is no memory. */
size_t prefixed_reader_reserve(struct prefixed_reader *reader, size_t wanted, uint8_t **to);

/* STATUS_TOO_LARGE, STATUS_BAD_VARINT. */
MUST_USE enum status prefixed_reader_commit(struct prefixed_reader *reader, size_t n);

bool prefixed_reader_is_done(const struct prefixed_reader *reader);

/* Valid until fini or release; empty before it is done. */
struct span prefixed_reader_message(const struct prefixed_reader *reader);
