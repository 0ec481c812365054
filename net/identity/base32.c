/* SPDX-License-Identifier: MIT */
#include "net/identity/base32.h"

static int digit_of(uint8_t c)
{
    if (c >= 'a' && c <= 'z') {
        return c - 'a';
    }
    if (c >= 'A' && c <= 'Z') {
        return c - 'A';
    }
    return c >= '2' && c <= '7' ? c - '2' + 26 : -1;
}

enum status base32_decode(uint8_t *out, size_t capacity, size_t *out_length, struct span text)
{
    uint32_t bits = 0;
    unsigned bit_count = 0;
    size_t length = 0;
    for (size_t i = 0; i < text.length; i++) {
        int digit = digit_of(text.bytes[i]);
        if (digit < 0) {
            return STATUS_BAD_FIELD;
        }
        bits = bits << 5 | (uint32_t)digit;
        bit_count += 5;
        if (bit_count < 8) {
            continue;
        }
        if (length == capacity) {
            return STATUS_TOO_LARGE;
        }
        bit_count -= 8;
        out[length++] = (uint8_t)(bits >> bit_count);
        bits &= (1U << bit_count) - 1;
    }
    /* Five spare bits or more would be a digit that says nothing. */
    if (bit_count >= 5 || bits != 0) {
        return STATUS_BAD_FIELD;
    }
    *out_length = length;
    return STATUS_OK;
}
