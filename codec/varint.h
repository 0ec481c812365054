/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Unsigned LEB128 integers of 64 bits, as protobuf and libp2p write them, and zigzag.
 *
 * A reader takes at most 10 bytes. Padded forms (0x80 0x00) are taken, as protobuf parsers do; what
 * needs an eleventh byte or a 65th bit is STATUS_BAD_VARINT, and what ends before its last byte
 * STATUS_TRUNCATED, so that a stream reader knows that more bytes may mend it.
 *
 * Thread: any; no state.
 */

#include <stddef.h>
#include <stdint.h>

#include "base/attributes.h"
#include "base/span.h"
#include "base/status.h"

enum {
    VARINT_MAX_BYTES = 10
};

/* An integer at the front of some bytes and how many of them it takes, 0 when there is none. */
struct varint {
    uint64_t value;
    size_t size;
};

/* The general case of varint_read. By value, so that callers keep their state in registers. */
struct varint varint_parse(const uint8_t *bytes, size_t length);

/* Takes one integer off the front of rest, which stays as it is on failure. */
MUST_USE static inline enum status varint_read(uint64_t *out, struct span *rest)
{
    struct varint varint = {.size = 1};
    if (rest->length > 0 && rest->bytes[0] < 0x80) {
        varint.value = rest->bytes[0];
    } else {
        varint = varint_parse(rest->bytes, rest->length);
    }
    if (varint.size == 0) {
        return rest->length < VARINT_MAX_BYTES ? STATUS_TRUNCATED : STATUS_BAD_VARINT;
    }
    *out = varint.value;
    rest->bytes += varint.size;
    rest->length -= varint.size;
    return STATUS_OK;
}

/*
 * The length before a frame on a stream: like varint_read, and STATUS_TOO_LARGE above max. Nothing
 * may be allocated for a frame before this has passed.
 */
MUST_USE enum status varint_read_length(size_t *out, struct span *rest, size_t max);

/* The bytes that varint_write writes: 1 to VARINT_MAX_BYTES. */
static inline size_t varint_size(uint64_t value)
{
    size_t bits = 64 - (size_t)__builtin_clzll(value | 1);
    return (bits + 6) / 7;
}

/* The shortest form; returns the place behind it. out has room for varint_size(value). */
uint8_t *varint_write(uint8_t *out, uint64_t value);

static inline uint64_t varint_zigzag(int64_t value)
{
    return ((uint64_t)value << 1) ^ (value < 0 ? UINT64_MAX : 0);
}

static inline int64_t varint_unzigzag(uint64_t value)
{
    return (int64_t)((value >> 1) ^ (0 - (value & 1)));
}
