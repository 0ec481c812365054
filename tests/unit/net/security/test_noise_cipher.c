/* SPDX-License-Identifier: MIT */
#include "net/security/noise_cipher.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include "tests/support/hex.h"

enum {
    LARGEST = 65519
};

static uint8_t plaintext[LARGEST];
static uint8_t sealed[LARGEST + NOISE_CIPHER_TAG_BYTES];
static uint8_t oracle[LARGEST + NOISE_CIPHER_TAG_BYTES];
static uint8_t decrypted[LARGEST];

static const uint8_t key[NOISE_CIPHER_KEY_BYTES] = {9, 8, 7, 6, 5, 4, 3, 2, 1};

static int fill_plaintext(void **state)
{
    (void)state;
    for (size_t i = 0; i < LARGEST; i++) {
        plaintext[i] = (uint8_t)(i * 31 + i / 251);
    }
    return 0;
}

/* OpenSSL's own AEAD. */
static void seal_with_oracle(uint64_t nonce, struct span associated, size_t length)
{
    uint8_t iv[12] = {0};
    int written;
    for (size_t i = 0; i < 8; i++) {
        iv[4 + i] = (uint8_t)(nonce >> (8 * i));
    }
    EVP_CIPHER_CTX *context = EVP_CIPHER_CTX_new();
    assert_int_equal(EVP_EncryptInit_ex(context, EVP_chacha20_poly1305(), NULL, key, iv), 1);
    if (associated.length > 0) {
        assert_int_equal(EVP_EncryptUpdate(
                                 context, NULL, &written, associated.bytes, (int)associated.length),
                1);
    }
    assert_int_equal(EVP_EncryptUpdate(context, oracle, &written, plaintext, (int)length), 1);
    assert_int_equal(EVP_EncryptFinal_ex(context, oracle + written, &written), 1);
    assert_int_equal(EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_GET_TAG, 16, oracle + length), 1);
    EVP_CIPHER_CTX_free(context);
}

static struct noise_cipher cipher_with_key(uint64_t nonce)
{
    struct noise_cipher cipher;
    assert_int_equal(noise_cipher_init(&cipher), STATUS_OK);
    noise_cipher_set_key(&cipher, key);
    cipher.nonce = nonce;
    return cipher;
}

static const size_t lengths[] = {0, 1, 15, 16, 17, 63, 64, 65, 100, 255, 256, 1000, 4096, LARGEST};

enum {
    LENGTHS = sizeof(lengths) / sizeof(lengths[0])
};

static void seals_what_the_aead_of_openssl_seals(void **state)
{
    (void)state;
    struct noise_cipher cipher = cipher_with_key(0);
    for (size_t i = 0; i < LENGTHS; i++) {
        struct span associated = span_of("some associated data behind it", i * 2);
        struct span piece = span_of(plaintext, lengths[i]);
        uint64_t nonce = cipher.nonce;
        assert_true(noise_cipher_seal(&cipher, associated, &piece, 1, sealed));
        seal_with_oracle(nonce, associated, lengths[i]);
        assert_memory_equal(sealed, oracle, lengths[i] + NOISE_CIPHER_TAG_BYTES);
    }
    noise_cipher_fini(&cipher);
}

static void seals_the_same_from_pieces_of_any_size(void **state)
{
    (void)state;
    struct noise_cipher cipher = cipher_with_key(0);
    for (size_t cut = 0; cut <= 300; cut++) {
        const struct span pieces[] = {span_of(plaintext, cut), span_of(NULL, 0),
                span_of(plaintext + cut, 300 - cut), span_of(plaintext + 300, 700)};
        uint64_t nonce = cipher.nonce;
        assert_true(noise_cipher_seal(&cipher, span_of(NULL, 0), pieces, 4, sealed));
        seal_with_oracle(nonce, span_of(NULL, 0), 1000);
        assert_memory_equal(sealed, oracle, 1000 + NOISE_CIPHER_TAG_BYTES);
    }
    noise_cipher_fini(&cipher);
}

static void opens_what_the_aead_of_openssl_sealed_in_pieces_of_any_size(void **state)
{
    (void)state;
    struct noise_cipher cipher = cipher_with_key(1ULL << 40);
    for (size_t i = 0; i < LENGTHS; i++) {
        size_t length = lengths[i];
        struct span associated = span_of("0123456789abcdef0123456789abcdef", i);
        size_t step = i % 3 == 0 ? 1 : i * (size_t)13;
        seal_with_oracle(cipher.nonce, associated, length);
        struct span ciphertext = span_of(oracle, length + NOISE_CIPHER_TAG_BYTES);
        assert_int_equal(noise_cipher_verify(&cipher, associated, ciphertext), STATUS_OK);
        for (size_t at = 0; at < length; at += step) {
            size_t n = length - at < step ? length - at : step;
            noise_cipher_decrypt(&cipher, decrypted + at, oracle + at, n);
        }
        assert_memory_equal(decrypted, plaintext, length);
    }
    noise_cipher_fini(&cipher);
}

