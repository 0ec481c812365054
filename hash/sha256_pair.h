/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Independent SHA-256 hashes, two at once, in one thread.
 *
 * A SHA-NI round waits for the one before it, which leaves half of the unit idle; the rounds of a
 * second stream fill the gaps, so that two hashes cost little more than the longer of them. On a
 * processor without SHA-NI they are computed by OpenSSL, one after the other.
 *
 * Thread: any.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "hash/sha256.h"

/* The streams may differ in length, in alignment and in how they are cut into pieces. */
void sha256_pair(uint8_t digest_a[SHA256_BYTES], struct sha256_pieces a,
        uint8_t digest_b[SHA256_BYTES], struct sha256_pieces b);

struct sha256_job {
    struct sha256_pieces pieces;
    uint8_t *digest; /* SHA256_BYTES */
};

/* When one of the two hashes is done, the next job takes its place beside the other. */
void sha256_side_by_side(const struct sha256_job jobs[], size_t count);

/* Whether this processor runs the two side by side. */
bool sha256_pair_is_side_by_side(void);
