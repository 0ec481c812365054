/* SPDX-License-Identifier: MIT */
#include "net/identity/public_key.h"

#include "tests/support/vectors.h"

#include <openssl/err.h>

static const char *const key_files[] = {"libp2p_keys.json", "libp2p_spec_keys.json"};

enum {
    KEY_FILES = sizeof(key_files) / sizeof(key_files[0])
};

static struct public_key parse(const char *hex)
{
    struct public_key key;
    struct span bytes = hex_decode(hex);
    assert_int_equal(public_key_parse(&key, bytes), STATUS_OK);
    hex_free(bytes);
    return key;
}

static enum status parse_status(const char *hex)
{
    struct public_key key;
    struct span bytes = hex_decode(hex);
    enum status status = public_key_parse(&key, bytes);
    hex_free(bytes);
    return status;
}

static void encodes_foreign_keys_as_they_came(void **state)
{
    (void)state;
    for (size_t file = 0; file < KEY_FILES; file++) {
        json_t *root = vectors_load(key_files[file]);
        size_t i;
        json_t *item;
        json_array_foreach(json_object_get(root, "keys"), i, item)
        {
            uint8_t encoded[PUBLIC_KEY_MAX_ENCODED];
            struct span expected = vectors_bytes(item, "public_key");
            struct public_key key = parse(vectors_text(item, "public_key"));
            assert_string_equal(key_type_name(key.type), vectors_text(item, "type"));
            size_t length = public_key_encode(&key, encoded);
            assert_true(span_equal(span_of(encoded, length), expected));
            hex_free(expected);
        }
        json_decref(root);
    }
}

/* Every bit of the first and the last bytes, and some between, once each. */
static void expect_tampering_found(
        const struct public_key *key, struct span message, struct span signature)
{
    uint8_t *changed = (uint8_t *)(uintptr_t)signature.bytes;
    for (size_t i = 0; i<signature.length; i += signature.length> 80 ? 37 : 7) {
        changed[i] ^= (uint8_t)(1U << (i % 8));
        assert_int_equal(public_key_verify(key, message, signature), STATUS_BAD_SIGNATURE);
        changed[i] ^= (uint8_t)(1U << (i % 8));
    }
    assert_int_equal(
            public_key_verify(key, message, span_of(signature.bytes, signature.length - 1)),
            STATUS_BAD_SIGNATURE);
    assert_int_equal(public_key_verify(key, message, span_of(NULL, 0)), STATUS_BAD_SIGNATURE);
    assert_int_equal(public_key_verify(key, span_of("another message", 15), signature),
            STATUS_BAD_SIGNATURE);
    assert_int_equal(ERR_peek_error(), 0);
}

static void verifies_what_js_libp2p_signed_and_nothing_else(void **state)
{
    (void)state;
    json_t *root = vectors_load("libp2p_keys.json");
    size_t i, j;
    json_t *item, *example;
    json_array_foreach(json_object_get(root, "keys"), i, item)
    {
        struct public_key key = parse(vectors_text(item, "public_key"));
        json_array_foreach(json_object_get(item, "signatures"), j, example)
        {
            struct span message = vectors_bytes(example, "message");
            struct span signature = vectors_bytes(example, "signature");
            assert_int_equal(public_key_verify(&key, message, signature), STATUS_OK);
            expect_tampering_found(&key, message, signature);
            hex_free(message);
            hex_free(signature);
        }
    }
    json_decref(root);
}

static void refuses_the_signature_of_another_key_of_the_same_type(void **state)
{
    (void)state;
    json_t *root = vectors_load("libp2p_keys.json");
    const json_t *keys = json_object_get(root, "keys");
    for (size_t i = 0; i + 1 < json_array_size(keys); i++) {
        json_t *one = json_array_get(keys, i);
        json_t *other = json_array_get(keys, i + 1);
        json_t *example = json_array_get(json_object_get(one, "signatures"), 2);
        struct public_key key = parse(vectors_text(other, "public_key"));
        struct span message = vectors_bytes(example, "message");
        struct span signature = vectors_bytes(example, "signature");
        assert_int_equal(public_key_verify(&key, message, signature), STATUS_BAD_SIGNATURE);
        hex_free(message);
        hex_free(signature);
    }
    json_decref(root);
}

static void takes_fields_in_any_order_and_skips_unknown_ones(void **state)
{
    (void)state;
    const char *canonical =
            "08011220 1ed1e8fae2c4a144b8be8fd4b47bf3d3b34b871c3cacf6010f0e42d474fce27e";
    const char *shuffled =
            "1220 1ed1e8fae2c4a144b8be8fd4b47bf3d3b34b871c3cacf6010f0e42d474fce27e 1a0100 0801";
    struct public_key one = parse(canonical);
    struct public_key other = parse(shuffled);
    assert_int_equal(one.type, other.type);
    assert_true(span_equal(span_of(one.data, one.length), span_of(other.data, other.length)));
}

