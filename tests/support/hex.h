/* SPDX-License-Identifier: MIT */
#pragma once

/* Bytes of tests written as hexadecimal text; blanks are allowed and skipped. */

#include <ctype.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/span.h"

static inline uint8_t hex_digit(char digit)
{
    return (uint8_t)(isdigit((unsigned char)digit) ? digit - '0' : (digit | 0x20) - 'a' + 10);
}

/*
 * A block of exactly the size of the bytes, so that sanitizers see a read past its end; free it
 * with hex_free.
 */
static inline struct span hex_decode(const char *text)
{
    size_t digits = 0;
    for (const char *at = text; *at != '\0'; at++) {
        digits += isxdigit((unsigned char)*at) ? 1U : 0U;
    }
    uint8_t *bytes = calloc(digits / 2 + (digits < 2), 1);
    size_t count = 0;
    for (const char *at = text; bytes != NULL && *at != '\0'; at++) {
        if (isxdigit((unsigned char)*at)) {
            bytes[count / 2] = (uint8_t)(bytes[count / 2] << 4 | hex_digit(*at));
            count++;
        }
    }
    return span_of(bytes, digits / 2);
}

static inline void hex_free(struct span bytes)
{
    free((void *)(uintptr_t)bytes.bytes);
}
