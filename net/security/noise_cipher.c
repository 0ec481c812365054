/* SPDX-License-Identifier: MIT */
#include "net/security/noise_cipher.h"

#include <assert.h>
#include <string.h>

#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/err.h>

#include "base/memory.h"

enum {
    CHACHA_BLOCK_BYTES = 64,
    CHACHA_IV_BYTES = 16, /* block counter (4), nonce (12) */
    NONCE_OFFSET = 8,     /* Noise's nonce is 4 zero bytes and the counter */
    MAC_KEY_BYTES = 32,
    MAC_BLOCK_BYTES = 16
};

static const uint8_t zeros[CHACHA_BLOCK_BYTES];

static void put_little_endian(uint8_t *out, uint64_t value)
{
    for (int i = 0; i < 8; i++) {
        out[i] = (uint8_t)(value >> (8 * i));
    }
}

enum status noise_cipher_init(struct noise_cipher *cipher)
{
    /* Fetched by name once: the implicit fetch would take a lock of the process for every key. */
    EVP_CIPHER *chacha = EVP_CIPHER_fetch(NULL, "ChaCha20", NULL);
    EVP_MAC *poly1305 = EVP_MAC_fetch(NULL, OSSL_MAC_NAME_POLY1305, NULL);
    cipher->stream = EVP_CIPHER_CTX_new();
    cipher->mac = poly1305 != NULL ? EVP_MAC_CTX_new(poly1305) : NULL;
    cipher->nonce = 0;
    bool ok = chacha != NULL && cipher->stream != NULL && cipher->mac != NULL &&
              EVP_EncryptInit_ex2(cipher->stream, chacha, zeros, zeros, NULL) == 1;
    EVP_CIPHER_free(chacha);
    EVP_MAC_free(poly1305);
    if (!ok) {
        noise_cipher_fini(cipher);
        ERR_clear_error();
        return STATUS_NO_MEMORY;
    }
    return STATUS_OK;
}

void noise_cipher_fini(struct noise_cipher *cipher)
{
    EVP_CIPHER_CTX_free(cipher->stream);
    EVP_MAC_CTX_free(cipher->mac);
    *cipher = (struct noise_cipher){0};
}

void noise_cipher_set_key(struct noise_cipher *cipher, const uint8_t key[NOISE_CIPHER_KEY_BYTES])
{
    int ok = EVP_EncryptInit_ex2(cipher->stream, NULL, key, NULL, NULL);
    assert(ok == 1);
    cipher->nonce = 0;
}

/* Encrypting and decrypting are the same. */
static void apply_keystream(struct noise_cipher *cipher, uint8_t *to, const uint8_t *from, size_t n)
{
    int written = 0;
    if (n > 0) {
        int ok = EVP_EncryptUpdate(cipher->stream, to, &written, from, (int)n);
        assert(ok == 1 && (size_t)written == n);
    }
}

static void mac_update(struct noise_cipher *cipher, const uint8_t *bytes, size_t n)
{
    int ok = EVP_MAC_update(cipher->mac, bytes, n);
    assert(ok == 1);
}

static void mac_update_padded(struct noise_cipher *cipher, struct span bytes)
{
    size_t beyond = bytes.length % MAC_BLOCK_BYTES;
    if (bytes.length > 0) {
        mac_update(cipher, bytes.bytes, bytes.length);
    }
    if (beyond > 0) {
        mac_update(cipher, zeros, MAC_BLOCK_BYTES - beyond);
    }
}

/* Starts the next frame: the MAC has its key, and the keystream stands at block 1. */
static bool begin_frame(struct noise_cipher *cipher)
{
    uint8_t iv[CHACHA_IV_BYTES] = {0};
    uint8_t block[CHACHA_BLOCK_BYTES];
    if (cipher->nonce == UINT64_MAX) {
        return false;
    }
    put_little_endian(iv + NONCE_OFFSET, cipher->nonce);
    cipher->nonce++;
    int ok = EVP_EncryptInit_ex2(cipher->stream, NULL, NULL, iv, NULL);
    assert(ok == 1);
    apply_keystream(cipher, block, zeros, sizeof(block));
    ok = EVP_MAC_init(cipher->mac, block, MAC_KEY_BYTES, NULL);
    assert(ok == 1);
    return true;
}

static void compute_tag(struct noise_cipher *cipher, struct span associated, struct span ciphertext,
        uint8_t tag[NOISE_CIPHER_TAG_BYTES])
{
    uint8_t lengths[MAC_BLOCK_BYTES];
    size_t written;
    mac_update_padded(cipher, associated);
    mac_update_padded(cipher, ciphertext);
    put_little_endian(lengths, associated.length);
    put_little_endian(lengths + 8, ciphertext.length);
    mac_update(cipher, lengths, sizeof(lengths));
    int ok = EVP_MAC_final(cipher->mac, tag, &written, NOISE_CIPHER_TAG_BYTES);
    assert(ok == 1 && written == NOISE_CIPHER_TAG_BYTES);
}

bool noise_cipher_seal(struct noise_cipher *cipher, struct span associated,
        const struct span pieces[], size_t count, uint8_t *out)
{
    if (!begin_frame(cipher)) {
        return false;
    }
    uint8_t *end = out;
    for (size_t i = 0; i < count; i++) {
        apply_keystream(cipher, end, pieces[i].bytes, pieces[i].length);
        end += pieces[i].length;
    }
    compute_tag(cipher, associated, span_of(out, (size_t)(end - out)), end);
    return true;
}

enum status noise_cipher_verify(
        struct noise_cipher *cipher, struct span associated, struct span ciphertext)
{
    uint8_t tag[NOISE_CIPHER_TAG_BYTES];
    if (ciphertext.length < NOISE_CIPHER_TAG_BYTES) {
        return STATUS_BAD_FRAME;
    }
    if (!begin_frame(cipher)) {
        return STATUS_LIMIT_REACHED;
    }
    size_t length = ciphertext.length - NOISE_CIPHER_TAG_BYTES;
    compute_tag(cipher, associated, span_of(ciphertext.bytes, length), tag);
    bool is_equal = CRYPTO_memcmp(tag, ciphertext.bytes + length, sizeof(tag)) == 0;
    return is_equal ? STATUS_OK : STATUS_BAD_FRAME;
}

void noise_cipher_decrypt(struct noise_cipher *cipher, uint8_t *to, const uint8_t *from, size_t n)
{
    apply_keystream(cipher, to, from, n);
}
