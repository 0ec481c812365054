/* SPDX-License-Identifier: MIT */
#include "net/identity/identity.h"

#include "tests/support/vectors.h"

#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static const enum key_type own_types[] = {KEY_TYPE_ED25519, KEY_TYPE_SECP256K1};

/* A path in a new folder of its own; discard_path removes both. */
static void choose_path(char *path, size_t capacity)
{
    char folder[] = "/tmp/sluice_identity_XXXXXX";
    assert_non_null(mkdtemp(folder));
    snprintf(path, capacity, "%s/key", folder);
}

static void discard_path(char *path)
{
    unlink(path);
    *strrchr(path, '/') = '\0';
    assert_int_equal(rmdir(path), 0); /* nothing else was left there */
}

static struct identity *create(enum key_type type)
{
    struct identity *identity = NULL;
    assert_int_equal(identity_create(&identity, type), STATUS_OK);
    return identity;
}

static struct identity *from_hex_bytes(const char *hex)
{
    struct identity *identity = NULL;
    struct span bytes = hex_decode(hex);
    assert_int_equal(identity_create_from_bytes(&identity, bytes), STATUS_OK);
    hex_free(bytes);
    return identity;
}

static bool is_own_type(const json_t *item)
{
    const char *type = vectors_text(item, "type");
    return strcmp(type, "Ed25519") == 0 || strcmp(type, "secp256k1") == 0;
}

static void expect_public_key(const json_t *item)
{
    uint8_t encoded[PUBLIC_KEY_MAX_ENCODED];
    struct identity *identity = from_hex_bytes(vectors_text(item, "private_key"));
    struct span expected = vectors_bytes(item, "public_key");
    size_t length = public_key_encode(identity_public_key(identity), encoded);
    assert_true(span_equal(span_of(encoded, length), expected));
    hex_free(expected);
    identity_destroy(&identity);
}

/* Returns how many keys of the file were ours to have. */
static size_t expect_public_keys(const char *name)
{
    size_t count = 0;
    json_t *root = vectors_load(name);
    const json_t *keys = json_object_get(root, "keys");
    for (size_t i = 0; i < json_array_size(keys); i++) {
        const json_t *item = json_array_get(keys, i);
        if (is_own_type(item)) {
            expect_public_key(item);
            count++;
        }
    }
    json_decref(root);
    return count;
}

static void has_the_public_key_that_others_find_for_the_same_secret(void **state)
{
    (void)state;
    assert_int_equal(expect_public_keys("libp2p_keys.json"), 6);
    assert_int_equal(expect_public_keys("libp2p_spec_keys.json"), 2);
}

static void makes_the_peer_id_that_js_libp2p_makes_of_64_hex_digits(void **state)
{
    (void)state;
    json_t *root = vectors_load("libp2p_keys.json");
    size_t i;
    json_t *item;
    json_array_foreach(json_object_get(root, "keys"), i, item)
    {
        char prefixed[80];
        char text[PEER_ID_TEXT_SIZE];
        struct identity *identity = NULL;
        if (json_object_get(item, "secret") == NULL) {
            continue;
        }
        snprintf(prefixed, sizeof(prefixed), "0x%s", vectors_text(item, "secret"));
        for (size_t skip = 0; skip <= 2; skip += 2) {
            struct span hex = span_of_text(prefixed + skip);
            assert_int_equal(identity_create_from_hex(&identity, hex), STATUS_OK);
            peer_id_print(text, identity_peer_id(identity));
            assert_string_equal(text, vectors_text(item, "peer_id"));
            identity_destroy(&identity);
        }
    }
    json_decref(root);
}

