/* SPDX-License-Identifier: MIT */
#include "codec/base64.h"

static const char standard[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
static const char for_urls[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

size_t base64_size(size_t length)
{
    return (length + 2) / 3 * 4;
}

static size_t encode(char *out, struct span bytes, const char alphabet[65])
{
    char *to = out;
    size_t i = 0;
    for (; i + 3 <= bytes.length; i += 3) {
        const uint8_t *from = bytes.bytes + i;
        *to++ = alphabet[from[0] >> 2];
        *to++ = alphabet[(from[0] & 3) << 4 | from[1] >> 4];
        *to++ = alphabet[(from[1] & 15) << 2 | from[2] >> 6];
        *to++ = alphabet[from[2] & 63];
    }
    size_t left = bytes.length - i;
    if (left > 0) {
        uint8_t first = bytes.bytes[i];
        uint8_t second = left == 2 ? bytes.bytes[i + 1] : 0;
        *to++ = alphabet[first >> 2];
        *to++ = alphabet[(first & 3) << 4 | second >> 4];
        *to++ = (char)(left == 2 ? alphabet[(second & 15) << 2] : '=');
        *to++ = '=';
    }
    return (size_t)(to - out);
}

size_t base64_encode(char *out, struct span bytes)
{
    return encode(out, bytes, standard);
}

size_t base64_encode_url(char *out, struct span bytes)
{
    size_t length = encode(out, bytes, for_urls);
    while (length > 0 && out[length - 1] == '=') {
        length--;
    }
    out[length] = '\0';
    return length;
}

static int value_of(uint8_t c)
{
    if (c >= 'A' && c <= 'Z') {
        return c - 'A';
    }
    if (c >= 'a' && c <= 'z') {
        return c - 'a' + 26;
    }
    if (c >= '0' && c <= '9') {
        return c - '0' + 52;
    }
    if (c == '+' || c == '-') {
        return 62;
    }
    return c == '/' || c == '_' ? 63 : -1;
}

enum status base64_decode(uint8_t *out, size_t *length, struct span text)
{
    size_t count = text.length;
    size_t padding = 0;
    while (count > 0 && padding < 2 && text.bytes[count - 1] == '=') {
        count--;
        padding++;
    }
    if (count % 4 == 1 || (padding > 0 && (count + padding) % 4 != 0)) {
        return STATUS_BAD_FIELD;
    }
    uint32_t bits = 0;
    unsigned bit_count = 0;
    *length = 0;
    for (size_t i = 0; i < count; i++) {
        int value = value_of(text.bytes[i]);
        if (value < 0) {
            return STATUS_BAD_FIELD;
        }
        bits = bits << 6 | (uint32_t)value;
        bit_count += 6;
        if (bit_count >= 8) {
            bit_count -= 8;
            out[(*length)++] = (uint8_t)(bits >> bit_count);
        }
    }
    return STATUS_OK;
}
