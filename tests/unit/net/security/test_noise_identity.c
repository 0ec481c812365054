/* SPDX-License-Identifier: MIT */

/*
 * A side that speaks Noise without fault but lies about who it is: on either side of the handshake
 * it must be refused, before it is answered and before anything it sent is taken for the session's.
 */

#include "net/security/noise_payload.h"
#include "net/security/noise_xx.h"
#include "tests/support/noise_pair.h"

enum {
    MAX_MESSAGE = 2048
};

enum lie {
    LIE_NONE, /* shows that the liar's protocol is otherwise right */
    LIE_TAMPERED_SIGNATURE,
    LIE_EMPTY_SIGNATURE,
    LIE_MISSING_SIGNATURE,
    LIE_SIGNATURE_OF_ANOTHER_KEY,
    LIE_SIGNATURE_OVER_ANOTHER_STATIC_KEY,
    LIE_SIGNATURE_WITHOUT_PREFIX,
    LIE_MISSING_KEY,
    LIE_MALFORMED_KEY,
    LIE_EMPTY_PAYLOAD,
    LIE_NO_PROTOBUF,
    LIE_COUNT
};

static const enum status expected_status[LIE_COUNT] = {
        [LIE_NONE] = STATUS_OK,
        [LIE_TAMPERED_SIGNATURE] = STATUS_BAD_SIGNATURE,
        [LIE_EMPTY_SIGNATURE] = STATUS_BAD_SIGNATURE,
        [LIE_MISSING_SIGNATURE] = STATUS_BAD_SIGNATURE,
        [LIE_SIGNATURE_OF_ANOTHER_KEY] = STATUS_BAD_SIGNATURE,
        [LIE_SIGNATURE_OVER_ANOTHER_STATIC_KEY] = STATUS_BAD_SIGNATURE,
        [LIE_SIGNATURE_WITHOUT_PREFIX] = STATUS_BAD_SIGNATURE,
        [LIE_MISSING_KEY] = STATUS_BAD_KEY,
        [LIE_MALFORMED_KEY] = STATUS_BAD_KEY,
        [LIE_EMPTY_PAYLOAD] = STATUS_BAD_KEY,
        [LIE_NO_PROTOBUF] = STATUS_BAD_HANDSHAKE,
};

struct liar {
    struct noise_xx xx;
    struct identity *identity;
    struct identity *other;
    enum lie lie;
};

static void begin(struct liar *liar, bool is_initiator, enum key_type type, enum lie lie)
{
    struct noise_key_pair pair;
    assert_int_equal(noise_key_pair_init(&pair, NULL), STATUS_OK);
    const struct noise_xx_options options = {.is_initiator = is_initiator, .static_pair = &pair};
    assert_int_equal(noise_xx_init(&liar->xx, &options), STATUS_OK);
    noise_key_pair_fini(&pair);
    liar->identity = noise_pair_identity(type);
    liar->other = noise_pair_identity(type);
    liar->lie = lie;
}

static void end(struct liar *liar)
{
    noise_xx_fini(&liar->xx);
    identity_destroy(&liar->identity);
    identity_destroy(&liar->other);
}

static size_t sign(const struct liar *liar, uint8_t signature[IDENTITY_SIGNATURE_MAX])
{
    static const char prefix[] = "noise-libp2p-static-key:";
    uint8_t message[sizeof(prefix) - 1 + NOISE_XX_KEY_BYTES];
    size_t length = 0;
    const struct identity *signer =
            liar->lie == LIE_SIGNATURE_OF_ANOTHER_KEY ? liar->other : liar->identity;
    memcpy(message, prefix, sizeof(prefix) - 1);
    memcpy(message + sizeof(prefix) - 1, liar->xx.own_static.public_key, NOISE_XX_KEY_BYTES);
    if (liar->lie == LIE_SIGNATURE_OVER_ANOTHER_STATIC_KEY) {
        message[sizeof(prefix) - 1] ^= 1;
    }
    struct span signed_bytes = span_of(message, sizeof(message));
    if (liar->lie == LIE_SIGNATURE_WITHOUT_PREFIX) {
        signed_bytes = span_of(liar->xx.own_static.public_key, NOISE_XX_KEY_BYTES);
    }
    assert_int_equal(identity_sign(signer, signed_bytes, signature, &length), STATUS_OK);
    signature[length / 2] ^= liar->lie == LIE_TAMPERED_SIGNATURE ? 0x20 : 0;
    return liar->lie == LIE_EMPTY_SIGNATURE ? 0 : length;
}

