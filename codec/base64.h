/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Base64 (RFC 4648): written with the standard alphabet and padding or with the one for URLs and
 * without, read in either alphabet, with or without padding.
 *
 * Thread: any; no state.
 */

#include <stddef.h>
#include <stdint.h>

#include "base/attributes.h"
#include "base/span.h"
#include "base/status.h"

/* Characters of so many bytes. */
size_t base64_size(size_t length);

/* Returns what base64_size says; no NUL is written. */
size_t base64_encode(char *out, struct span bytes);

/* The alphabet for URLs, without padding, and a final zero: at most base64_size + 1 characters. */
size_t base64_encode_url(char *out, struct span bytes);

/*
 * out has room for text.length / 4 * 3 + 3 bytes. STATUS_BAD_FIELD: another character, a length that
 * no bytes have, or a wrong padding.
 */
MUST_USE enum status base64_decode(uint8_t *out, size_t *length, struct span text);
