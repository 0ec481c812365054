/* SPDX-License-Identifier: MIT */

/* ChaCha20-Poly1305 alone, on one frame of the size Noise has, in one piece. */

#include <assert.h>
#include <openssl/evp.h>
#include <string.h>

#include "base/clock.h"
#include "bench/stream/stream_bench.h"

enum {
    FRAME_BYTES = 65519,
    TAG_BYTES = 16
};

static uint8_t plaintext[FRAME_BYTES];
static uint8_t ciphertext[FRAME_BYTES];
static uint8_t tag[TAG_BYTES];
static const uint8_t key[32] = {7};
static const uint8_t nonce[12] = {9};

static void seal(EVP_CIPHER_CTX *cipher)
{
    int written;
    EVP_EncryptInit_ex2(cipher, NULL, NULL, nonce, NULL);
    EVP_EncryptUpdate(cipher, ciphertext, &written, plaintext, FRAME_BYTES);
    EVP_EncryptFinal_ex(cipher, ciphertext, &written);
    EVP_CIPHER_CTX_ctrl(cipher, EVP_CTRL_AEAD_GET_TAG, TAG_BYTES, tag);
}

static void open_sealed(EVP_CIPHER_CTX *cipher)
{
    int written;
    EVP_DecryptInit_ex2(cipher, NULL, NULL, nonce, NULL);
    EVP_CIPHER_CTX_ctrl(cipher, EVP_CTRL_AEAD_SET_TAG, TAG_BYTES, tag);
    EVP_DecryptUpdate(cipher, plaintext, &written, ciphertext, FRAME_BYTES);
    int is_genuine = EVP_DecryptFinal_ex(cipher, plaintext, &written);
    assert(is_genuine == 1);
}

double measure_cipher(bool is_sealing, double seconds)
{
    EVP_CIPHER_CTX *sealer = EVP_CIPHER_CTX_new();
    EVP_CIPHER_CTX *opener = EVP_CIPHER_CTX_new();
    EVP_EncryptInit_ex2(sealer, EVP_chacha20_poly1305(), key, nonce, NULL);
    EVP_DecryptInit_ex2(opener, EVP_chacha20_poly1305(), key, nonce, NULL);
    seal(sealer);
    uint64_t start = clock_thread_cpu_ns();
    uint64_t elapsed = 0;
    double bytes = 0;
    while ((double)elapsed < seconds * NANOSECONDS_PER_SECOND) {
        if (is_sealing) {
            seal(sealer);
        } else {
            open_sealed(opener);
        }
        bytes += FRAME_BYTES;
        elapsed = clock_thread_cpu_ns() - start;
    }
    EVP_CIPHER_CTX_free(sealer);
    EVP_CIPHER_CTX_free(opener);
    return bytes * NANOSECONDS_PER_SECOND / (double)elapsed;
}
