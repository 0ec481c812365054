/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * base58btc for peer ids. The cost grows with the square of the length, so both directions take
 * short inputs only. Own code: no C library in Debian has it with a stable interface.
 */

#include <stddef.h>
#include <stdint.h>

#include "base/attributes.h"
#include "base/span.h"
#include "base/status.h"

enum {
    BASE58_MAX_BYTES = 64,
    BASE58_TEXT_SIZE = 90 /* of BASE58_MAX_BYTES bytes, and the final zero */
};

/* bytes.length is at most BASE58_MAX_BYTES. Writes a final zero. Returns the digits written. */
size_t base58_encode(char out[BASE58_TEXT_SIZE], struct span bytes);

/* STATUS_BAD_FIELD for other characters, STATUS_TOO_LARGE for more than BASE58_MAX_BYTES bytes. */
MUST_USE enum status base58_decode(
        uint8_t out[BASE58_MAX_BYTES], size_t *out_length, struct span text);
