/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * libp2p's secure channel: Noise_XX_25519_ChaChaPoly_SHA256 with proven identities on both sides.
 *
 * A handshake turns into a session; both take bytes in and give bytes out, without socket, clock or
 * thread. In a session the tag of a whole frame is verified before a byte of it is decrypted, and
 * then the plaintext is read in pieces of any size straight to where it is wanted.
 *
 * Lifetime: the options' own_static and muxer names are borrowed until the handshake is gone (the
 *           names, if one is chosen, longer: noise_handshake_muxer returns the caller's pointer);
 *           the identity is not needed beyond create.
 * Thread:   one at a time.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/attributes.h"
#include "base/span.h"
#include "base/status.h"
#include "net/identity/identity.h"

enum {
    NOISE_TAG_BYTES = 16,
    NOISE_LENGTH_BYTES = 2,
    NOISE_MAX_CIPHERTEXT = 65535,
    NOISE_MAX_PLAINTEXT = NOISE_MAX_CIPHERTEXT - NOISE_TAG_BYTES,
    NOISE_MAX_HANDSHAKE_FRAME = 4096 /* an RSA-8192 key and its signature need 2.2 KiB */
};

struct noise_static;
struct noise_handshake;
struct noise_session;

/*
 * A Noise key pair with the identity's signature of it, for all handshakes of a node: that saves
 * each of them a key and a signature. It is never stored.
 *
 * Thread: immutable once created, for any thread.
 */
MUST_USE enum status noise_static_create(
        struct noise_static **out, const struct identity *identity);
void noise_static_destroy(struct noise_static **own_static);

struct noise_handshake_options {
    const struct noise_static *own_static; /* NULL: made from identity for this handshake alone */
    const struct identity *identity;       /* needed without own_static only */
    bool is_initiator;
    const struct peer_id *expected_peer; /* copied; NULL: any */
    const char *const *muxers;           /* to offer in the handshake, best first */
    size_t muxer_count;                  /* 0: offer none */
};

MUST_USE enum status noise_handshake_create(
        struct noise_handshake **out, const struct noise_handshake_options *options);
void noise_handshake_destroy(struct noise_handshake **handshake);

/*
 * Takes input in any cut; *consumed is less than input.length only when done.
 * STATUS_BAD_HANDSHAKE: not Noise, or tampered with. STATUS_BAD_SIGNATURE, STATUS_BAD_KEY: the
 * identity is not proven. STATUS_WRONG_PEER: it is another than the expected one. STATUS_TOO_LARGE:
 * a frame above NOISE_MAX_HANDSHAKE_FRAME. After an error it accepts nothing more.
 */
MUST_USE enum status noise_handshake_receive(
        struct noise_handshake *handshake, struct span input, size_t *consumed);

/* What is to be sent; stays valid until the next call that changes the handshake. */
struct span noise_handshake_output(const struct noise_handshake *handshake);
void noise_handshake_output_taken(struct noise_handshake *handshake, size_t n);

/* True when all is received, proven, and nothing waits to be sent. */
bool noise_handshake_is_done(const struct noise_handshake *handshake);

/* The proven identity of the other side; only after is_done. */
const struct peer_id *BORROWED noise_handshake_peer(const struct noise_handshake *handshake);
const struct public_key *BORROWED noise_handshake_peer_key(const struct noise_handshake *handshake);

/* The first muxer of the initiator's list that both offered; NULL: to be negotiated. */
const char *BORROWED noise_handshake_muxer(const struct noise_handshake *handshake);

/* Only after is_done. On failure the handshake stays the caller's. */
MUST_USE enum status noise_handshake_finish(
        struct noise_handshake **CONSUMED handshake, struct noise_session **out);

void noise_session_destroy(struct noise_session **session);

/*
 * Verifies one frame, without its length; nothing of it is decrypted yet. The frame before must
 * have been read to the end, and the ciphertext must stay until this one is. STATUS_BAD_FRAME: too
 * short or forged. STATUS_LIMIT_REACHED: the nonces are used up. After an error the session is dead.
 */
MUST_USE enum status noise_session_open(
        struct noise_session *session, const uint8_t *ciphertext, size_t length);

/* Plaintext of the verified frame that is not read yet. */
size_t noise_session_remaining(const struct noise_session *session);

/* Decrypts the next n bytes, at most what remains. to may be where the ciphertext of them is. */
void noise_session_read(struct noise_session *session, uint8_t *to, size_t n);

/*
 * Writes one whole frame: length, ciphertext of all pieces, tag. The plaintext is at most
 * NOISE_MAX_PLAINTEXT, out has room for that and 18 more, and does not overlap the pieces. Returns
 * the bytes written; 0 when the nonces are used up.
 */
size_t noise_session_seal(
        struct noise_session *session, const struct span pieces[], size_t count, uint8_t *out);
