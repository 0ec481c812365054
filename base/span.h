/* SPDX-License-Identifier: MIT */
#pragma once

/* A borrowed run of bytes: whoever made it says how long it stays valid. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct span {
    const uint8_t *bytes; /* may be NULL when length is 0 */
    size_t length;
};

static inline struct span span_of(const void *bytes, size_t length)
{
    return (struct span){.bytes = bytes, .length = length};
}

static inline struct span span_of_text(const char *text)
{
    return span_of(text, strlen(text));
}

static inline bool span_equal(struct span a, struct span b)
{
    return a.length == b.length && (a.length == 0 || memcmp(a.bytes, b.bytes, a.length) == 0);
}
