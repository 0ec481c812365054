/* SPDX-License-Identifier: MIT */
#include "net/identity/peer_id.h"

#include "tests/support/vectors.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* The two texts of one peer in libp2p's peer id specification. */
static const char spec_cid[] = "bafzbeie5745rpv2m6tjyuugywy4d5ewrqgqqhfnf445he3omzpjbx5xqxe";
static const char spec_base58[] = "QmYyQSo1c1Ym7orWxLYvCrM2EmxFTANf8wXmmE7DWjhx5N";
static const char spec_ed25519[] = "12D3KooWD3eckifWpRn9wQpMG9R9hX3sD158z7EqHWmweQAJU5SA";

static struct peer_id parse(const char *text)
{
    struct peer_id id;
    assert_int_equal(peer_id_parse(&id, span_of_text(text)), STATUS_OK);
    return id;
}

static void makes_the_ids_that_js_libp2p_makes(void **state)
{
    (void)state;
    json_t *root = vectors_load("libp2p_keys.json");
    size_t i;
    size_t count = 0;
    json_t *item;
    json_array_foreach(json_object_get(root, "keys"), i, item)
    {
        struct public_key key;
        struct peer_id id;
        struct peer_id from_bytes;
        char text[PEER_ID_TEXT_SIZE];
        if (json_object_get(item, "peer_id") == NULL) {
            continue; /* js-libp2p has no peer ids for ECDSA keys */
        }
        struct span encoded = vectors_bytes(item, "public_key");
        struct span bytes = vectors_bytes(item, "peer_id_bytes");
        assert_int_equal(public_key_parse(&key, encoded), STATUS_OK);
        peer_id_from_public_key(&id, &key);
        assert_string_equal(peer_id_print(text, &id), vectors_text(item, "peer_id"));
        assert_true(span_equal(peer_id_span(&id), bytes));
        assert_int_equal(peer_id_from_bytes(&from_bytes, bytes), STATUS_OK);
        assert_true(peer_id_equal(&id, &from_bytes));
        struct peer_id from_text = parse(vectors_text(item, "peer_id"));
        struct peer_id from_cid = parse(vectors_text(item, "peer_id_cid"));
        assert_true(peer_id_equal(&id, &from_text));
        assert_true(peer_id_equal(&id, &from_cid));
        hex_free(encoded);
        hex_free(bytes);
        count++;
    }
    assert_int_equal(count, 7);
    json_decref(root);
}

static void parses_the_examples_of_the_specification(void **state)
{
    (void)state;
    char text[PEER_ID_TEXT_SIZE];
    struct peer_id from_cid = parse(spec_cid);
    struct peer_id from_base58 = parse(spec_base58);
    struct peer_id ed25519 = parse(spec_ed25519);
    assert_true(peer_id_equal(&from_cid, &from_base58));
    assert_string_equal(peer_id_print(text, &from_cid), spec_base58);
    assert_string_equal(peer_id_print(text, &ed25519), spec_ed25519);
}

static void hashes_a_key_of_more_than_42_bytes(void **state)
{
    (void)state;
    json_t *root = vectors_load("libp2p_spec_keys.json");
    size_t i;
    json_t *item;
    json_array_foreach(json_object_get(root, "keys"), i, item)
    {
        struct public_key key;
        struct peer_id id;
        struct span encoded = vectors_bytes(item, "public_key");
        assert_int_equal(public_key_parse(&key, encoded), STATUS_OK);
        peer_id_from_public_key(&id, &key);
        bool is_inline = key.type == KEY_TYPE_ED25519 || key.type == KEY_TYPE_SECP256K1;
        assert_int_equal(id.bytes[0], is_inline ? 0x00 : 0x12);
        assert_int_equal(id.length, is_inline ? 2 + encoded.length : 34);
        hex_free(encoded);
    }
    json_decref(root);
}

