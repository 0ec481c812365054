/* SPDX-License-Identifier: MIT */
#include "net/identity/base58.h"

#include <assert.h>
#include <stdbool.h>
#include <string.h>

static const char alphabet[] = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz";

enum {
    BASE = 58,
    MAX_DIGITS = BASE58_TEXT_SIZE - 1
};

static size_t leading(struct span from, uint8_t value)
{
    size_t count = 0;
    while (count < from.length && from.bytes[count] == value) {
        count++;
    }
    return count;
}

/* A number of digits in base, least significant first. */
struct number {
    uint32_t base;
    size_t length;
    size_t capacity;
    uint8_t digits[MAX_DIGITS];
};

/* number = number * factor + add. False when it does not fit. */
static bool multiply_add(struct number *number, uint32_t factor, uint32_t add)
{
    uint32_t carry = add;
    for (size_t i = 0; i < number->length; i++) {
        carry += number->digits[i] * factor;
        number->digits[i] = (uint8_t)(carry % number->base);
        carry /= number->base;
    }
    while (carry > 0) {
        if (number->length == number->capacity) {
            return false;
        }
        number->digits[number->length++] = (uint8_t)(carry % number->base);
        carry /= number->base;
    }
    return true;
}

size_t base58_encode(char out[BASE58_TEXT_SIZE], struct span bytes)
{
    assert(bytes.length <= BASE58_MAX_BYTES);
    size_t zeros = leading(bytes, 0);
    struct number number = {.base = BASE, .capacity = MAX_DIGITS};
    for (size_t i = zeros; i < bytes.length; i++) {
        bool fits = multiply_add(&number, 256, bytes.bytes[i]);
        assert(fits);
    }
    assert(zeros + number.length <= MAX_DIGITS);
    memset(out, alphabet[0], zeros);
    for (size_t i = 0; i < number.length; i++) {
        out[zeros + i] = alphabet[number.digits[number.length - 1 - i]];
    }
    out[zeros + number.length] = '\0';
    return zeros + number.length;
}

enum status base58_decode(uint8_t out[BASE58_MAX_BYTES], size_t *out_length, struct span text)
{
    if (text.length > MAX_DIGITS) {
        return STATUS_TOO_LARGE;
    }
    size_t zeros = leading(text, (uint8_t)alphabet[0]);
    struct number number = {.base = 256, .capacity = BASE58_MAX_BYTES};
    for (size_t i = zeros; i < text.length; i++) {
        const char *digit = text.bytes[i] != 0 ? strchr(alphabet, text.bytes[i]) : NULL;
        if (digit == NULL) {
            return STATUS_BAD_FIELD;
        }
        if (!multiply_add(&number, BASE, (uint32_t)(digit - alphabet))) {
            return STATUS_TOO_LARGE;
        }
    }
    if (zeros + number.length > BASE58_MAX_BYTES) {
        return STATUS_TOO_LARGE;
    }
    memset(out, 0, zeros);
    for (size_t i = 0; i < number.length; i++) {
        out[zeros + i] = number.digits[number.length - 1 - i];
    }
    *out_length = zeros + number.length;
    return STATUS_OK;
}
