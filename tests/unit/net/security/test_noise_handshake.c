/* SPDX-License-Identifier: MIT */
#include "tests/support/noise_pair.h"

#include "tests/support/hex.h"

static const enum key_type own_types[] = {KEY_TYPE_ED25519, KEY_TYPE_SECP256K1};

static void expect_text_through(struct noise_session *from, struct noise_session *to)
{
    static const char text[] = "over the channel";
    uint8_t frame[64];
    uint8_t received[sizeof(text)];
    struct span piece = span_of(text, sizeof(text));
    size_t length = noise_session_seal(from, &piece, 1, frame);
    assert_int_equal(length, NOISE_LENGTH_BYTES + sizeof(text) + NOISE_TAG_BYTES);
    assert_int_equal(
            noise_session_open(to, frame + NOISE_LENGTH_BYTES, length - NOISE_LENGTH_BYTES),
            STATUS_OK);
    noise_session_read(to, received, sizeof(text));
    assert_memory_equal(received, text, sizeof(text));
}

static void proves_both_identities_and_makes_a_channel_with_all_own_key_types(void **state)
{
    (void)state;
    for (size_t i = 0; i < 4; i++) {
        struct noise_pair pair;
        struct noise_session *sessions[2];
        noise_pair_init(&pair, own_types[i / 2], own_types[i % 2], NULL);
        noise_pair_run(&pair, SIZE_MAX);
        for (size_t side = 0; side < 2; side++) {
            const struct peer_id *proven = noise_handshake_peer(pair.handshakes[side]);
            assert_true(peer_id_equal(proven, identity_peer_id(pair.identities[1 - side])));
            assert_int_equal(noise_handshake_peer_key(pair.handshakes[side])->type,
                    identity_public_key(pair.identities[1 - side])->type);
            assert_null(noise_handshake_muxer(pair.handshakes[side]));
        }
        for (size_t side = 0; side < 2; side++) {
            assert_int_equal(
                    noise_handshake_finish(&pair.handshakes[side], &sessions[side]), STATUS_OK);
            assert_null(pair.handshakes[side]);
        }
        expect_text_through(sessions[0], sessions[1]);
        expect_text_through(sessions[1], sessions[0]);
        noise_session_destroy(&sessions[0]);
        noise_session_destroy(&sessions[1]);
        noise_pair_fini(&pair);
    }
}

/* Alice and Bob each use one static key for two handshakes, one in either direction. */
static void shares_one_static_key_among_handshakes(void **state)
{
    (void)state;
    struct noise_static *statics[2] = {NULL, NULL};
    struct noise_pair pair;
    for (size_t i = 0; i < 2; i++) {
        pair.identities[i] = noise_pair_identity(own_types[i]);
        assert_int_equal(noise_static_create(&statics[i], pair.identities[i]), STATUS_OK);
    }
    for (size_t dialler = 0; dialler < 2; dialler++) {
        for (size_t i = 0; i < 2; i++) {
            const struct noise_handshake_options options = {
                    .own_static = statics[i == 0 ? dialler : 1 - dialler],
                    .is_initiator = i == 0,
            };
            assert_int_equal(noise_handshake_create(&pair.handshakes[i], &options), STATUS_OK);
        }
        noise_pair_run(&pair, SIZE_MAX);
        assert_true(peer_id_equal(noise_handshake_peer(pair.handshakes[1]),
                identity_peer_id(pair.identities[dialler])));
        assert_true(peer_id_equal(noise_handshake_peer(pair.handshakes[0]),
                identity_peer_id(pair.identities[1 - dialler])));
        noise_handshake_destroy(&pair.handshakes[0]);
        noise_handshake_destroy(&pair.handshakes[1]);
    }
    noise_pair_fini(&pair);
    noise_static_destroy(&statics[0]);
    noise_static_destroy(&statics[1]);
    assert_null(statics[0]);
}

static void takes_the_bytes_in_every_cut(void **state)
{
    (void)state;
    for (size_t cut = 1; cut <= 70; cut++) {
        struct noise_pair pair;
        noise_pair_init(&pair, KEY_TYPE_ED25519, KEY_TYPE_ED25519, NULL);
        noise_pair_run(&pair, cut);
        noise_pair_fini(&pair);
    }
}