static void signs_ed25519_as_js_libp2p_does(void **state)
{
    (void)state;
    json_t *root = vectors_load("libp2p_keys.json");
    size_t i, j;
    json_t *item, *example;
    json_array_foreach(json_object_get(root, "keys"), i, item)
    {
        if (strcmp(vectors_text(item, "type"), "Ed25519") != 0) {
            continue;
        }
        struct identity *identity = from_hex_bytes(vectors_text(item, "private_key"));
        json_array_foreach(json_object_get(item, "signatures"), j, example)
        {
            uint8_t signature[IDENTITY_SIGNATURE_MAX];
            size_t length = 0;
            struct span message = vectors_bytes(example, "message");
            struct span expected = vectors_bytes(example, "signature");
            assert_int_equal(identity_sign(identity, message, signature, &length), STATUS_OK);
            assert_true(span_equal(span_of(signature, length), expected));
            hex_free(message);
            hex_free(expected);
        }
        identity_destroy(&identity);
    }
    json_decref(root);
}

static void signs_so_that_its_public_key_verifies(void **state)
{
    (void)state;
    struct span message = span_of_text("noise-libp2p-static-key: and a key");
    for (size_t i = 0; i < COUNT(own_types); i++) {
        uint8_t signature[IDENTITY_SIGNATURE_MAX];
        size_t length = 0;
        struct identity *identity = create(own_types[i]);
        assert_int_equal(identity_sign(identity, message, signature, &length), STATUS_OK);
        assert_int_equal(public_key_verify(identity_public_key(identity), message,
                                 span_of(signature, length)),
                STATUS_OK);
        identity_destroy(&identity);
    }
}

/* Half the order of secp256k1, from SEC 2. */
static const char half_order[] = "7fffffffffffffffffffffffffffffff5d576e7357a4501ddfe92f46681b20a0";

/* Compares the s of a DER signature, a sequence of two integers, with a 32-byte number. */
static int compare_s(const uint8_t *der, const uint8_t *number)
{
    const uint8_t *s = der + 4 + der[3];
    assert_int_equal(s[0], 0x02);
    size_t length = s[1];
    const uint8_t *digits = s + 2;
    assert_true(length <= 32); /* 33 with a leading zero would be above half */
    for (size_t i = 0; i < 32; i++) {
        int digit = i < 32 - length ? 0 : digits[i - (32 - length)];
        if (digit != number[i]) {
            return digit - number[i];
        }
    }
    return 0;
}

static void signs_secp256k1_with_the_lower_s_that_libsecp256k1_insists_on(void **state)
{
    (void)state;
    struct identity *identity = create(KEY_TYPE_SECP256K1);
    struct span half = hex_decode(half_order);
    /* By chance alone, 64 of 64 would happen once in 2^64. */
    for (uint8_t i = 0; i < 64; i++) {
        uint8_t signature[IDENTITY_SIGNATURE_MAX];
        size_t length = 0;
        struct span message = span_of(&i, 1);
        assert_int_equal(identity_sign(identity, message, signature, &length), STATUS_OK);
        assert_int_equal(length, 2 + signature[1]);
        assert_true(compare_s(signature, half.bytes) <= 0);
        assert_int_equal(public_key_verify(identity_public_key(identity), message,
                                 span_of(signature, length)),
                STATUS_OK);
    }
    hex_free(half);
    identity_destroy(&identity);
}

static void saves_with_mode_0600_and_loads_the_same_key(void **state)
{
    (void)state;
    mode_t old_mask = umask(0);
    for (size_t i = 0; i < COUNT(own_types); i++) {
        char path[64];
        struct stat facts;
        struct identity *identity = create(own_types[i]);
        struct identity *loaded = NULL;
        choose_path(path, sizeof(path));
        assert_int_equal(identity_save(identity, path), STATUS_OK);
        assert_int_equal(stat(path, &facts), 0);
        assert_int_equal(facts.st_mode & 07777, 0600);
        assert_int_equal(facts.st_nlink, 1);
        assert_int_equal(identity_load(&loaded, path), STATUS_OK);
        assert_true(peer_id_equal(identity_peer_id(identity), identity_peer_id(loaded)));
        identity_destroy(&loaded);
        identity_destroy(&identity);
        discard_path(path);
    }
    umask(old_mask);
}

