/* SPDX-License-Identifier: MIT */
#include "codec/wire.h"

enum {
    SHORT_VARINT_MAX_BYTES = 5 /* of a tag and of a length */
};

static enum status read_short(uint64_t *out, struct span *rest)
{
    struct span after = *rest;
    enum status status = varint_read(out, &after);
    if (status == STATUS_OK && rest->length - after.length > SHORT_VARINT_MAX_BYTES) {
        return STATUS_BAD_VARINT;
    }
    *rest = after;
    return status;
}

static enum status take(struct span *out, struct span *rest, uint64_t length)
{
    if (length > rest->length) {
        return STATUS_TRUNCATED;
    }
    *out = span_of(rest->bytes, (size_t)length);
    rest->bytes += length;
    rest->length -= (size_t)length;
    return STATUS_OK;
}

static enum status read_content(struct span *out, struct span *rest)
{
    uint64_t length;
    enum status status = read_short(&length, rest);
    return status == STATUS_OK ? take(out, rest, length) : status;
}

enum status wire_next_long(struct wire_field *out, struct span *rest)
{
    struct span skipped;
    enum status status = read_short(&out->tag, rest);
    if (status != STATUS_OK) {
        return status;
    }
    if (out->tag >> 3 == 0) {
        return STATUS_BAD_FIELD;
    }
    switch (out->tag & 7) {
    case WIRE_VARINT:
        return varint_read(&out->number, rest);
    case WIRE_LENGTH:
        return read_content(&out->bytes, rest);
    case WIRE_FIXED64:
        return take(&skipped, rest, sizeof(uint64_t));
    case WIRE_FIXED32:
        return take(&skipped, rest, sizeof(uint32_t));
    default: /* groups, and two types that mean nothing */
        return STATUS_BAD_FIELD;
    }
}

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