static void leaves_the_bytes_behind_the_handshake_to_the_session(void **state)
{
    (void)state;
    struct noise_pair pair;
    uint8_t input[2048];
    size_t consumed = 0;
    noise_pair_init(&pair, KEY_TYPE_ED25519, KEY_TYPE_ED25519, NULL);
    assert_int_equal(noise_pair_pass(pair.handshakes[0], pair.handshakes[1], SIZE_MAX), STATUS_OK);
    assert_int_equal(noise_pair_pass(pair.handshakes[1], pair.handshakes[0], SIZE_MAX), STATUS_OK);
    struct span third = noise_handshake_output(pair.handshakes[0]);
    memcpy(input, third.bytes, third.length);
    memset(input + third.length, 0xee, 100);
    assert_int_equal(noise_handshake_receive(
                             pair.handshakes[1], span_of(input, third.length + 100), &consumed),
            STATUS_OK);
    assert_int_equal(consumed, third.length);
    assert_int_equal(
            noise_handshake_receive(pair.handshakes[1], span_of(input, 100), &consumed), STATUS_OK);
    assert_int_equal(consumed, 0);
    noise_pair_fini(&pair);
}

static void is_not_done_before_its_last_message_is_taken(void **state)
{
    (void)state;
    struct noise_pair pair;
    noise_pair_init(&pair, KEY_TYPE_ED25519, KEY_TYPE_ED25519, NULL);
    assert_int_equal(noise_pair_pass(pair.handshakes[0], pair.handshakes[1], SIZE_MAX), STATUS_OK);
    assert_int_equal(noise_pair_pass(pair.handshakes[1], pair.handshakes[0], SIZE_MAX), STATUS_OK);
    assert_false(noise_handshake_is_done(pair.handshakes[0]));
    noise_handshake_output_taken(
            pair.handshakes[0], noise_handshake_output(pair.handshakes[0]).length);
    assert_true(noise_handshake_is_done(pair.handshakes[0]));
    assert_false(noise_handshake_is_done(pair.handshakes[1]));
    noise_pair_fini(&pair);
}

struct muxer_example {
    const char *initiator[3];
    const char *responder[3];
    const char *expected;
};

#define YAMUX "/yamux/1.0.0"
#define MPLEX "/mplex/6.7.0"

/* The rows with two lists in different order are those of the specification's example. */
static const struct muxer_example muxer_examples[] = {
        {{YAMUX, MPLEX}, {YAMUX, MPLEX}, YAMUX},
        {{YAMUX, MPLEX}, {MPLEX, YAMUX}, YAMUX},
        {{MPLEX, YAMUX}, {YAMUX, MPLEX}, MPLEX},
        {{MPLEX}, {YAMUX, MPLEX}, MPLEX},
        {{YAMUX, MPLEX}, {MPLEX}, MPLEX},
        {{YAMUX}, {MPLEX}, NULL},
        {{YAMUX}, {NULL}, NULL},
        {{NULL}, {YAMUX}, NULL},
        {{NULL}, {NULL}, NULL},
};

static struct noise_handshake *create_with_muxers(
        const struct identity *identity, bool is_initiator, const char *const *muxers)
{
    struct noise_handshake *handshake = NULL;
    struct noise_handshake_options options = {
            .identity = identity,
            .is_initiator = is_initiator,
            .muxers = muxers,
            .muxer_count = (size_t)(muxers[0] != NULL) + (muxers[0] != NULL && muxers[1] != NULL),
    };
    assert_int_equal(noise_handshake_create(&handshake, &options), STATUS_OK);
    return handshake;
}

