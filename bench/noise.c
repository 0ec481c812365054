/* SPDX-License-Identifier: MIT */

/*
 * What a secure frame costs: the session's seal, and its verify and read in two pieces, beside
 * OpenSSL's ChaCha20-Poly1305 over the same bytes in one piece. Nanoseconds of CPU a frame and MB/s,
 * median of interleaved rounds with least and most. Then the CPU of whole handshakes.
 */

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/evp.h>

#include "base/clock.h"
#include "net/security/noise.h"
#include "net/security/noise_session.h"

enum {
    ROUNDS = 9,
    ROUND_BYTES = 16000000,
    FRAME_COST_BYTES = 1000, /* what a frame counts for beside its bytes, to size the rounds */
    HEAD_BYTES = 12,         /* a muxer's frame header, read before the rest */
    HANDSHAKES = 200
};

static uint8_t plaintext[NOISE_MAX_PLAINTEXT];
static uint8_t frame[NOISE_LENGTH_BYTES + NOISE_MAX_CIPHERTEXT];
static uint8_t received[NOISE_MAX_CIPHERTEXT];
static const uint8_t key[NOISE_CIPHER_KEY_BYTES] = {1, 2, 3};

struct work {
    size_t length;
    uint64_t nonce;
    EVP_CIPHER_CTX *seal;
    EVP_CIPHER_CTX *open;
    struct noise_session *session;
};

typedef void run_once(struct work *work);

static void next_iv(struct work *work, uint8_t iv[12])
{
    memset(iv, 0, 12);
    memcpy(iv + 4, &work->nonce, sizeof(work->nonce));
}

static void aead_seal(struct work *work)
{
    uint8_t iv[12];
    int written;
    work->nonce++;
    next_iv(work, iv);
    EVP_EncryptInit_ex2(work->seal, NULL, NULL, iv, NULL);
    EVP_EncryptUpdate(work->seal, frame + 2, &written, plaintext, (int)work->length);
    EVP_EncryptFinal_ex(work->seal, frame + 2, &written);
    EVP_CIPHER_CTX_ctrl(work->seal, EVP_CTRL_AEAD_GET_TAG, 16, frame + 2 + work->length);
}

/* Opens the frame that was sealed last. */
static void aead_open(struct work *work)
{
    uint8_t iv[12];
    int written;
    next_iv(work, iv);
    EVP_DecryptInit_ex2(work->open, NULL, NULL, iv, NULL);
    EVP_CIPHER_CTX_ctrl(work->open, EVP_CTRL_AEAD_SET_TAG, 16, frame + 2 + work->length);
    EVP_DecryptUpdate(work->open, received, &written, frame + 2, (int)work->length);
    int ok = EVP_DecryptFinal_ex(work->open, received, &written);
    assert(ok == 1);
}

static void session_seal(struct work *work)
{
    size_t head = work->length < HEAD_BYTES ? work->length : HEAD_BYTES;
    const struct span pieces[] = {
            span_of(plaintext, head), span_of(plaintext + head, work->length - head)};
    work->nonce++;
    noise_session_set_nonces(work->session, work->nonce, 0);
    size_t written = noise_session_seal(work->session, pieces, 2, frame);
    assert(written == work->length + NOISE_LENGTH_BYTES + NOISE_TAG_BYTES);
}

static void session_open_and_read(struct work *work)
{
    size_t head = work->length < HEAD_BYTES ? work->length : HEAD_BYTES;
    noise_session_set_nonces(work->session, 0, work->nonce);
    enum status status =
            noise_session_open(work->session, frame + 2, work->length + NOISE_TAG_BYTES);
    assert(status == STATUS_OK);
    noise_session_read(work->session, received, head);
    noise_session_read(work->session, received + head, work->length - head);
}

/* In this order: an opener takes the frame that the sealer before it left. */
static const struct {
    const char *name;
    run_once *run;
} methods[] = {
        {"aead_seal", aead_seal},
        {"aead_open", aead_open},
        {"session_seal", session_seal},
        {"session_open_and_read", session_open_and_read},
};

enum {
    METHODS = sizeof(methods) / sizeof(methods[0])
};

