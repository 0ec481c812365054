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
    uint64_t number;   /* the value of VARINT, else 0 */
    struct span bytes; /* the content of LENGTH and of the fixed types */
};

enum {
    WIRE_SHORT_MAX_BYTES = 5 /* of a tag and of a length */
};

MUST_USE static inline enum status wire_read_short(uint64_t *out, struct span *rest)
{
    size_t before = rest->length;
    enum status status = varint_read(out, rest);
    if (status == STATUS_OK && before - rest->length > WIRE_SHORT_MAX_BYTES) {
        return STATUS_BAD_VARINT;
    }
    return status;
}

MUST_USE static inline enum status wire_take(struct span *out, struct span *rest, uint64_t length)
{
    if (length > rest->length) {
        return STATUS_TRUNCATED;
    }
    out->bytes = rest->bytes;
    out->length = (size_t)length;
    rest->bytes += length;
    rest->length -= (size_t)length;
    return STATUS_OK;
}

/*
 * Takes one field off the front of rest, which must not be empty. STATUS_BAD_FIELD for field number
 * 0, groups and undefined wire types; STATUS_BAD_VARINT, among others for a tag or a length of more
 * than 5 bytes; STATUS_TRUNCATED. After a failure rest is not to be read on.
 *
 * Inline as a whole, so that field and rest live in registers: written to memory and read back as
 * wider words they cost more than all the rest.
 */
MUST_USE static inline enum status wire_next(struct wire_field *out, struct span *rest)
{
    uint64_t length;
    out->number = 0;
    out->bytes = span_of(NULL, 0);
    enum status status = wire_read_short(&out->tag, rest);
    if (status != STATUS_OK) {
        return status;
    }
    if (out->tag >> 3 == 0) {
        return STATUS_BAD_FIELD;
    }
    switch (out->tag & 7) {
    case WIRE_LENGTH:
        status = wire_read_short(&length, rest);
        return status == STATUS_OK ? wire_take(&out->bytes, rest, length) : status;
    case WIRE_VARINT:
        return varint_read(&out->number, rest);
    case WIRE_FIXED64:
        return wire_take(&out->bytes, rest, sizeof(uint64_t));
    case WIRE_FIXED32:
        return wire_take(&out->bytes, rest, sizeof(uint32_t));
    default: /* groups, and two types that mean nothing */
        return STATUS_BAD_FIELD;
    }
}

/*
 * A field of 32 bits. STATUS_BAD_FIELD: its number has more, so that it is not the one that its lower
 * bits are.
 */
MUST_USE static inline enum status wire_number32(uint32_t *out, const struct wire_field *field)
{
    if (field->number > UINT32_MAX) {
        return STATUS_BAD_FIELD;
    }
    *out = (uint32_t)field->number;
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