static void saves_the_private_key_protobuf_of_the_specification(void **state)
{
    (void)state;
    json_t *root = vectors_load("libp2p_spec_keys.json");
    size_t i;
    json_t *item;
    json_array_foreach(json_object_get(root, "keys"), i, item)
    {
        if (!is_own_type(item)) {
            continue;
        }
        char path[64];
        uint8_t content[256];
        struct span expected = vectors_bytes(item, "private_key");
        struct identity *identity = from_hex_bytes(vectors_text(item, "private_key"));
        choose_path(path, sizeof(path));
        assert_int_equal(identity_save(identity, path), STATUS_OK);
        FILE *file = fopen(path, "rb");
        assert_non_null(file);
        size_t length = fread(content, 1, sizeof(content), file);
        fclose(file);
        assert_true(span_equal(span_of(content, length), expected));
        identity_destroy(&identity);
        hex_free(expected);
        discard_path(path);
    }
    json_decref(root);
}

static void never_writes_over_a_key(void **state)
{
    (void)state;
    char path[64];
    struct identity *first = create(KEY_TYPE_ED25519);
    struct identity *second = create(KEY_TYPE_ED25519);
    struct identity *loaded = NULL;
    choose_path(path, sizeof(path));
    assert_int_equal(identity_save(first, path), STATUS_OK);
    assert_int_equal(identity_save(second, path), STATUS_ALREADY_EXISTS);
    assert_int_equal(identity_load(&loaded, path), STATUS_OK);
    assert_true(peer_id_equal(identity_peer_id(first), identity_peer_id(loaded)));
    identity_destroy(&first);
    identity_destroy(&second);
    identity_destroy(&loaded);
    discard_path(path);
}

static void says_why_a_key_file_cannot_be_had(void **state)
{
    (void)state;
    struct identity *identity = create(KEY_TYPE_ED25519);
    struct identity *loaded = NULL;
    char path[64];
    choose_path(path, sizeof(path));
    assert_int_equal(identity_load(&loaded, path), STATUS_NOT_FOUND);
    assert_int_equal(identity_save(identity, "/nowhere/at/all"), STATUS_SYSTEM);
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(identity_load(&loaded, path), STATUS_BAD_KEY);
    for (int i = 0; i < 5000; i++) {
        fputc(0, file);
    }
    fclose(file);
    assert_int_equal(identity_load(&loaded, path), STATUS_TOO_LARGE);
    assert_null(loaded);
    identity_destroy(&identity);
    discard_path(path);
}

static void refuses_secrets_that_are_no_keys(void **state)
{
    (void)state;
    const char *const bad[] = {"", "0x",
            "0000000000000000000000000000000000000000000000000000000000000000",
            /* the order of the group, from SEC 2, and above */
            "fffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141",
            "ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
            "000000000000000000000000000000000000000000000000000000000000001",
            "00000000000000000000000000000000000000000000000000000000000000001",
            "000000000000000000000000000000000000000000000000000000000000000g"};
    struct identity *identity = NULL;
    for (size_t i = 0; i < COUNT(bad); i++) {
        assert_int_equal(identity_create_from_hex(&identity, span_of_text(bad[i])), STATUS_BAD_KEY);
        assert_null(identity);
    }
    assert_int_equal(identity_create(&identity, KEY_TYPE_RSA), STATUS_UNSUPPORTED);
    assert_int_equal(identity_create(&identity, KEY_TYPE_ECDSA), STATUS_UNSUPPORTED);
}