static double measure_ns(run_once *run, struct work *work)
{
    size_t count = ROUND_BYTES / (work->length + FRAME_COST_BYTES);
    uint64_t start = clock_thread_cpu_ns();
    for (size_t i = 0; i < count; i++) {
        run(work);
    }
    return (double)(clock_thread_cpu_ns() - start) / (double)count;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;
    return (x > y) - (x < y);
}

static void run_size(struct work *work, size_t length)
{
    double times[METHODS][ROUNDS];
    work->length = length;
    for (size_t round = 0; round < ROUNDS; round++) {
        for (size_t method = 0; method < METHODS; method++) {
            times[method][round] = measure_ns(methods[method].run, work);
        }
    }
    for (size_t method = 0; method < METHODS; method++) {
        qsort(times[method], ROUNDS, sizeof(double), compare);
        double median = times[method][ROUNDS / 2];
        printf("%zu,%s,%.0f,%.0f,%.0f,%.0f\n", length, methods[method].name, median,
                times[method][0], times[method][ROUNDS - 1], (double)length * 1000 / median);
    }
}

static void pass(struct noise_handshake *from, struct noise_handshake *to)
{
    size_t consumed;
    struct span output = noise_handshake_output(from);
    enum status status = noise_handshake_receive(to, output, &consumed);
    assert(status == STATUS_OK);
    noise_handshake_output_taken(from, output.length);
}

static void run_handshake(const struct noise_static *own_static)
{
    struct noise_handshake *sides[2];
    for (size_t i = 0; i < 2; i++) {
        const struct noise_handshake_options options = {
                .own_static = own_static, .is_initiator = i == 0};
        enum status status = noise_handshake_create(&sides[i], &options);
        assert(status == STATUS_OK);
    }
    pass(sides[0], sides[1]);
    pass(sides[1], sides[0]);
    pass(sides[0], sides[1]);
    for (size_t i = 0; i < 2; i++) {
        struct noise_session *session;
        enum status status = noise_handshake_finish(&sides[i], &session);
        assert(status == STATUS_OK);
        noise_session_destroy(&session);
    }
}

/* CPU of one side. */
static void measure_handshakes(enum key_type type)
{
    struct identity *identity;
    struct noise_static *own_static;
    enum status status = identity_create(&identity, type);
    assert(status == STATUS_OK);
    status = noise_static_create(&own_static, identity);
    assert(status == STATUS_OK);
    run_handshake(own_static);
    uint64_t start = clock_thread_cpu_ns();
    for (size_t i = 0; i < HANDSHAKES; i++) {
        run_handshake(own_static);
    }
    double us = (double)(clock_thread_cpu_ns() - start) / HANDSHAKES / 2 / 1000;
    printf("handshake,%s,%.0f us a side\n", key_type_name(type), us);
    noise_static_destroy(&own_static);
    identity_destroy(&identity);
}

int main(void)
{
    struct work work = {.seal = EVP_CIPHER_CTX_new(), .open = EVP_CIPHER_CTX_new()};
    EVP_EncryptInit_ex(work.seal, EVP_chacha20_poly1305(), NULL, key, NULL);
    EVP_DecryptInit_ex(work.open, EVP_chacha20_poly1305(), NULL, key, NULL);
    enum status status = noise_session_create(&work.session, key, key);
    assert(status == STATUS_OK);
    for (size_t i = 0; i < sizeof(plaintext); i++) {
        plaintext[i] = (uint8_t)(i * 31 + (i >> 8));
    }
    printf("plaintext_bytes,method,ns_per_frame_median,min,max,MB_per_s\n");
    run_size(&work, 12);
    run_size(&work, 100);
    run_size(&work, 1000);
    run_size(&work, 16384);
    run_size(&work, NOISE_MAX_PLAINTEXT);
    measure_handshakes(KEY_TYPE_ED25519);
    measure_handshakes(KEY_TYPE_SECP256K1);
    noise_session_destroy(&work.session);
    EVP_CIPHER_CTX_free(work.seal);
    EVP_CIPHER_CTX_free(work.open);
    return 0;
}
