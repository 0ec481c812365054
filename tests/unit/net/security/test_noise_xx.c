/* SPDX-License-Identifier: MIT */
#include "net/security/noise_xx.h"

#include "net/security/noise_session.h"
#include "tests/support/vectors.h"

enum {
    MAX_MESSAGE = 1024
};

struct side {
    struct noise_xx xx;
    struct noise_session *session;
    struct noise_key_pair static_pair;
    struct span prologue;
    struct span static_secret;
    struct span ephemeral_secret;
};

/* role: "init" or "resp", as the keys of the vectors begin. */
static void begin(struct side *side, const json_t *vector, const char *role)
{
    char key[64];
    snprintf(key, sizeof(key), "%s_prologue", role);
    side->prologue = vectors_bytes(vector, key);
    snprintf(key, sizeof(key), "%s_static", role);
    side->static_secret = vectors_bytes(vector, key);
    snprintf(key, sizeof(key), "%s_ephemeral", role);
    side->ephemeral_secret = vectors_bytes(vector, key);
    side->session = NULL;
    assert_int_equal(noise_key_pair_init(&side->static_pair, side->static_secret.bytes), STATUS_OK);
    const struct noise_xx_options options = {
            .is_initiator = strcmp(role, "init") == 0,
            .prologue = side->prologue,
            .static_pair = &side->static_pair,
            .ephemeral_secret = side->ephemeral_secret.bytes,
    };
    assert_int_equal(noise_xx_init(&side->xx, &options), STATUS_OK);
}

static void end(struct side *side)
{
    noise_xx_fini(&side->xx);
    noise_key_pair_fini(&side->static_pair);
    noise_session_destroy(&side->session);
    hex_free(side->prologue);
    hex_free(side->static_secret);
    hex_free(side->ephemeral_secret);
}

static void split(struct side *side)
{
    uint8_t send_key[NOISE_XX_KEY_BYTES];
    uint8_t receive_key[NOISE_XX_KEY_BYTES];
    assert_int_equal(noise_xx_split(&side->xx, send_key, receive_key), STATUS_OK);
    assert_int_equal(noise_session_create(&side->session, send_key, receive_key), STATUS_OK);
}

static void pass_handshake_message(
        struct side *from, struct side *to, struct span payload, struct span expected)
{
    uint8_t message[MAX_MESSAGE];
    uint8_t received[MAX_MESSAGE];
    size_t length = 0;
    assert_int_equal(noise_xx_write(&from->xx, payload, message, &length), STATUS_OK);
    assert_true(span_equal(span_of(message, length), expected));
    assert_int_equal(noise_xx_read(&to->xx, expected, received, &length), STATUS_OK);
    assert_true(span_equal(span_of(received, length), payload));
}

static void pass_transport_message(
        struct side *from, struct side *to, struct span payload, struct span expected)
{
    uint8_t frame[MAX_MESSAGE];
    uint8_t received[MAX_MESSAGE];
    size_t length = noise_session_seal(from->session, &payload, 1, frame);
    assert_int_equal(length, NOISE_LENGTH_BYTES + expected.length);
    assert_int_equal(frame[0] << 8 | frame[1], expected.length);
    assert_memory_equal(frame + NOISE_LENGTH_BYTES, expected.bytes, expected.length);
    assert_int_equal(noise_session_open(to->session, expected.bytes, expected.length), STATUS_OK);
    assert_int_equal(noise_session_remaining(to->session), payload.length);
    noise_session_read(to->session, received, payload.length);
    assert_true(span_equal(span_of(received, payload.length), payload));
}

static void expect_handshake_hash(const struct side *side, const json_t *vector)
{
    if (json_object_get(vector, "handshake_hash") != NULL) {
        struct span hash = vectors_bytes(vector, "handshake_hash");
        assert_true(span_equal(span_of(side->xx.hash, NOISE_XX_HASH_BYTES), hash));
        hex_free(hash);
    }
}

static void replay(const json_t *vector)
{
    struct side sides[2];
    size_t i;
    json_t *message;
    begin(&sides[0], vector, "init");
    begin(&sides[1], vector, "resp");
    json_array_foreach(json_object_get(vector, "messages"), i, message)
    {
        struct side *from = &sides[i % 2];
        struct side *to = &sides[1 - i % 2];
        struct span payload = vectors_bytes(message, "payload");
        struct span expected = vectors_bytes(message, "ciphertext");
        if (i < NOISE_XX_MESSAGES) {
            pass_handshake_message(from, to, payload, expected);
        } else {
            pass_transport_message(from, to, payload, expected);
        }
        if (i == NOISE_XX_MESSAGES - 1) {
            expect_handshake_hash(from, vector);
            expect_handshake_hash(to, vector);
            split(from);
            split(to);
        }
        hex_free(payload);
        hex_free(expected);
    }
    assert_true(i > NOISE_XX_MESSAGES);
    end(&sides[0]);
    end(&sides[1]);
}

