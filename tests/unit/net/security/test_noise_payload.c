/* SPDX-License-Identifier: MIT */
#include "net/security/noise_payload.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include "codec/noise.pb-c.h"
#include "tests/support/hex.h"

static uint8_t key_bytes[] = {1, 2, 3};
static uint8_t signature_bytes[] = {4, 5, 6, 7};
static char yamux[] = "/yamux/1.0.0";
static char mplex[] = "/mplex/6.7.0";
static char *muxers[] = {yamux, mplex};
static ProtobufCBinaryData certhashes[] = {{sizeof(key_bytes), key_bytes}};

static void reads_what_protobuf_c_packs(void **state)
{
    (void)state;
    uint8_t packed[256];
    struct noise_payload payload;
    Wire__NoiseExtensions extensions = WIRE__NOISE_EXTENSIONS__INIT;
    extensions.n_webtransport_certhashes = 1;
    extensions.webtransport_certhashes = certhashes;
    extensions.n_stream_muxers = 2;
    extensions.stream_muxers = muxers;
    Wire__NoiseHandshakePayload message = WIRE__NOISE_HANDSHAKE_PAYLOAD__INIT;
    message.has_identity_key = 1;
    message.identity_key = (ProtobufCBinaryData){sizeof(key_bytes), key_bytes};
    message.has_identity_sig = 1;
    message.identity_sig = (ProtobufCBinaryData){sizeof(signature_bytes), signature_bytes};
    message.extensions = &extensions;
    size_t length = wire__noise_handshake_payload__pack(&message, packed);
    assert_int_equal(noise_payload_parse(&payload, span_of(packed, length)), STATUS_OK);
    assert_true(span_equal(payload.identity_key, span_of(key_bytes, sizeof(key_bytes))));
    assert_true(span_equal(
            payload.identity_signature, span_of(signature_bytes, sizeof(signature_bytes))));
    assert_int_equal(payload.muxer_count, 2);
    assert_true(span_equal(payload.muxers[0], span_of_text(yamux)));
    assert_true(span_equal(payload.muxers[1], span_of_text(mplex)));
}

static void writes_what_protobuf_c_unpacks(void **state)
{
    (void)state;
    uint8_t written[256];
    size_t length = 0;
    struct noise_payload payload = {
            .identity_key = span_of(key_bytes, sizeof(key_bytes)),
            .identity_signature = span_of(signature_bytes, sizeof(signature_bytes)),
            .muxers = {span_of_text(yamux), span_of_text(mplex)},
            .muxer_count = 2,
    };
    assert_int_equal(noise_payload_write(written, sizeof(written), &length, &payload), STATUS_OK);
    Wire__NoiseHandshakePayload *message =
            wire__noise_handshake_payload__unpack(NULL, length, written);
    assert_non_null(message);
    assert_memory_equal(message->identity_key.data, key_bytes, sizeof(key_bytes));
    assert_memory_equal(message->identity_sig.data, signature_bytes, sizeof(signature_bytes));
    assert_int_equal(message->extensions->n_webtransport_certhashes, 0);
    assert_int_equal(message->extensions->n_stream_muxers, 2);
    assert_string_equal(message->extensions->stream_muxers[0], yamux);
    assert_string_equal(message->extensions->stream_muxers[1], mplex);
    wire__noise_handshake_payload__free_unpacked(message, NULL);
}

static void leaves_the_extensions_out_when_no_muxer_is_offered(void **state)
{
    (void)state;
    uint8_t written[64];
    size_t length = 0;
    struct noise_payload payload = {.identity_key = span_of(key_bytes, 3)};
    assert_int_equal(noise_payload_write(written, sizeof(written), &length, &payload), STATUS_OK);
    struct span expected = hex_decode("0a03010203 1200");
    assert_true(span_equal(span_of(written, length), expected));
    hex_free(expected);
}

static void refuses_to_write_more_than_there_is_room_for(void **state)
{
    (void)state;
    uint8_t written[64];
    size_t length = 0;
    struct noise_payload payload = {.identity_key = span_of(key_bytes, 3)};
    assert_int_equal(noise_payload_write(written, 6, &length, &payload), STATUS_TOO_LARGE);
    assert_int_equal(noise_payload_write(written, 7, &length, &payload), STATUS_OK);
}

static void takes_an_empty_payload_as_one_without_fields(void **state)
{
    (void)state;
    struct noise_payload payload;
    assert_int_equal(noise_payload_parse(&payload, span_of(NULL, 0)), STATUS_OK);
    assert_int_equal(payload.identity_key.length, 0);
    assert_int_equal(payload.identity_signature.length, 0);
    assert_int_equal(payload.muxer_count, 0);
}

static void keeps_the_first_muxers_of_a_list_that_is_too_long(void **state)
{
    (void)state;
    uint8_t bytes[3 + 3 * 40] = {0x22, 120};
    struct noise_payload payload;
    for (size_t i = 0; i < 40; i++) {
        bytes[2 + 3 * i] = 0x12;
        bytes[3 + 3 * i] = 1;
        bytes[4 + 3 * i] = (uint8_t)('A' + i);
    }
    assert_int_equal(noise_payload_parse(&payload, span_of(bytes, 122)), STATUS_OK);
    assert_int_equal(payload.muxer_count, NOISE_PAYLOAD_MAX_MUXERS);
    assert_int_equal(payload.muxers[0].bytes[0], 'A');
}

static void refuses_malformed_protobufs(void **state)
{
    (void)state;
    const char *const bad[] = {"0a", "0a05", "0a0501", "0affffffff0f", "0affffffffffffffffff01",
            "0affffffffffffffffffff01", "00", "0b", "2201", "2202 1205", "2202 1280", "2201 12",
            "2202 0305", "80"};
    struct noise_payload payload;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct span bytes = hex_decode(bad[i]);
        assert_int_equal(noise_payload_parse(&payload, bytes), STATUS_BAD_HANDSHAKE);
        hex_free(bytes);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(reads_what_protobuf_c_packs),
            cmocka_unit_test(writes_what_protobuf_c_unpacks),
            cmocka_unit_test(leaves_the_extensions_out_when_no_muxer_is_offered),
            cmocka_unit_test(refuses_to_write_more_than_there_is_room_for),
            cmocka_unit_test(takes_an_empty_payload_as_one_without_fields),
            cmocka_unit_test(keeps_the_first_muxers_of_a_list_that_is_too_long),
            cmocka_unit_test(refuses_malformed_protobufs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
