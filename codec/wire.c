/* SPDX-License-Identifier: MIT */
#include "codec/wire.h"

enum status wire_check(struct span bytes)
{
    struct wire_field field;
    while (bytes.length > 0) {
        enum status status = wire_next(&field, &bytes);
        if (status != STATUS_OK) {
            return status;
        }
    }
    return STATUS_OK;
}

uint8_t *wire_write_head(uint8_t *out, uint64_t tag, size_t length)
{
    return varint_write(varint_write(out, tag), length);
}

uint8_t *wire_write_bytes(uint8_t *out, uint64_t tag, struct span bytes)
{
    out = wire_write_head(out, tag, bytes.length);
    if (bytes.length > 0) {
        memcpy(out, bytes.bytes, bytes.length);
    }
    return out + bytes.length;
}

uint8_t *wire_write_number(uint8_t *out, uint64_t tag, uint64_t number)
{
    return varint_write(varint_write(out, tag), number);
}