static void chooses_the_first_muxer_of_the_initiator_that_both_have(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(muxer_examples) / sizeof(muxer_examples[0]); i++) {
        const struct muxer_example *example = &muxer_examples[i];
        struct noise_pair pair;
        for (size_t side = 0; side < 2; side++) {
            pair.identities[side] = noise_pair_identity(KEY_TYPE_ED25519);
        }
        pair.handshakes[0] = create_with_muxers(pair.identities[0], true, example->initiator);
        pair.handshakes[1] = create_with_muxers(pair.identities[1], false, example->responder);
        noise_pair_run(&pair, SIZE_MAX);
        for (size_t side = 0; side < 2; side++) {
            const char *muxer = noise_handshake_muxer(pair.handshakes[side]);
            assert_true((muxer == NULL) == (example->expected == NULL));
            assert_true(muxer == NULL || strcmp(muxer, example->expected) == 0);
        }
        noise_pair_fini(&pair);
    }
}

/* Passes the handshake up to the second or third message and that one with a byte changed. */
static size_t change_byte(bool of_third_message, size_t at)
{
    struct noise_pair pair;
    uint8_t frame[1024];
    size_t consumed;
    noise_pair_init(&pair, KEY_TYPE_ED25519, KEY_TYPE_ED25519, NULL);
    struct noise_handshake *from = pair.handshakes[of_third_message ? 0 : 1];
    struct noise_handshake *to = pair.handshakes[of_third_message ? 1 : 0];
    assert_int_equal(noise_pair_pass(pair.handshakes[0], pair.handshakes[1], SIZE_MAX), STATUS_OK);
    if (of_third_message) {
        assert_int_equal(noise_pair_pass(to, from, SIZE_MAX), STATUS_OK);
    }
    struct span output = noise_handshake_output(from);
    memcpy(frame, output.bytes, output.length);
    frame[at] ^= 0x01;
    assert_int_equal(noise_handshake_receive(to, span_of(frame, output.length), &consumed),
            STATUS_BAD_HANDSHAKE);
    assert_false(noise_handshake_is_done(to));
    assert_int_equal(noise_handshake_output(to).length, 0);
    noise_pair_fini(&pair);
    return output.length;
}

static void refuses_a_message_with_any_byte_changed(void **state)
{
    (void)state;
    size_t length = NOISE_LENGTH_BYTES + 1;
    for (size_t at = NOISE_LENGTH_BYTES; at < length; at++) {
        length = change_byte(false, at);
    }
    assert_int_equal(length, NOISE_LENGTH_BYTES + 32 + 48 + 16 + 38 + 66);
    length = NOISE_LENGTH_BYTES + 1;
    for (size_t at = NOISE_LENGTH_BYTES; at < length; at++) {
        length = change_byte(true, at);
    }
    assert_int_equal(length, NOISE_LENGTH_BYTES + 48 + 16 + 38 + 66);
}

static void refuses_a_changed_first_message_when_the_second_is_read(void **state)
{
    (void)state;
    for (size_t at = 2; at < 34; at++) {
        struct noise_pair pair;
        uint8_t frame[64];
        size_t consumed;
        noise_pair_init(&pair, KEY_TYPE_ED25519, KEY_TYPE_ED25519, NULL);
        struct span first = noise_handshake_output(pair.handshakes[0]);
        assert_int_equal(first.length, 34);
        memcpy(frame, first.bytes, first.length);
        frame[at] ^= 0x10;
        assert_int_equal(noise_handshake_receive(pair.handshakes[1], span_of(frame, 34), &consumed),
                STATUS_OK);
        noise_handshake_output_taken(pair.handshakes[0], first.length);
        assert_int_equal(noise_pair_pass(pair.handshakes[1], pair.handshakes[0], SIZE_MAX),
                STATUS_BAD_HANDSHAKE);
        assert_int_equal(noise_handshake_output(pair.handshakes[0]).length, 0);
        noise_pair_fini(&pair);
    }
}

static struct noise_handshake *create_responder(const struct identity *identity)
{
    struct noise_handshake *handshake = NULL;
    const struct noise_handshake_options options = {.identity = identity};
    assert_int_equal(noise_handshake_create(&handshake, &options), STATUS_OK);
    return handshake;
}

struct bad_frame {
    uint8_t length[2];
    enum status status;
};

