/* SPDX-License-Identifier: MIT */
#pragma once

/* What a handshake needs of the noise_static that noise.h describes, and what its signature covers. */

#include <stdint.h>

#include "net/security/noise.h"
#include "net/security/noise_xx.h"

enum {
    NOISE_STATIC_SIGNED_BYTES = 24 + NOISE_XX_KEY_BYTES /* a prefix of libp2p's and the key */
};

const struct noise_key_pair *BORROWED noise_static_pair(const struct noise_static *own_static);

/* The identity key as protobuf, and its signature. They live as long as own_static. */
struct span noise_static_identity_key(const struct noise_static *own_static);
struct span noise_static_signature(const struct noise_static *own_static);

/* The message that an identity signs to vouch for static_key. */
void noise_static_signed_bytes(
        uint8_t out[NOISE_STATIC_SIGNED_BYTES], const uint8_t static_key[NOISE_XX_KEY_BYTES]);