static void takes_the_largest_and_the_smallest_secret(void **state)
{
    (void)state;
    struct identity *identity = NULL;
    assert_int_equal(identity_create_from_hex(&identity,
                             span_of_text("fffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8c"
                                          "d0364140")),
            STATUS_OK);
    identity_destroy(&identity);
    assert_int_equal(identity_create_from_hex(&identity,
                             span_of_text("00000000000000000000000000000000000000000000000000000000"
                                          "00000001")),
            STATUS_OK);
    /* The generator of the group, from SEC 2. */
    struct span generator =
            hex_decode("0279be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798");
    const struct public_key *key = identity_public_key(identity);
    assert_true(span_equal(span_of(key->data, key->length), generator));
    hex_free(generator);
    identity_destroy(&identity);
}

static void refuses_private_keys_that_do_not_fit_together(void **state)
{
    (void)state;
    const char *const bad[] = {"", "0801", "08011220",
            "08011240 7e0830617c4a7de83925dfb2694556b12936c477a0e1feb2e148ec9da60fee7d"
            "1ed1e8fae2c4a144b8be8fd4b47bf3d3b34b871c3cacf6010f0e42d474fce27f",
            "0801123f 7e0830617c4a7de83925dfb2694556b12936c477a0e1feb2e148ec9da60fee7d"
            "1ed1e8fae2c4a144b8be8fd4b47bf3d3b34b871c3cacf6010f0e42d474fce2",
            "08011260 7e0830617c4a7de83925dfb2694556b12936c477a0e1feb2e148ec9da60fee7d"
            "1ed1e8fae2c4a144b8be8fd4b47bf3d3b34b871c3cacf6010f0e42d474fce27e"
            "1ed1e8fae2c4a144b8be8fd4b47bf3d3b34b871c3cacf6010f0e42d474fce27f",
            "0802121f 53dadf1d5a164d6b4acdb15e24aa4c5b1d3461bdbd42abedb0a4404d56ced8",
            "08071220 53dadf1d5a164d6b4acdb15e24aa4c5b1d3461bdbd42abedb0a4404d56ced8fb"};
    struct identity *identity = NULL;
    for (size_t i = 0; i < COUNT(bad); i++) {
        struct span bytes = hex_decode(bad[i]);
        assert_int_equal(identity_create_from_bytes(&identity, bytes), STATUS_BAD_KEY);
        assert_null(identity);
        hex_free(bytes);
    }
}

static void takes_the_old_form_with_the_public_key_twice(void **state)
{
    (void)state;
    struct identity *identity = from_hex_bytes(
            "08011260 7e0830617c4a7de83925dfb2694556b12936c477a0e1feb2e148ec9da60fee7d"
            "1ed1e8fae2c4a144b8be8fd4b47bf3d3b34b871c3cacf6010f0e42d474fce27e"
            "1ed1e8fae2c4a144b8be8fd4b47bf3d3b34b871c3cacf6010f0e42d474fce27e");
    assert_int_equal(identity_public_key(identity)->type, KEY_TYPE_ED25519);
    identity_destroy(&identity);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(has_the_public_key_that_others_find_for_the_same_secret),
            cmocka_unit_test(makes_the_peer_id_that_js_libp2p_makes_of_64_hex_digits),
            cmocka_unit_test(signs_ed25519_as_js_libp2p_does),
            cmocka_unit_test(signs_so_that_its_public_key_verifies),
            cmocka_unit_test(signs_secp256k1_with_the_lower_s_that_libsecp256k1_insists_on),
            cmocka_unit_test(saves_with_mode_0600_and_loads_the_same_key),
            cmocka_unit_test(saves_the_private_key_protobuf_of_the_specification),
            cmocka_unit_test(never_writes_over_a_key),
            cmocka_unit_test(says_why_a_key_file_cannot_be_had),
            cmocka_unit_test(refuses_secrets_that_are_no_keys),
            cmocka_unit_test(takes_the_largest_and_the_smallest_secret),
            cmocka_unit_test(refuses_private_keys_that_do_not_fit_together),
            cmocka_unit_test(takes_the_old_form_with_the_public_key_twice),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
