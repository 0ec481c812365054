/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The protobuf wire format field by field, for the hand-written decoders of the hot path: a field is
 * looked at where it lies, nothing is copied or allocated.
 *
 * A decoder switches over whole tags (number and wire type), so that a known field of the wrong wire
 * type falls among the unknown ones, which are skipped: what protobuf's own parsers and nim do.
 * Groups are refused, as protobuf-c and nim refuse them: no message of this network has one.
 *
 * Thread: any; no state.
 */

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/attributes.h"
#include "base/span.h"
#include "base/status.h"
#include "codec/varint.h"

enum wire_type {
    WIRE_VARINT = 0,
    WIRE_FIXED64 = 1,
    WIRE_LENGTH = 2,
    WIRE_FIXED32 = 5
};

/* The tag of a field; also a case label. */
#define WIRE_TAG(number, type) ((uint64_t)(number) << 3 | (uint64_t)(type))

struct wire_field {
    uint64_t tag;
    uint64_t number;   /* the value of VARINT; other types leave it as it is */
    struct span bytes; /* the content of LENGTH, likewise */
};

MUST_USE enum status wire_next_long(struct wire_field *out, struct span *rest);

/*
 * Takes one field off the front of rest, which must not be empty. STATUS_BAD_FIELD for field number
 * 0, groups and undefined wire types; STATUS_BAD_VARINT, among others for a tag or a length of more
 * than 5 bytes; STATUS_TRUNCATED.
 */
MUST_USE static inline enum status wire_next(struct wire_field *out, struct span *rest)
{
    const uint8_t *at = rest->bytes;
    /* Field 1 to 15 of type LENGTH and less than 128 bytes: most fields of most messages. */
    if (rest->length < 2 || (at[0] & 0x87) != WIRE_LENGTH || at[0] < 8 || at[1] >= 0x80 ||
            at[1] > rest->length - 2) {
        return wire_next_long(out, rest);
    }
    out->tag = at[0];
    out->bytes = span_of(at + 2, at[1]);
    rest->bytes += 2 + out->bytes.length;
    rest->length -= 2 + out->bytes.length;
    return STATUS_OK;
}

/* Walks all fields of bytes without looking into them. */
MUST_USE enum status wire_check(struct span bytes);

/* The bytes of a field of type LENGTH with its tag and length, and of one of type VARINT. */
static inline size_t wire_bytes_size(uint64_t tag, size_t length)
{
    return varint_size(tag) + varint_size(length) + length;
}

static inline size_t wire_number_size(uint64_t tag, uint64_t number)
{
    return varint_size(tag) + varint_size(number);
}

/* Each returns the place behind what it wrote; out has room. wire_write_head is tag and length. */
uint8_t *wire_write_head(uint8_t *out, uint64_t tag, size_t length);
uint8_t *wire_write_bytes(uint8_t *out, uint64_t tag, struct span bytes);
uint8_t *wire_write_number(uint8_t *out, uint64_t tag, uint64_t number);