/* Writes the liar's payload to out and returns its length. */
static size_t make_payload(const struct liar *liar, uint8_t out[MAX_MESSAGE])
{
    uint8_t key[PUBLIC_KEY_MAX_ENCODED];
    uint8_t signature[IDENTITY_SIGNATURE_MAX];
    size_t length = 0;
    size_t key_length = public_key_encode(identity_public_key(liar->identity), key);
    size_t signature_length = sign(liar, signature);
    if (liar->lie == LIE_MALFORMED_KEY) {
        key[1] = 9; /* no such type */
    }
    if (liar->lie == LIE_EMPTY_PAYLOAD) {
        return 0;
    }
    if (liar->lie == LIE_NO_PROTOBUF) {
        memset(out, 0xff, 100);
        return 100;
    }
    struct noise_payload payload = {
            .identity_key = span_of(key, liar->lie == LIE_MISSING_KEY ? 0 : key_length),
            .identity_signature = span_of(signature, signature_length),
    };
    assert_int_equal(noise_payload_write(out, MAX_MESSAGE, &length, &payload), STATUS_OK);
    /* The key field alone: 2 bytes of head and the key. */
    return liar->lie == LIE_MISSING_SIGNATURE ? 2 + key_length : length;
}

static size_t frame(uint8_t *out, size_t length)
{
    out[0] = (uint8_t)(length >> 8);
    out[1] = (uint8_t)length;
    return NOISE_LENGTH_BYTES + length;
}

/* The liar writes its next message as a frame to out. */
static size_t write_message(struct liar *liar, uint8_t out[MAX_MESSAGE])
{
    uint8_t payload[MAX_MESSAGE];
    size_t written = 0;
    size_t length = liar->xx.next_message == 0 ? 0 : make_payload(liar, payload);
    assert_int_equal(
            noise_xx_write(&liar->xx, span_of(payload, length), out + NOISE_LENGTH_BYTES, &written),
            STATUS_OK);
    return frame(out, written);
}

/* The liar reads what the honest side says. */
static void read_message(struct liar *liar, struct noise_handshake *honest)
{
    uint8_t payload[MAX_MESSAGE];
    size_t length;
    struct span output = noise_handshake_output(honest);
    struct span message =
            span_of(output.bytes + NOISE_LENGTH_BYTES, output.length - NOISE_LENGTH_BYTES);
    assert_int_equal(noise_xx_read(&liar->xx, message, payload, &length), STATUS_OK);
    noise_handshake_output_taken(honest, output.length);
}

static struct noise_handshake *create_honest(
        const struct identity *identity, bool is_initiator, const struct peer_id *expected)
{
    struct noise_handshake *handshake = NULL;
    const struct noise_handshake_options options = {
            .identity = identity, .is_initiator = is_initiator, .expected_peer = expected};
    assert_int_equal(noise_handshake_create(&handshake, &options), STATUS_OK);
    return handshake;
}

/* An honest dialler meets a lying listener, which sends an application frame at once. */
static enum status dial(enum key_type type, enum lie lie)
{
    struct liar liar;
    uint8_t message[MAX_MESSAGE] = {0};
    size_t consumed = 0;
    struct identity *identity = noise_pair_identity(KEY_TYPE_ED25519);
    struct noise_handshake *honest = create_honest(identity, true, NULL);
    begin(&liar, false, type, lie);
    read_message(&liar, honest);
    size_t length = write_message(&liar, message);
    enum status status = noise_handshake_receive(honest, span_of(message, length + 50), &consumed);
    if (status != STATUS_OK) {
        assert_int_equal(noise_handshake_output(honest).length, 0);
        assert_false(noise_handshake_is_done(honest));
    }
    noise_handshake_destroy(&honest);
    identity_destroy(&identity);
    end(&liar);
    return status;
}

