/* SPDX-License-Identifier: MIT */
#include "net/identity/rlp.h"

#include <string.h>

enum {
    SHORT_MAX = 55,
    STRING = 0x80,
    LIST = 0xC0,
    LENGTH_BYTES_MAX = 2
};

/* The length that stands in the next bytes. */
static enum status read_length(size_t *length, size_t length_bytes, struct span *rest)
{
    if (length_bytes > LENGTH_BYTES_MAX) {
        return STATUS_BAD_FIELD;
    }
    if (rest->length < length_bytes) {
        return STATUS_TRUNCATED;
    }
    *length = 0;
    for (size_t i = 0; i < length_bytes; i++) {
        *length = *length << 8 | rest->bytes[i];
    }
    bool is_shortest = rest->bytes[0] != 0 && *length > SHORT_MAX;
    *rest = span_of(rest->bytes + length_bytes, rest->length - length_bytes);
    return is_shortest ? STATUS_OK : STATUS_BAD_FIELD;
}

enum status rlp_read(struct span *out, bool *is_list, struct span *rest)
{
    if (rest->length == 0) {
        return STATUS_TRUNCATED;
    }
    uint8_t first = rest->bytes[0];
    *is_list = first >= LIST;
    if (first < STRING) {
        *out = span_of(rest->bytes, 1);
        *rest = span_of(rest->bytes + 1, rest->length - 1);
        return STATUS_OK;
    }
    size_t length = (size_t)(first - (*is_list ? LIST : STRING));
    enum status status = STATUS_OK;
    *rest = span_of(rest->bytes + 1, rest->length - 1);
    if (length > SHORT_MAX) {
        status = read_length(&length, length - SHORT_MAX, rest);
    }
    if (status == STATUS_OK && rest->length < length) {
        status = STATUS_TRUNCATED;
    }
    if (status != STATUS_OK) {
        return status;
    }
    *out = span_of(rest->bytes, length);
    *rest = span_of(rest->bytes + length, rest->length - length);
    bool is_plain_byte = !*is_list && length == 1 && out->bytes[0] < STRING;
    return is_plain_byte ? STATUS_BAD_FIELD : STATUS_OK;
}

uint8_t *rlp_write_head(uint8_t *to, size_t length, bool is_list)
{
    uint8_t base = is_list ? LIST : STRING;
    if (length <= SHORT_MAX) {
        *to++ = (uint8_t)(base + length);
        return to;
    }
    if (length > UINT8_MAX) {
        *to++ = (uint8_t)(base + SHORT_MAX + 2);
        *to++ = (uint8_t)(length >> 8);
    } else {
        *to++ = (uint8_t)(base + SHORT_MAX + 1);
    }
    *to++ = (uint8_t)length;
    return to;
}

uint8_t *rlp_write_string(uint8_t *to, struct span string)
{
    if (string.length != 1 || string.bytes[0] >= STRING) {
        to = rlp_write_head(to, string.length, false);
    }
    if (string.length > 0) {
        memcpy(to, string.bytes, string.length);
    }
    return to + string.length;
}

uint8_t *rlp_write_number(uint8_t *to, uint64_t number)
{
    uint8_t bytes[8];
    size_t length = 0;
    for (int shift = 56; shift >= 0; shift -= 8) {
        uint8_t byte = (uint8_t)(number >> shift);
        if (length > 0 || byte != 0) {
            bytes[length++] = byte;
        }
    }
    return rlp_write_string(to, span_of(bytes, length));
}
