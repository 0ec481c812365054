/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * What both sides of libp2p's Noise put into their handshake payload: the identity key, its
 * signature, and the muxers on offer. Read where it lies, written without allocating.
 */

#include <stddef.h>
#include <stdint.h>

#include "base/attributes.h"
#include "base/span.h"
#include "base/status.h"

enum {
    NOISE_PAYLOAD_MAX_MUXERS = 16 /* more are skipped when read, refused when written */
};

struct noise_payload {
    struct span identity_key; /* protobuf of the public key; empty when missing */
    struct span identity_signature;
    struct span muxers[NOISE_PAYLOAD_MAX_MUXERS];
    size_t muxer_count;
};

/* The spans point into bytes. STATUS_BAD_HANDSHAKE when it is no such protobuf. */
MUST_USE enum status noise_payload_parse(struct noise_payload *out, struct span bytes);

/* STATUS_TOO_LARGE when it needs more than capacity. */
MUST_USE enum status noise_payload_write(
        uint8_t *out, size_t capacity, size_t *length, const struct noise_payload *payload);
