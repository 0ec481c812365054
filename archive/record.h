/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * How a message stands in a file of its own (segment or spill): a fixed header with length, checksum
 * and message hash, the pubsub topic, the message as received. A record explains itself, so that an
 * index can be made of a file alone, and its checksum tells whether all of it was written.
 */

#include <stddef.h>
#include <stdint.h>

#include "archive/archive.h"
#include "base/attributes.h"
#include "base/span.h"
#include "base/status.h"

enum {
    RECORD_HEADER_BYTES = 80,
    RECORD_MAX_BODY_BYTES = 1 << 28 /* above it a length is taken for damage */
};

/* STATUS_TOO_LARGE when topic and message do not fit a record. */
MUST_USE enum status record_check(const struct archive_record *record);

/* Header, topic and message together. */
size_t record_size(const struct archive_record *record);

void record_encode_header(uint8_t out[RECORD_HEADER_BYTES], const struct archive_record *record);

/* The size of the whole record, from its header; STATUS_DAMAGED when it is none. */
MUST_USE enum status record_peek_size(size_t *size, const uint8_t header[RECORD_HEADER_BYTES]);

/* The record that bytes are, exactly; its spans point into them. Otherwise STATUS_DAMAGED. */
MUST_USE enum status record_decode(struct archive_record *out, struct span bytes);
