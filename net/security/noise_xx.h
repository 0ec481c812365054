/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The handshake of Noise_XX_25519_ChaChaPoly_SHA256 by itself: three messages with payloads, no
 * framing and nothing of libp2p.
 *
 *   message 0   initiator  e
 *   message 1   responder  e, ee, s, es
 *   message 2   initiator  s, se
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
#include "net/security/noise_cipher.h"

enum {
    NOISE_XX_KEY_BYTES = 32,
    NOISE_XX_HASH_BYTES = 32,
    NOISE_XX_MESSAGES = 3,
    /* A message is at most this much longer than its payload: e, encrypted s, two tags. */
    NOISE_XX_MAX_OVERHEAD = 2 * NOISE_XX_KEY_BYTES + 2 * NOISE_CIPHER_TAG_BYTES
};

struct noise_key_pair {
    EVP_PKEY *key;
    uint8_t public_key[NOISE_XX_KEY_BYTES];
};

struct noise_xx {
    struct noise_cipher cipher;
    struct noise_key_pair own_static;
    struct noise_key_pair own_ephemeral;
    uint8_t remote_static[NOISE_XX_KEY_BYTES];
    uint8_t remote_ephemeral[NOISE_XX_KEY_BYTES];
    uint8_t chaining_key[NOISE_XX_HASH_BYTES];
    uint8_t hash[NOISE_XX_HASH_BYTES];
    unsigned next_message;
    bool is_initiator;
    bool has_key;
};

struct noise_xx_options {
    bool is_initiator;
    struct span prologue;                     /* both sides must give the same */
    const struct noise_key_pair *static_pair; /* is shared, not copied; must not be NULL */
    const uint8_t *ephemeral_secret;          /* NULL: random, which is what all but tests want */
};

/* With secret (32 bytes) NULL a random pair. */
MUST_USE enum status noise_key_pair_init(struct noise_key_pair *pair, const uint8_t *secret);
void noise_key_pair_fini(struct noise_key_pair *pair);

MUST_USE enum status noise_xx_init(
        struct noise_xx *handshake, const struct noise_xx_options *options);
void noise_xx_fini(struct noise_xx *handshake);

/* out has room for the payload and NOISE_XX_MAX_OVERHEAD. */
MUST_USE enum status noise_xx_write(
        struct noise_xx *handshake, struct span payload, uint8_t *out, size_t *written);

/*
 * payload has room for the message. STATUS_BAD_HANDSHAKE when it is too short, forged, or holds a
 * key with which no secret can be agreed.
 */
MUST_USE enum status noise_xx_read(
        struct noise_xx *handshake, struct span message, uint8_t *payload, size_t *length);

/* After the third message: the keys of what this side sends and receives from then on. */
MUST_USE enum status noise_xx_split(struct noise_xx *handshake,
        uint8_t send_key[NOISE_XX_KEY_BYTES], uint8_t receive_key[NOISE_XX_KEY_BYTES]);