static const struct bad_frame bad_frames[] = {
        {{0x00, 0x00}, STATUS_BAD_HANDSHAKE},
        {{0x00, 0x01}, STATUS_BAD_HANDSHAKE},
        {{0x00, 0x1f}, STATUS_BAD_HANDSHAKE},
        {{0x10, 0x01}, STATUS_TOO_LARGE},
        {{0xff, 0xff}, STATUS_TOO_LARGE},
};

static void bounds_the_length_of_a_frame_before_its_bytes_arrive(void **state)
{
    (void)state;
    struct identity *identity = noise_pair_identity(KEY_TYPE_ED25519);
    for (size_t i = 0; i < sizeof(bad_frames) / sizeof(bad_frames[0]); i++) {
        struct noise_handshake *handshake = create_responder(identity);
        uint8_t input[2 + 32] = {bad_frames[i].length[0], bad_frames[i].length[1]};
        size_t consumed = 0;
        assert_int_equal(
                noise_handshake_receive(handshake, span_of(input, 1), &consumed), STATUS_OK);
        assert_int_equal(noise_handshake_receive(handshake, span_of(input + 1, 33), &consumed),
                bad_frames[i].status);
        noise_handshake_destroy(&handshake);
    }
    identity_destroy(&identity);
}

static void takes_the_largest_first_message_and_stays_with_an_error_after_it(void **state)
{
    (void)state;
    static uint8_t input[NOISE_LENGTH_BYTES + NOISE_MAX_HANDSHAKE_FRAME] = {0x10, 0x00, 9};
    struct identity *identity = noise_pair_identity(KEY_TYPE_ED25519);
    struct noise_handshake *handshake = create_responder(identity);
    size_t consumed = 0;
    struct span whole = span_of(input, sizeof(input));
    assert_int_equal(noise_handshake_receive(handshake, whole, &consumed), STATUS_OK);
    assert_int_equal(consumed, sizeof(input));
    assert_int_equal(noise_handshake_receive(handshake, whole, &consumed), STATUS_BAD_HANDSHAKE);
    assert_int_equal(noise_handshake_receive(handshake, whole, &consumed), STATUS_BAD_HANDSHAKE);
    assert_int_equal(consumed, 0);
    assert_false(noise_handshake_is_done(handshake));
    noise_handshake_destroy(&handshake);
    identity_destroy(&identity);
}

static void refuses_options_that_it_cannot_keep(void **state)
{
    (void)state;
    const char *many[17];
    struct identity *identity = noise_pair_identity(KEY_TYPE_ED25519);
    struct noise_handshake *handshake = NULL;
    struct noise_handshake_options options = {.muxers = many, .muxer_count = 17};
    for (size_t i = 0; i < 17; i++) {
        many[i] = YAMUX;
    }
    assert_int_equal(noise_handshake_create(&handshake, &options), STATUS_BAD_ARGUMENT);
    options.identity = identity;
    assert_int_equal(noise_handshake_create(&handshake, &options), STATUS_BAD_ARGUMENT);
    options.muxer_count = 16;
    assert_int_equal(noise_handshake_create(&handshake, &options), STATUS_OK);
    noise_handshake_destroy(&handshake);
    identity_destroy(&identity);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(proves_both_identities_and_makes_a_channel_with_all_own_key_types),
            cmocka_unit_test(shares_one_static_key_among_handshakes),
            cmocka_unit_test(takes_the_bytes_in_every_cut),
            cmocka_unit_test(leaves_the_bytes_behind_the_handshake_to_the_session),
            cmocka_unit_test(is_not_done_before_its_last_message_is_taken),
            cmocka_unit_test(chooses_the_first_muxer_of_the_initiator_that_both_have),
            cmocka_unit_test(refuses_a_message_with_any_byte_changed),
            cmocka_unit_test(refuses_a_changed_first_message_when_the_second_is_read),
            cmocka_unit_test(bounds_the_length_of_a_frame_before_its_bytes_arrive),
            cmocka_unit_test(takes_the_largest_first_message_and_stays_with_an_error_after_it),
            cmocka_unit_test(refuses_options_that_it_cannot_keep),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