static void refuses_texts_that_name_no_peer(void **state)
{
    (void)state;
    const char *const bad[] = {"", "1", "Q", "Qm", "b", "z", "bafz", "x2D3KooW",
            "QmYyQSo1c1Ym7orWxLYvCrM2EmxFTANf8wXmmE7DWjhx5",   /* cut */
            "QmYyQSo1c1Ym7orWxLYvCrM2EmxFTANf8wXmmE7DWjhx5NN", /* a digit too much */
            "QmYyQSo1c1Ym7orWxLYvCrM2EmxFTANf8wXmmE7DWjhx50",  /* no digit */
            "12D3KooWD3eckifWpRn9wQpMG9R9hX3sD158z7EqHWmweQAJU5S",
            /* a CID of another codec: the same multihash as a dag-pb node */
            "bafybeie5745rpv2m6tjyuugywy4d5ewrqgqqhfnf445he3omzpjbx5xqxe",
            "bafzbeie5745rpv2m6tjyuugywy4d5ewrqgqqhfnf445he3omzpjbx5xqxf",
            "bafzbeie5745rpv2m6tjyuugywy4d5ewrqgqqhfnf445he3omzpjbx5xqx"};
    char zeros[200];
    struct peer_id id;
    for (size_t i = 0; i < COUNT(bad); i++) {
        assert_int_equal(peer_id_parse(&id, span_of_text(bad[i])), STATUS_BAD_ADDRESS);
    }
    memset(zeros, '1', sizeof(zeros));
    assert_int_equal(peer_id_parse(&id, span_of(zeros, sizeof(zeros))), STATUS_BAD_ADDRESS);
}

static void refuses_bytes_that_are_no_multihash_of_a_key(void **state)
{
    (void)state;
    const char *const bad[] = {"", "00", "0000", "001220", "1220", "0002aa",
            "12209dff3b17d74cf4d38a50d8b6383e92d181a10395a5e73a726dcccbd21bf6f0", /* 31 bytes */
            "12219dff3b17d74cf4d38a50d8b6383e92d181a10395a5e73a726dcccbd21bf6f0b900",
            "13209dff3b17d74cf4d38a50d8b6383e92d181a10395a5e73a726dcccbd21bf6f0b9"};
    struct peer_id id;
    for (size_t i = 0; i < COUNT(bad); i++) {
        struct span bytes = hex_decode(bad[i]);
        assert_int_equal(peer_id_from_bytes(&id, bytes), STATUS_BAD_ADDRESS);
        hex_free(bytes);
    }
    const uint8_t too_long[2 + PEER_ID_MAX_INLINE_KEY + 1] = {0, PEER_ID_MAX_INLINE_KEY + 1};
    assert_int_equal(
            peer_id_from_bytes(&id, span_of(too_long, sizeof(too_long))), STATUS_BAD_ADDRESS);
}

static void orders_ids_and_hashes_equal_ones_alike(void **state)
{
    (void)state;
    struct peer_id a = parse(spec_cid);
    struct peer_id b = parse(spec_base58);
    struct peer_id c = parse(spec_ed25519);
    assert_int_equal(peer_id_compare(&a, &b), 0);
    assert_true(peer_id_compare(&a, &c) != 0);
    assert_true((peer_id_compare(&a, &c) > 0) == (peer_id_compare(&c, &a) < 0));
    assert_true(peer_id_hash(&a, 7) == peer_id_hash(&b, 7));
    assert_true(peer_id_hash(&a, 7) != peer_id_hash(&a, 8));
    assert_true(peer_id_hash(&a, 7) != peer_id_hash(&c, 7));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(makes_the_ids_that_js_libp2p_makes),
            cmocka_unit_test(parses_the_examples_of_the_specification),
            cmocka_unit_test(hashes_a_key_of_more_than_42_bytes),
            cmocka_unit_test(refuses_texts_that_name_no_peer),
            cmocka_unit_test(refuses_bytes_that_are_no_multihash_of_a_key),
            cmocka_unit_test(orders_ids_and_hashes_equal_ones_alike),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
