/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * SHA-256 over bytes that lie in several places, on OpenSSL.
 *
 * The algorithm is fetched once a process and the context is made once a thread, so that a hash
 * costs no allocation and no look-up by name.
 *
 * Thread: any.
 */

#include <stddef.h>
#include <stdint.h>

#include "base/span.h"

enum {
    SHA256_BYTES = 32
};

/* Spans that are hashed one after the other, as if they were one run of bytes. */
struct sha256_pieces {
    const struct span *spans;
    size_t count;
};

void sha256(uint8_t digest[SHA256_BYTES], struct sha256_pieces pieces);

/* The number of bytes in all pieces. */
size_t sha256_pieces_length(struct sha256_pieces pieces);
