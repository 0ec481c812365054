/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * A text that grows, for JSON answers: what is added is escaped or encoded on the way. A want of
 * memory is remembered and told at the end.
 *
 * Ownership: of the bytes the text's, until rest_text_take.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/attributes.h"
#include "base/span.h"

struct rest_text {
    char *bytes;
    size_t length;
    size_t room;
    bool has_failed;
};

void rest_text_fini(struct rest_text *text);
void rest_text_add(struct rest_text *text, const char *raw);
void rest_text_add_span(struct rest_text *text, struct span raw);

/* With its quotes. What is not UTF-8 becomes '?', byte by byte. */
void rest_text_add_string(struct rest_text *text, struct span string);

/* With its quotes; the standard alphabet, with padding. */
void rest_text_add_base64(struct rest_text *text, struct span bytes);

/* With its quotes and "0x". */
void rest_text_add_hex(struct rest_text *text, struct span bytes);
void rest_text_add_number(struct rest_text *text, int64_t number);
void rest_text_add_bool(struct rest_text *text, bool value);

/* The bytes, from malloc, NUL behind them; NULL when there was no memory. The text is empty then. */
MUST_USE char *rest_text_take(struct rest_text *text, size_t *length);
