/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * One direction of ChaCha20-Poly1305 with Noise's counting nonce, taken apart: the tag of a whole
 * frame is checked first, then its bytes are decrypted in pieces.
 *
 * The AEAD of RFC 8439 is ChaCha20 from block 1 on, and Poly1305 over the ciphertext under a key
 * from block 0. OpenSSL's own AEAD decrypts before it has seen the tag; with the two halves called
 * separately nothing unverified is ever decrypted, at the same cost (see bench_noise).
 *
 * Thread: one at a time.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <openssl/evp.h>

#include "base/attributes.h"
#include "base/span.h"
#include "base/status.h"

enum {
    NOISE_CIPHER_KEY_BYTES = 32,
    NOISE_CIPHER_TAG_BYTES = 16,
    NOISE_CIPHER_KEYSTREAM_BYTES = 512
};

struct noise_cipher {
    EVP_CIPHER_CTX *stream;
    EVP_MAC_CTX *mac;
    uint64_t nonce; /* of the next frame; the last value is never used */
    /*
     * The beginning of the frame's keystream, made in one call with block 0: several blocks cost
     * little more than one. keystream_at is where the next byte of it is; behind its end the
     * keystream is made as it is needed.
     */
    size_t keystream_at;
    uint8_t keystream[NOISE_CIPHER_KEYSTREAM_BYTES];
};

/* Memory is the caller's; it must be zero or have been given to fini. */
MUST_USE enum status noise_cipher_init(struct noise_cipher *cipher);
void noise_cipher_fini(struct noise_cipher *cipher);

/* Starts over with another key and nonce 0. */
void noise_cipher_set_key(struct noise_cipher *cipher, const uint8_t key[NOISE_CIPHER_KEY_BYTES]);

/*
 * Writes the ciphertext of all pieces and the tag behind it. False when the nonces are used up.
 * out does not overlap the pieces, or is exactly where the only piece is.
 */
MUST_USE bool noise_cipher_seal(struct noise_cipher *cipher, struct span associated,
        const struct span pieces[], size_t count, uint8_t *out);

/*
 * Checks the tag at the end of ciphertext; after STATUS_OK noise_cipher_decrypt may be called for
 * its bytes in order, once each. STATUS_BAD_FRAME, STATUS_LIMIT_REACHED when the nonces are used up.
 */
MUST_USE enum status noise_cipher_verify(
        struct noise_cipher *cipher, struct span associated, struct span ciphertext);
void noise_cipher_decrypt(struct noise_cipher *cipher, uint8_t *to, const uint8_t *from, size_t n);