static void writes_and_reads_the_messages_of_other_implementations(void **state)
{
    (void)state;
    json_t *root = vectors_load("noise_xx.json");
    size_t i;
    json_t *vector;
    json_array_foreach(json_object_get(root, "vectors"), i, vector)
    {
        replay(vector);
    }
    assert_int_equal(i, 3);
    json_decref(root);
}

static void begin_with_random_keys(struct noise_xx *xx, bool is_initiator)
{
    struct noise_key_pair pair;
    assert_int_equal(noise_key_pair_init(&pair, NULL), STATUS_OK);
    const struct noise_xx_options options = {.is_initiator = is_initiator, .static_pair = &pair};
    assert_int_equal(noise_xx_init(xx, &options), STATUS_OK);
    noise_key_pair_fini(&pair); /* the handshake holds its key itself */
}

static void uses_another_ephemeral_key_in_every_handshake_of_one_static_key(void **state)
{
    (void)state;
    struct noise_key_pair pair;
    struct noise_xx a;
    struct noise_xx b;
    const struct noise_xx_options options = {.is_initiator = true, .static_pair = &pair};
    assert_int_equal(noise_key_pair_init(&pair, NULL), STATUS_OK);
    assert_int_equal(noise_xx_init(&a, &options), STATUS_OK);
    assert_int_equal(noise_xx_init(&b, &options), STATUS_OK);
    assert_memory_equal(a.own_static.public_key, b.own_static.public_key, NOISE_XX_KEY_BYTES);
    assert_memory_not_equal(
            a.own_ephemeral.public_key, b.own_ephemeral.public_key, NOISE_XX_KEY_BYTES);
    noise_xx_fini(&a);
    noise_xx_fini(&b);
    noise_key_pair_fini(&pair);
}

static void refuses_an_ephemeral_key_that_makes_every_secret_zero(void **state)
{
    (void)state;
    /* Points of small order on Curve25519, from RFC 7748 and its discussion of contributory use. */
    const char *const small[] = {
            "0000000000000000000000000000000000000000000000000000000000000000",
            "0100000000000000000000000000000000000000000000000000000000000000",
            "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
            "e0eb7a7c3b41b8ae1656e3faf19fc46ada098deb9c32b1fd866205165f49b800",
            "5f9c95bca3508c24b1d0b1559c83ef5b04445cc4581c8e86d8224eddd09f1157",
    };
    for (size_t i = 0; i < sizeof(small) / sizeof(small[0]); i++) {
        struct noise_xx responder;
        uint8_t buffer[MAX_MESSAGE];
        size_t length;
        struct span message = hex_decode(small[i]);
        begin_with_random_keys(&responder, false);
        assert_int_equal(noise_xx_read(&responder, message, buffer, &length), STATUS_OK);
        assert_int_equal(noise_xx_write(&responder, span_of(NULL, 0), buffer, &length),
                STATUS_BAD_HANDSHAKE);
        noise_xx_fini(&responder);
        hex_free(message);
    }
}

static void refuses_messages_that_are_too_short_at_any_length(void **state)
{
    (void)state;
    struct noise_xx initiator;
    struct noise_xx responder;
    uint8_t first[MAX_MESSAGE];
    uint8_t second[MAX_MESSAGE];
    uint8_t payload[MAX_MESSAGE];
    size_t length;
    const struct span nothing = {0};
    begin_with_random_keys(&responder, false);
    begin_with_random_keys(&initiator, true);
    assert_int_equal(noise_xx_write(&initiator, nothing, first, &length), STATUS_OK);
    assert_int_equal(length, NOISE_XX_KEY_BYTES);
    assert_int_equal(
            noise_xx_read(&responder, span_of(first, length), payload, &length), STATUS_OK);
    assert_int_equal(noise_xx_write(&responder, nothing, second, &length), STATUS_OK);
    assert_int_equal(length, NOISE_XX_MAX_OVERHEAD);
    for (size_t cut = 0; cut < length; cut++) {
        size_t ignored;
        initiator.next_message = 1;
        assert_int_equal(noise_xx_read(&initiator, span_of(second, cut), payload, &ignored),
                STATUS_BAD_HANDSHAKE);
        noise_xx_fini(&initiator);
        begin_with_random_keys(&initiator, true);
    }
    noise_xx_fini(&initiator);
    noise_xx_fini(&responder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(writes_and_reads_the_messages_of_other_implementations),
            cmocka_unit_test(uses_another_ephemeral_key_in_every_handshake_of_one_static_key),
            cmocka_unit_test(refuses_an_ephemeral_key_that_makes_every_secret_zero),
            cmocka_unit_test(refuses_messages_that_are_too_short_at_any_length),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