/* RFC 8439, appendix A.5: its nonce happens to have the form that Noise's has. */
static void opens_the_example_of_the_standard(void **state)
{
    (void)state;
    struct noise_cipher cipher = cipher_with_key(0);
    struct span standard_key =
            hex_decode("1c9240a5eb55d38af333888604f6b5f0473917c1402b80099dca5cbc207075c0");
    struct span associated = hex_decode("f33388860000000000004e91");
    struct span ciphertext = hex_decode(
            "64a0861575861af460f062c79be643bd5e805cfd345cf389f108670ac76c8cb24c6cfc18755d43eea09ee9"
            "4e382d26b0bdb7b73c321b0100d4f03b7f355894cf332f830e710b97ce98c8a84abd0b948114ad176e008d"
            "33bd60f982b1ff37c8559797a06ef4f0ef61c186324e2b3506383606907b6a7c02b0f9f6157b53c867e4b9"
            "166c767b804d46a59b5216cde7a4e99040c5a40433225ee282a1b0a06c523eaf4534d7f83fa1155b004771"
            "8cbc546a0d072b04b3564eea1b422273f548271a0bb2316053fa76991955ebd63159434ecebb4e466dae5a"
            "1073a6727627097a1049e617d91d361094fa68f0ff77987130305beaba2eda04df997b714d6c6f2c29a6ad"
            "5cb4022b02709b eead9d67890cbb22392336fea1851f38");
    static const char start[] = "Internet-Drafts are draft documents valid for a maximum of six "
                                "months";
    noise_cipher_set_key(&cipher, standard_key.bytes);
    cipher.nonce = 0x0807060504030201;
    assert_int_equal(noise_cipher_verify(&cipher, associated, ciphertext), STATUS_OK);
    noise_cipher_decrypt(&cipher, decrypted, ciphertext.bytes, sizeof(start) - 1);
    assert_memory_equal(decrypted, start, sizeof(start) - 1);
    hex_free(standard_key);
    hex_free(associated);
    hex_free(ciphertext);
    noise_cipher_fini(&cipher);
}

static void finds_every_changed_bit(void **state)
{
    (void)state;
    enum {
        LENGTH = 40
    };
    for (size_t bit = 0; bit < (size_t)8 * (LENGTH + NOISE_CIPHER_TAG_BYTES); bit++) {
        struct noise_cipher cipher = cipher_with_key(5);
        seal_with_oracle(5, span_of(NULL, 0), LENGTH);
        oracle[bit / 8] ^= (uint8_t)(1U << (bit % 8));
        struct span ciphertext = span_of(oracle, LENGTH + NOISE_CIPHER_TAG_BYTES);
        assert_int_equal(
                noise_cipher_verify(&cipher, span_of(NULL, 0), ciphertext), STATUS_BAD_FRAME);
        noise_cipher_fini(&cipher);
    }
}

static void finds_changed_associated_data_and_another_nonce(void **state)
{
    (void)state;
    struct noise_cipher cipher = cipher_with_key(5);
    seal_with_oracle(5, span_of("a", 1), 40);
    struct span ciphertext = span_of(oracle, 40 + NOISE_CIPHER_TAG_BYTES);
    assert_int_equal(noise_cipher_verify(&cipher, span_of("b", 1), ciphertext), STATUS_BAD_FRAME);
    cipher.nonce = 5;
    assert_int_equal(noise_cipher_verify(&cipher, span_of(NULL, 0), ciphertext), STATUS_BAD_FRAME);
    cipher.nonce = 6;
    assert_int_equal(noise_cipher_verify(&cipher, span_of("a", 1), ciphertext), STATUS_BAD_FRAME);
    cipher.nonce = 5;
    assert_int_equal(noise_cipher_verify(&cipher, span_of("a", 1), ciphertext), STATUS_OK);
    noise_cipher_fini(&cipher);
}

static void refuses_what_is_shorter_than_a_tag(void **state)
{
    (void)state;
    struct noise_cipher cipher = cipher_with_key(0);
    for (size_t length = 0; length < NOISE_CIPHER_TAG_BYTES; length++) {
        assert_int_equal(noise_cipher_verify(&cipher, span_of(NULL, 0), span_of(sealed, length)),
                STATUS_BAD_FRAME);
    }
    noise_cipher_fini(&cipher);
}

static void never_uses_the_last_nonce(void **state)
{
    (void)state;
    struct noise_cipher cipher = cipher_with_key(UINT64_MAX - 1);
    struct span piece = span_of(plaintext, 10);
    assert_true(noise_cipher_seal(&cipher, span_of(NULL, 0), &piece, 1, sealed));
    assert_false(noise_cipher_seal(&cipher, span_of(NULL, 0), &piece, 1, sealed));
    assert_false(noise_cipher_seal(&cipher, span_of(NULL, 0), &piece, 1, sealed));
    assert_int_equal(noise_cipher_verify(&cipher, span_of(NULL, 0), span_of(sealed, 26)),
            STATUS_LIMIT_REACHED);
    noise_cipher_fini(&cipher);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(seals_what_the_aead_of_openssl_seals),
            cmocka_unit_test(seals_the_same_from_pieces_of_any_size),
            cmocka_unit_test(opens_what_the_aead_of_openssl_sealed_in_pieces_of_any_size),
            cmocka_unit_test(opens_the_example_of_the_standard),
            cmocka_unit_test(finds_every_changed_bit),
            cmocka_unit_test(finds_changed_associated_data_and_another_nonce),
            cmocka_unit_test(refuses_what_is_shorter_than_a_tag),
            cmocka_unit_test(never_uses_the_last_nonce),
    };
    return cmocka_run_group_tests(tests, fill_plaintext, NULL);
}
