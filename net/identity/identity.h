/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The node's own key, Ed25519 or secp256k1: make, load, save and sign with it.
 *
 * Ownership:  whoever created it; the connections borrow it.
 * Thread:     immutable once created, so that any thread may sign with it and read it.
 */

#include <stddef.h>
#include <stdint.h>

#include "base/attributes.h"
#include "base/span.h"
#include "base/status.h"
#include "net/identity/peer_id.h"
#include "net/identity/public_key.h"

enum {
    IDENTITY_SIGNATURE_MAX = 72 /* DER of two 256-bit numbers; Ed25519 has 64 */
};

struct identity;

/* A new random key; STATUS_UNSUPPORTED for other types than Ed25519 and secp256k1. */
MUST_USE enum status identity_create(struct identity **out, enum key_type type);

/* hex: 64 digits, a secp256k1 secret; a leading 0x is accepted. */
MUST_USE enum status identity_create_from_hex(struct identity **out, struct span hex);

/* From the private key protobuf of libp2p, which is also what a key file holds. */
MUST_USE enum status identity_create_from_bytes(struct identity **out, struct span protobuf);

MUST_USE enum status identity_load(struct identity **out, const char *path);

/*
 * Writes a file of mode 0600 that appears whole or not at all. STATUS_ALREADY_EXISTS when there is
 * one: a lost key cannot be had back.
 */
MUST_USE enum status identity_save(const struct identity *identity, const char *path);

void identity_destroy(struct identity **identity);

/* *length is at most IDENTITY_SIGNATURE_MAX. */
MUST_USE enum status identity_sign(const struct identity *identity, struct span message,
        uint8_t signature[IDENTITY_SIGNATURE_MAX], size_t *length);

/*
 * Of a secp256k1 key, over a hash of 32 bytes as it is: r and s, 32 bytes each, s the lower one.
 * STATUS_UNSUPPORTED for another key.
 */
MUST_USE enum status identity_sign_digest(
        const struct identity *identity, const uint8_t hash[32], uint8_t signature[64]);

const struct public_key *BORROWED identity_public_key(const struct identity *identity);
const struct peer_id *BORROWED identity_peer_id(const struct identity *identity);
