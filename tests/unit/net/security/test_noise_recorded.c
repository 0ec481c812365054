/* SPDX-License-Identifier: MIT */

/*
 * Handshakes that js-libp2p has had with a side whose secrets are known, so that its messages can
 * be read again: its proof of identity, its muxers, and its first frame.
 */

#include "net/security/noise_payload.h"
#include "net/security/noise_session.h"
#include "net/security/noise_static.h"
#include "tests/support/vectors.h"

enum {
    MAX_MESSAGE = 4096
};

struct recording {
    const json_t *vector;
    bool is_initiator; /* the side whose secrets are known */
    struct noise_key_pair pair;
    struct noise_xx xx;
};

static void begin(struct recording *recording, const json_t *vector)
{
    struct span static_secret = vectors_bytes(vector, "static_secret");
    struct span ephemeral_secret = vectors_bytes(vector, "ephemeral_secret");
    recording->vector = vector;
    recording->is_initiator = strcmp(vectors_text(vector, "role"), "initiator") == 0;
    assert_int_equal(noise_key_pair_init(&recording->pair, static_secret.bytes), STATUS_OK);
    const struct noise_xx_options options = {
            .is_initiator = recording->is_initiator,
            .static_pair = &recording->pair,
            .ephemeral_secret = ephemeral_secret.bytes,
    };
    assert_int_equal(noise_xx_init(&recording->xx, &options), STATUS_OK);
    hex_free(static_secret);
    hex_free(ephemeral_secret);
}

static void end(struct recording *recording)
{
    noise_xx_fini(&recording->xx);
    noise_key_pair_fini(&recording->pair);
}

/* The payload that the known side sent: its signature is Ed25519 and so the same each time. */
static size_t own_payload(const struct recording *recording, uint8_t out[MAX_MESSAGE])
{
    uint8_t message[NOISE_STATIC_SIGNED_BYTES];
    uint8_t key[PUBLIC_KEY_MAX_ENCODED];
    uint8_t signature[IDENTITY_SIGNATURE_MAX];
    size_t signature_length = 0;
    size_t length = 0;
    struct identity *identity = NULL;
    struct span secret = vectors_bytes(recording->vector, "identity");
    assert_int_equal(identity_create_from_bytes(&identity, secret), STATUS_OK);
    noise_static_signed_bytes(message, recording->pair.public_key);
    assert_int_equal(identity_sign(identity, span_of(message, sizeof(message)), signature,
                             &signature_length),
            STATUS_OK);
    const struct noise_payload payload = {
            .identity_key = span_of(key, public_key_encode(identity_public_key(identity), key)),
            .identity_signature = span_of(signature, signature_length),
            .muxers = {span_of_text("/yamux/1.0.0")},
            .muxer_count = 1,
    };
    assert_int_equal(noise_payload_write(out, MAX_MESSAGE, &length, &payload), STATUS_OK);
    identity_destroy(&identity);
    hex_free(secret);
    return length;
}

static void expect_own_message(struct recording *recording, unsigned number, struct span recorded)
{
    uint8_t payload[MAX_MESSAGE];
    uint8_t message[MAX_MESSAGE];
    size_t written = 0;
    size_t length = number == 0 ? 0 : own_payload(recording, payload);
    assert_int_equal(
            noise_xx_write(&recording->xx, span_of(payload, length), message, &written), STATUS_OK);
    assert_true(span_equal(span_of(message, written), recorded));
}

static void expect_proof(const struct recording *recording, const struct noise_payload *payload)
{
    uint8_t message[NOISE_STATIC_SIGNED_BYTES];
    char text[PEER_ID_TEXT_SIZE];
    struct public_key key;
    struct peer_id id;
    assert_int_equal(public_key_parse(&key, payload->identity_key), STATUS_OK);
    peer_id_from_public_key(&id, &key);
    assert_string_equal(peer_id_print(text, &id), vectors_text(recording->vector, "peer_id"));
    noise_static_signed_bytes(message, recording->xx.remote_static);
    assert_int_equal(
            public_key_verify(&key, span_of(message, sizeof(message)), payload->identity_signature),
            STATUS_OK);
    message[sizeof(message) - 1] ^= 1;
    assert_int_equal(
            public_key_verify(&key, span_of(message, sizeof(message)), payload->identity_signature),
            STATUS_BAD_SIGNATURE);
}

static void read_their_message(struct recording *recording, unsigned number, struct span recorded)
{
    uint8_t bytes[MAX_MESSAGE];
    size_t length = 0;
    struct noise_payload payload;
    assert_int_equal(noise_xx_read(&recording->xx, recorded, bytes, &length), STATUS_OK);
    if (number == 0) {
        assert_int_equal(length, 0);
        return;
    }
    assert_int_equal(noise_payload_parse(&payload, span_of(bytes, length)), STATUS_OK);
    expect_proof(recording, &payload);
    assert_int_equal(payload.muxer_count, 2);
    assert_true(span_equal(payload.muxers[0], span_of_text("/yamux/1.0.0")));
    assert_true(span_equal(payload.muxers[1], span_of_text("/mplex/6.7.0")));
}

static void open_their_frame(struct recording *recording)
{
    uint8_t send_key[NOISE_XX_KEY_BYTES];
    uint8_t receive_key[NOISE_XX_KEY_BYTES];
    uint8_t received[64];
    struct noise_session *session = NULL;
    struct span ciphertext = vectors_bytes(recording->vector, "frame");
    struct span plaintext = vectors_bytes(recording->vector, "plaintext");
    assert_int_equal(noise_xx_split(&recording->xx, send_key, receive_key), STATUS_OK);
    assert_int_equal(noise_session_create(&session, send_key, receive_key), STATUS_OK);
    assert_int_equal(noise_session_open(session, ciphertext.bytes, ciphertext.length), STATUS_OK);
    assert_int_equal(noise_session_remaining(session), plaintext.length);
    noise_session_read(session, received, plaintext.length);
    assert_memory_equal(received, plaintext.bytes, plaintext.length);
    noise_session_destroy(&session);
    hex_free(ciphertext);
    hex_free(plaintext);
}

static void replay(const json_t *vector)
{
    struct recording recording;
    begin(&recording, vector);
    for (unsigned number = 0; number < NOISE_XX_MESSAGES; number++) {
        char key[] = "message_0";
        key[sizeof(key) - 2] = (char)('0' + number);
        struct span message = vectors_bytes(vector, key);
        if ((number % 2 == 0) == recording.is_initiator) {
            expect_own_message(&recording, number, message);
        } else {
            read_their_message(&recording, number, message);
        }
        hex_free(message);
    }
    open_their_frame(&recording);
    end(&recording);
}

static void reads_and_writes_the_handshakes_that_js_libp2p_had(void **state)
{
    (void)state;
    json_t *root = vectors_load("noise_libp2p.json");
    size_t i;
    json_t *vector;
    json_array_foreach(json_object_get(root, "handshakes"), i, vector)
    {
        replay(vector);
    }
    assert_int_equal(i, 6);
    json_decref(root);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(reads_and_writes_the_handshakes_that_js_libp2p_had),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