static void refuses_malformed_protobufs(void **state)
{
    (void)state;
    const char *const bad[] = {
            "",
            "0801",     /* no data */
            "08011200", /* empty data */
            "12201ed1e8fae2c4a144b8be8fd4b47bf3d3b34b871c3cacf6010f0e42d474"
            "fce27e", /* no type */
            "08041220 "
            "1ed1e8fae2c4a144b8be8fd4b47bf3d3b34b871c3cacf6010f0e42d474fce2"
            "7e", /* type 4 */
            "08011220 "
            "1ed1e8fae2c4a144b8be8fd4b47bf3d3b34b871c3cacf6010f0e42d474fce"
            "2", /* cut */
            "0801121f "
            "1ed1e8fae2c4a144b8be8fd4b47bf3d3b34b871c3cacf6010f0e42d474fce"
            "2",
            "080112ffffffff0f",
            "080112ffffffffffffffffff01",
            "08ffffffffffffffffffff01",
            "08021220 "
            "1ed1e8fae2c4a144b8be8fd4b47bf3d3b34b871c3cacf6010f0e42d474fce2"
            "7e",
            "08021221 "
            "047777e994e452c21604f91de093ce415f5432f701dd8cd1a7a6fea0e630bf"
            "ca99",
            "08031220 "
            "1ed1e8fae2c4a144b8be8fd4b47bf3d3b34b871c3cacf6010f0e42d474fce2"
            "7e",
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_int_equal(parse_status(bad[i]), STATUS_BAD_KEY);
    }
}

static void refuses_an_rsa_key_beyond_the_largest_size_before_it_is_looked_at(void **state)
{
    (void)state;
    uint8_t bytes[PUBLIC_KEY_MAX_DATA + 6] = {0x08, 0x00, 0x12, 0xcd, 0x08};
    struct public_key key;
    size_t length = PUBLIC_KEY_MAX_DATA + 1;
    bytes[3] = (uint8_t)(0x80 | (length & 0x7f));
    bytes[4] = (uint8_t)(length >> 7);
    assert_int_equal(public_key_parse(&key, span_of(bytes, 5 + length)), STATUS_BAD_KEY);
}

static void refuses_bytes_that_are_no_key_of_their_type_when_verifying(void **state)
{
    (void)state;
    const char *const bad[] = {
            /* secp256k1: x with no point on the curve, and x above the field */
            "08021221 020000000000000000000000000000000000000000000000000000000000000005",
            "08021221 02ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
            /* P-256: a point beside the curve */
            "0803125b3059301306072a8648ce3d020106082a8648ce3d03010703420004de3d300fa36ae0e8f5d53089"
            "9d83"
            "abab44abf3161f162a4bc901d8e6ecda020e8b6d5f8da30525e71d6851510c098e5c47c646a597fb4dcec0"
            "34e9"
            "f77c409e63",
            /* RSA: no DER, an Ed25519 SubjectPublicKeyInfo, 1,024 bits */
            "08001204 00000000",
            "0800122c 302a300506032b6570032100 "
            "1ed1e8fae2c4a144b8be8fd4b47bf3d3b34b871c3cacf6010f0e42d474fce27e",
            "080012a201 "
            "30819f300d06092a864886f70d010101050003818d0030818902818100df94aa6df8acad76cdbfa3f8a6"
            "54c79c1e5587b7dfd27d8f427cbd6872734f64b91a2a604ec2892f442ae2044d921c944679f439497679"
            "77d42daf92a77cefd37f00c1d8c51cf9f1f5a05449962bc778a5c09141a0313775b18a0f10437e1c8f77"
            "5e6c373bd2ad885379035be3b08926078aea6512267e24278abfeb38dd25190203010001",
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct public_key key = parse(bad[i]);
        uint8_t signature[256] = {0x30, 0x06, 0x02, 0x01, 0x01, 0x02, 0x01, 0x01};
        assert_int_equal(
                public_key_verify(&key, span_of("x", 1), span_of(signature, 8)), STATUS_BAD_KEY);
        assert_int_equal(ERR_peek_error(), 0);
    }
}

static void refuses_an_rsa_key_whose_der_is_not_the_shortest(void **state)
{
    (void)state;
    json_t *root = vectors_load("libp2p_spec_keys.json");
    const json_t *item = json_array_get(json_object_get(root, "keys"), 3);
    struct public_key key = parse(vectors_text(item, "public_key"));
    uint8_t signature[512] = {0};
    struct span message = span_of("x", 1);
    assert_int_equal(key.type, KEY_TYPE_RSA);
    assert_int_equal(public_key_verify(&key, message, span_of(signature, sizeof(signature))),
            STATUS_BAD_SIGNATURE);
    key.data[key.length++] = 0; /* a byte behind it */
    assert_int_equal(public_key_verify(&key, message, span_of(signature, sizeof(signature))),
            STATUS_BAD_KEY);
    json_decref(root);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(encodes_foreign_keys_as_they_came),
            cmocka_unit_test(verifies_what_js_libp2p_signed_and_nothing_else),
            cmocka_unit_test(refuses_the_signature_of_another_key_of_the_same_type),
            cmocka_unit_test(takes_fields_in_any_order_and_skips_unknown_ones),
            cmocka_unit_test(refuses_malformed_protobufs),
            cmocka_unit_test(refuses_an_rsa_key_beyond_the_largest_size_before_it_is_looked_at),
            cmocka_unit_test(refuses_bytes_that_are_no_key_of_their_type_when_verifying),
            cmocka_unit_test(refuses_an_rsa_key_whose_der_is_not_the_shortest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
