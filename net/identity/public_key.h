/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The public key that a libp2p peer is known by: its protobuf form, and checking its signatures.
 *
 * Every key type of libp2p can be verified: RSA (PKCS#1 v1.5), Ed25519, secp256k1 and ECDSA P-256,
 * all but Ed25519 over SHA-256.
 */

#include <stddef.h>
#include <stdint.h>

#include "base/attributes.h"
#include "base/span.h"
#include "base/status.h"

/* The numbers are those of the protobuf. */
enum key_type {
    KEY_TYPE_RSA = 0,
    KEY_TYPE_ED25519 = 1,
    KEY_TYPE_SECP256K1 = 2,
    KEY_TYPE_ECDSA = 3
};

enum {
    PUBLIC_KEY_MIN_RSA_BITS = 2048,
    PUBLIC_KEY_MAX_RSA_BITS = 8192,
    PUBLIC_KEY_MAX_DATA = 1100, /* SubjectPublicKeyInfo of the largest RSA key */
    PUBLIC_KEY_MAX_ENCODED = PUBLIC_KEY_MAX_DATA + 5, /* two field tags, the type, the length */
    SIGNATURE_MAX_BYTES = PUBLIC_KEY_MAX_RSA_BITS / 8
};

struct public_key {
    enum key_type type;
    uint16_t length;
    /* Ed25519: 32 bytes; secp256k1: compressed point, 33 bytes; RSA, ECDSA: SubjectPublicKeyInfo. */
    uint8_t data[PUBLIC_KEY_MAX_DATA];
};

/*
 * Takes the protobuf apart and checks type and length. Whether the bytes are a point of the curve or
 * an RSA key of an accepted size shows in public_key_verify.
 */
MUST_USE enum status public_key_parse(struct public_key *out, struct span protobuf);

/* The one deterministic encoding, from which peer ids are made. Returns the bytes written. */
size_t public_key_encode(const struct public_key *key, uint8_t out[PUBLIC_KEY_MAX_ENCODED]);

/* STATUS_BAD_SIGNATURE when it is not key's signature of message, STATUS_BAD_KEY when key is none. */
MUST_USE enum status public_key_verify(
        const struct public_key *key, struct span message, struct span signature);

/* Of a secp256k1 key, over a hash of 32 bytes as it is; signature: r and s, 64 bytes. */
MUST_USE enum status public_key_verify_digest(
        const struct public_key *key, const uint8_t hash[32], struct span signature);

const char *key_type_name(enum key_type type);
