/* SPDX-License-Identifier: MIT */
#pragma once

/* Two sides of a Noise handshake in memory, for tests that need a session or a broken handshake. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "net/security/noise.h"

struct noise_pair {
    struct identity *identities[2]; /* initiator, responder */
    struct noise_handshake *handshakes[2];
};

static inline struct identity *noise_pair_identity(enum key_type type)
{
    struct identity *identity = NULL;
    assert_int_equal(identity_create(&identity, type), STATUS_OK);
    return identity;
}

/* muxers: NULL-terminated list for both sides, or NULL. */
static inline void noise_pair_init(struct noise_pair *pair, enum key_type initiator,
        enum key_type responder, const char *const *muxers)
{
    const enum key_type types[] = {initiator, responder};
    size_t count = 0;
    while (muxers != NULL && muxers[count] != NULL) {
        count++;
    }
    for (size_t i = 0; i < 2; i++) {
        pair->identities[i] = noise_pair_identity(types[i]);
        struct noise_handshake_options options = {
                .identity = pair->identities[i],
                .is_initiator = i == 0,
                .muxers = muxers,
                .muxer_count = count,
        };
        assert_int_equal(noise_handshake_create(&pair->handshakes[i], &options), STATUS_OK);
    }
}

static inline void noise_pair_fini(struct noise_pair *pair)
{
    for (size_t i = 0; i < 2; i++) {
        noise_handshake_destroy(&pair->handshakes[i]);
        identity_destroy(&pair->identities[i]);
    }
}

/* Hands everything that from has to say to to, in pieces of at most cut bytes. */
static inline enum status noise_pair_pass(
        struct noise_handshake *from, struct noise_handshake *to, size_t cut)
{
    enum status status = STATUS_OK;
    while (noise_handshake_output(from).length > 0 && status == STATUS_OK) {
        size_t consumed = 0;
        struct span output = noise_handshake_output(from);
        output.length = output.length < cut ? output.length : cut;
        status = noise_handshake_receive(to, output, &consumed);
        assert_true(consumed == output.length || status != STATUS_OK);
        noise_handshake_output_taken(from, output.length);
    }
    return status;
}

/* The whole handshake. */
static inline void noise_pair_run(struct noise_pair *pair, size_t cut)
{
    struct noise_handshake *initiator = pair->handshakes[0];
    struct noise_handshake *responder = pair->handshakes[1];
    assert_int_equal(noise_pair_pass(initiator, responder, cut), STATUS_OK);
    assert_int_equal(noise_pair_pass(responder, initiator, cut), STATUS_OK);
    assert_int_equal(noise_pair_pass(initiator, responder, cut), STATUS_OK);
    assert_true(noise_handshake_is_done(initiator));
    assert_true(noise_handshake_is_done(responder));
}

/* A handshake between two Ed25519 keys, and what it gives. */
static inline void noise_pair_sessions(struct noise_session *sessions[2])
{
    struct noise_pair pair;
    noise_pair_init(&pair, KEY_TYPE_ED25519, KEY_TYPE_ED25519, NULL);
    noise_pair_run(&pair, SIZE_MAX);
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(noise_handshake_finish(&pair.handshakes[i], &sessions[i]), STATUS_OK);
    }
    noise_pair_fini(&pair);
}
