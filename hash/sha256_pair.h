/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Independent SHA-256 hashes, two at once, in one thread.
 *
 * A SHA-NI round waits for the one before it, which leaves half of the unit idle; the rounds of a
 * second stream fill the gaps, so that two hashes cost little more than the longer of them. On a
 * processor without SHA-NI they are computed by OpenSSL, one after the other.
 *
 * Thread: a pair belongs to one thread, the rest is for any.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/attributes.h"
#include "base/status.h"
#include "hash/sha256.h"

/* A hash to come. It, the spans and the bytes behind them stay where they are until it is done. */
struct sha256_task {
    struct sha256_pieces pieces;
    uint8_t *digest; /* SHA256_BYTES, written when it is done */
    bool is_done;
};

struct sha256_pair;

MUST_USE enum status sha256_pair_create(struct sha256_pair **out);

/* Tasks that are not done never will be. */
void sha256_pair_destroy(struct sha256_pair **pair);

/*
 * A place beside the other task becomes free for it: when there are two already, first as much of both
 * is hashed as makes one of them done. So whoever starts one after the other leaves nothing to be hashed
 * alone, however much they differ in length.
 */
void sha256_pair_start(struct sha256_pair *pair, struct sha256_task *task);

/* Hashes until task, one that was started here, is done. */
void sha256_pair_finish(struct sha256_pair *pair, const struct sha256_task *task);

/* Both of them. The streams may differ in length, in alignment and in how they are cut into pieces. */
void sha256_both(uint8_t digest_a[SHA256_BYTES], struct sha256_pieces a,
        uint8_t digest_b[SHA256_BYTES], struct sha256_pieces b);

/* Whether this processor runs the two side by side. */
bool sha256_pair_is_side_by_side(void);
