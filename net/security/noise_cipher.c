/* SPDX-License-Identifier: MIT */
#include "net/security/noise_cipher.h"

#include <assert.h>
#include <string.h>

#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/err.h>

enum {
    CHACHA_BLOCK_BYTES = 64,
    CHACHA_IV_BYTES = 16, /* block counter (4), nonce (12) */
    NONCE_OFFSET = 8,     /* Noise's nonce is 4 zero bytes and the counter */
    MAC_KEY_BYTES = 32,
    MAC_BLOCK_BYTES = 16
};

static const uint8_t zeros[NOISE_CIPHER_KEYSTREAM_BYTES];

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
    OPENSSL_cleanse(cipher, sizeof(*cipher));
}

void noise_cipher_set_key(struct noise_cipher *cipher, const uint8_t key[NOISE_CIPHER_KEY_BYTES])
{
    int ok = EVP_EncryptInit_ex2(cipher->stream, NULL, key, NULL, NULL);
    assert(ok == 1);
    cipher->nonce = 0;
}

static void stream_update(struct noise_cipher *cipher, uint8_t *to, const uint8_t *from, size_t n)
{
    int written = 0;
    int ok = EVP_EncryptUpdate(cipher->stream, to, &written, from, (int)n);
    assert(ok == 1 && (size_t)written == n);
}

/* Encrypting and decrypting are the same. */
static void apply_keystream(struct noise_cipher *cipher, uint8_t *to, const uint8_t *from, size_t n)
{
    const uint8_t *keystream = cipher->keystream + cipher->keystream_at;
    size_t ready = NOISE_CIPHER_KEYSTREAM_BYTES - cipher->keystream_at;
    size_t head = n < ready ? n : ready;
    for (size_t i = 0; i < head; i++) {
        to[i] = from[i] ^ keystream[i];
    }
    cipher->keystream_at += head;
    if (n > head) {
        stream_update(cipher, to + head, from + head, n - head);
    }
}

static void mac_update(struct noise_cipher *cipher, const uint8_t *bytes, size_t n)
{
    int ok = EVP_MAC_update(cipher->mac, bytes, n);
    assert(ok == 1);
}

static size_t padding_of(size_t length)
{
    return (MAC_BLOCK_BYTES - length % MAC_BLOCK_BYTES) % MAC_BLOCK_BYTES;
}

/* Starts a frame of that many bytes: the MAC has its key, and the keystream stands at block 1. */
static bool begin_frame(struct noise_cipher *cipher, size_t length)
{
    uint8_t iv[CHACHA_IV_BYTES] = {0};
    if (cipher->nonce == UINT64_MAX) {
        return false;
    }
    put_little_endian(iv + NONCE_OFFSET, cipher->nonce);
    cipher->nonce++;
    int ok = EVP_EncryptInit_ex2(cipher->stream, NULL, NULL, iv, NULL);
    assert(ok == 1);
    size_t ready = CHACHA_BLOCK_BYTES + length;
    ready = ready < NOISE_CIPHER_KEYSTREAM_BYTES ? ready : NOISE_CIPHER_KEYSTREAM_BYTES;
    stream_update(cipher, cipher->keystream, zeros, ready);
    cipher->keystream_at = CHACHA_BLOCK_BYTES;
    ok = EVP_MAC_init(cipher->mac, cipher->keystream, MAC_KEY_BYTES, NULL);
    assert(ok == 1);
    return true;
}

static void compute_tag(struct noise_cipher *cipher, struct span associated, struct span ciphertext,
        uint8_t tag[NOISE_CIPHER_TAG_BYTES])
{
    uint8_t tail[2 * MAC_BLOCK_BYTES] = {0}; /* the padding of the ciphertext and both lengths */
    size_t padding = padding_of(ciphertext.length);
    size_t written;
    put_little_endian(tail + padding, associated.length);
    put_little_endian(tail + padding + 8, ciphertext.length);
    if (associated.length > 0) {
        mac_update(cipher, associated.bytes, associated.length);
        mac_update(cipher, zeros, padding_of(associated.length));
    }
    mac_update(cipher, ciphertext.bytes, ciphertext.length);
    mac_update(cipher, tail, padding + MAC_BLOCK_BYTES);
    int ok = EVP_MAC_final(cipher->mac, tag, &written, NOISE_CIPHER_TAG_BYTES);
    assert(ok == 1 && written == NOISE_CIPHER_TAG_BYTES);
}

bool noise_cipher_seal(struct noise_cipher *cipher, struct span associated,
        const struct span pieces[], size_t count, uint8_t *out)
{
    size_t length = 0;
    for (size_t i = 0; i < count; i++) {
        length += pieces[i].length;
    }
    if (!begin_frame(cipher, length)) {
        return false;
    }
    uint8_t *end = out;
    for (size_t i = 0; i < count; i++) {
        apply_keystream(cipher, end, pieces[i].bytes, pieces[i].length);
        end += pieces[i].length;
    }
    compute_tag(cipher, associated, span_of(out, length), end);
    return true;
}

enum status noise_cipher_verify(
        struct noise_cipher *cipher, struct span associated, struct span ciphertext)
{
    uint8_t tag[NOISE_CIPHER_TAG_BYTES];
    if (ciphertext.length < NOISE_CIPHER_TAG_BYTES) {
        return STATUS_BAD_FRAME;
    }
    size_t length = ciphertext.length - NOISE_CIPHER_TAG_BYTES;
    if (!begin_frame(cipher, length)) {
        return STATUS_LIMIT_REACHED;
    }
    compute_tag(cipher, associated, span_of(ciphertext.bytes, length), tag);
    bool is_equal = CRYPTO_memcmp(tag, ciphertext.bytes + length, sizeof(tag)) == 0;
    return is_equal ? STATUS_OK : STATUS_BAD_FRAME;
}

void noise_cipher_decrypt(struct noise_cipher *cipher, uint8_t *to, const uint8_t *from, size_t n)
{
    apply_keystream(cipher, to, from, n);
}
