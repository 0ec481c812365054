/* SPDX-License-Identifier: MIT */
#include "codec/varint.h"

enum status varint_read_long(uint64_t *out, struct span *rest)
{
    size_t limit = rest->length < VARINT_MAX_BYTES ? rest->length : VARINT_MAX_BYTES;
    uint64_t value = 0;
    for (size_t i = 0; i < limit; i++) {
        uint64_t byte = rest->bytes[i];
        value |= (byte & 0x7f) << (7 * i);
        if (byte >= 0x80) {
            continue;
        }
        /* The last of ten bytes has room for one bit. */
        if (i == VARINT_MAX_BYTES - 1 && byte > 1) {
            return STATUS_BAD_VARINT;
        }
        *out = value;
        rest->bytes += i + 1;
        rest->length -= i + 1;
        return STATUS_OK;
    }
    return limit == VARINT_MAX_BYTES ? STATUS_BAD_VARINT : STATUS_TRUNCATED;
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
