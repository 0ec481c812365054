/* SPDX-License-Identifier: MIT */
#include "codec/varint.h"

#include <endian.h>
#include <string.h>

enum {
    WORD_BYTES = 8
};

/* The seven low bits of each of eight bytes, put together to one number of 56 bits. */
static uint64_t join_sevens(uint64_t word)
{
    word = (word & 0x007f007f007f007f) | (word & 0x7f007f007f007f00) >> 1;
    word = (word & 0x00003fff00003fff) | (word & 0x3fff00003fff0000) >> 2;
    return (word & 0x000000000fffffff) | (word & 0x0fffffff00000000) >> 4;
}

/* The ninth byte and perhaps the tenth, behind eight that do not end the integer. */
static struct varint parse_tail(uint64_t value, const uint8_t *tail)
{
    value |= (uint64_t)(tail[0] & 0x7f) << 56;
    if (tail[0] < 0x80) {
        return (struct varint){value, WORD_BYTES + 1};
    }
    /* The last of ten bytes has room for one bit. */
    value |= (uint64_t)tail[1] << 63;
    return (struct varint){value, tail[1] <= 1 ? WORD_BYTES + 2 : 0};
}

/* All ten bytes may be read: no loop. */
static struct varint parse_word(const uint8_t *bytes)
{
    uint64_t word;
    memcpy(&word, bytes, sizeof(word));
    word = le64toh(word);
    uint64_t ends = ~word & 0x8080808080808080;
    if (ends == 0) {
        return parse_tail(join_sevens(word), bytes + WORD_BYTES);
    }
    /* Keeps the bits up to the first byte that ends it. */
    uint64_t value = join_sevens(word & (ends ^ (ends - 1)));
    return (struct varint){value, (size_t)__builtin_ctzll(ends) / 8 + 1};
}

struct varint varint_parse(const uint8_t *bytes, size_t length)
{
    uint64_t value = 0;
    if (length >= VARINT_MAX_BYTES) {
        return parse_word(bytes);
    }
    for (size_t i = 0; i < length; i++) {
        value |= (uint64_t)(bytes[i] & 0x7f) << (7 * i);
        if (bytes[i] < 0x80) {
            return (struct varint){value, i + 1};
        }
    }
    return (struct varint){0, 0};
}

enum status varint_read_length(size_t *out, struct span *rest, size_t max)
{
    struct span after = *rest;
    uint64_t length;
    enum status status = varint_read(&length, &after);
    if (status != STATUS_OK) {
        return status;
    }
    if (length > max) {
        return STATUS_TOO_LARGE;
    }
    *out = (size_t)length;
    *rest = after;
    return STATUS_OK;
}

uint8_t *varint_write(uint8_t *out, uint64_t value)
{
    while (value >= 0x80) {
        *out++ = (uint8_t)(value | 0x80);
        value >>= 7;
    }
    *out++ = (uint8_t)value;
    return out;
}
