/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Keccak-256 with the padding it had before it became SHA-3: node records (EIP-778) are signed over
 * it, and OpenSSL 3.0 does not have it. Not for hot paths.
 *
 * Specification: The Keccak reference, version 3.0; rate 1088, capacity 512, padding 0x01.
 */

#include <stdint.h>

#include "base/span.h"

enum {
    KECCAK256_BYTES = 32
};

void keccak256(uint8_t out[KECCAK256_BYTES], struct span message);
