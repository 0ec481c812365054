/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Two independent SHA-256 hashes at once, in one thread.
 *
 * A SHA-NI round waits for the one before it, which leaves half of the unit idle; the rounds of a
 * second stream fill the gaps, so that two hashes cost little more than the longer of them. On a
 * processor without SHA-NI the two are computed by OpenSSL, one after the other.
 *
 * Thread: any.
 */

#include <stdbool.h>
#include <stdint.h>

#include "hash/sha256.h"

/* The streams may differ in length, in alignment and in how they are cut into pieces. */
void sha256_pair(uint8_t digest_a[SHA256_BYTES], struct sha256_pieces a,
        uint8_t digest_b[SHA256_BYTES], struct sha256_pieces b);

/* Whether this processor runs the two side by side. */
bool sha256_pair_is_side_by_side(void);
