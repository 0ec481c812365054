/* SPDX-License-Identifier: MIT */
#pragma once

/* What own secp256k1 keys need beyond OpenSSL's EVP: the public point, and low-S signatures. */

#include <stddef.h>
#include <stdint.h>

#include <openssl/evp.h>

#include "base/attributes.h"
#include "base/status.h"

enum {
    SECP256K1_SECRET_BYTES = 32,
    SECP256K1_POINT_BYTES = 33
};

/* STATUS_BAD_KEY when secret is 0 or not below the order of the group. */
MUST_USE enum status secp256k1_key_create(EVP_PKEY **out,
        uint8_t public_point[SECP256K1_POINT_BYTES], const uint8_t secret[SECP256K1_SECRET_BYTES]);

/*
 * Replaces the s of a DER signature by order - s where that is smaller, and updates *length: both
 * are valid, but libsecp256k1 and others refuse the larger one.
 */
MUST_USE enum status secp256k1_lower_s(uint8_t *der, size_t *length);

/* A DER signature as its two numbers of 32 bytes, and back; *length is at most 72. */
MUST_USE enum status secp256k1_numbers(uint8_t numbers[64], const uint8_t *der, size_t length);
MUST_USE enum status secp256k1_der(uint8_t der[72], size_t *length, const uint8_t numbers[64]);