/* A lying dialler comes to an honest listener, with an application frame behind its proof. */
static enum status listen(enum key_type type, enum lie lie)
{
    struct liar liar;
    uint8_t message[MAX_MESSAGE] = {0};
    size_t consumed = 0;
    struct identity *identity = noise_pair_identity(KEY_TYPE_SECP256K1);
    struct noise_handshake *honest = create_honest(identity, false, NULL);
    begin(&liar, true, type, lie);
    size_t length = write_message(&liar, message);
    assert_int_equal(
            noise_handshake_receive(honest, span_of(message, length), &consumed), STATUS_OK);
    read_message(&liar, honest);
    length = write_message(&liar, message);
    enum status status = noise_handshake_receive(honest, span_of(message, length + 50), &consumed);
    assert_true(consumed <= length);
    assert_int_equal(noise_handshake_is_done(honest), status == STATUS_OK);
    noise_handshake_destroy(&honest);
    identity_destroy(&identity);
    end(&liar);
    return status;
}

static void a_dialler_refuses_a_listener_that_does_not_prove_its_identity(void **state)
{
    (void)state;
    for (enum lie lie = LIE_NONE; lie < LIE_COUNT; lie++) {
        assert_int_equal(dial(KEY_TYPE_ED25519, lie), expected_status[lie]);
        assert_int_equal(dial(KEY_TYPE_SECP256K1, lie), expected_status[lie]);
    }
}

static void a_listener_refuses_a_dialler_that_does_not_prove_its_identity(void **state)
{
    (void)state;
    for (enum lie lie = LIE_NONE; lie < LIE_COUNT; lie++) {
        assert_int_equal(listen(KEY_TYPE_ED25519, lie), expected_status[lie]);
        assert_int_equal(listen(KEY_TYPE_SECP256K1, lie), expected_status[lie]);
    }
}

/* Runs as far as it goes and returns what the side with the expectation said. */
static enum status meet(bool initiator_expects, bool expects_the_right_one)
{
    struct identity *identities[2];
    struct noise_handshake *sides[2];
    struct identity *stranger = noise_pair_identity(KEY_TYPE_ED25519);
    size_t picky = initiator_expects ? 0 : 1;
    for (size_t i = 0; i < 2; i++) {
        identities[i] = noise_pair_identity(KEY_TYPE_ED25519);
    }
    for (size_t i = 0; i < 2; i++) {
        const struct peer_id *expected =
                identity_peer_id(expects_the_right_one ? identities[1 - i] : stranger);
        sides[i] = create_honest(identities[i], i == 0, i == picky ? expected : NULL);
    }
    enum status status = noise_pair_pass(sides[0], sides[1], SIZE_MAX);
    status = status == STATUS_OK ? noise_pair_pass(sides[1], sides[0], SIZE_MAX) : status;
    status = status == STATUS_OK ? noise_pair_pass(sides[0], sides[1], SIZE_MAX) : status;
    assert_int_equal(noise_handshake_is_done(sides[picky]), expects_the_right_one);
    for (size_t i = 0; i < 2; i++) {
        noise_handshake_destroy(&sides[i]);
        identity_destroy(&identities[i]);
    }
    identity_destroy(&stranger);
    return status;
}

static void refuses_a_proven_peer_that_is_not_the_expected_one(void **state)
{
    (void)state;
    assert_int_equal(meet(true, false), STATUS_WRONG_PEER);
    assert_int_equal(meet(false, false), STATUS_WRONG_PEER);
    assert_int_equal(meet(true, true), STATUS_OK);
    assert_int_equal(meet(false, true), STATUS_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(a_dialler_refuses_a_listener_that_does_not_prove_its_identity),
            cmocka_unit_test(a_listener_refuses_a_dialler_that_does_not_prove_its_identity),
            cmocka_unit_test(refuses_a_proven_peer_that_is_not_the_expected_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
