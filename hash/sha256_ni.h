/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The SHA-256 compression function on the SHA instructions of x86-64, for sha256_pair only: whoever
 * calls it has asked the processor for them. Blocks are 64 bytes, at any alignment.
 */

#include <stddef.h>
#include <stdint.h>

enum {
    SHA256_BLOCK_BYTES = 64,
    SHA256_STATE_WORDS = 8
};

void sha256_ni_blocks(uint32_t state[SHA256_STATE_WORDS], const uint8_t *blocks, size_t count);

/* count blocks of each stream, the rounds of both interleaved. */
void sha256_ni_blocks_pair(uint32_t state_a[SHA256_STATE_WORDS], const uint8_t *blocks_a,
        uint32_t state_b[SHA256_STATE_WORDS], const uint8_t *blocks_b, size_t count);
