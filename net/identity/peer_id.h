/* SPDX-License-Identifier: MIT */
#pragma once

/* The name of a peer: the multihash of its public key, by value and comparable bytewise. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/attributes.h"
#include "base/span.h"
#include "base/status.h"
#include "net/identity/public_key.h"

enum {
    PEER_ID_MAX_INLINE_KEY = 42, /* a longer public key is hashed */
    PEER_ID_MAX_BYTES = PEER_ID_MAX_INLINE_KEY + 2,
    PEER_ID_TEXT_SIZE = 64 /* base58btc of the longest, and the final zero */
};

struct peer_id {
    uint8_t length;
    uint8_t bytes[PEER_ID_MAX_BYTES]; /* zero behind length */
};

void peer_id_from_public_key(struct peer_id *out, const struct public_key *key);

/* From the binary form: an identity multihash of at most 42 bytes, or one of SHA-256. */
MUST_USE enum status peer_id_from_bytes(struct peer_id *out, struct span bytes);

/* From base58btc ("12D3Koo...", "16Uiu2...", "Qm...") or a CIDv1 in base32 or base58btc ("bafz..."). */
MUST_USE enum status peer_id_parse(struct peer_id *out, struct span text);

/* Writes base58btc and a final zero. Returns out. */
const char *peer_id_print(char out[PEER_ID_TEXT_SIZE], const struct peer_id *id);

struct span peer_id_span(const struct peer_id *id);
bool peer_id_equal(const struct peer_id *a, const struct peer_id *b);

/* Below, equal to or above zero: a total order. */
int peer_id_compare(const struct peer_id *a, const struct peer_id *b);

/* For hash tables: ids are chosen by peers, so seed is to be random and secret. */
uint64_t peer_id_hash(const struct peer_id *id, uint64_t seed);
