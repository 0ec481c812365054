/* SPDX-License-Identifier: MIT */
#include "net/security/noise_xx.h"

#include <assert.h>
#include <string.h>

#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/hmac.h>

enum token {
    TOKEN_END,
    TOKEN_E,
    TOKEN_S,
    TOKEN_EE,
    TOKEN_ES,
    TOKEN_SE
};

enum {
    MAX_TOKENS = 5
};

static const enum token patterns[NOISE_XX_MESSAGES][MAX_TOKENS] = {
        {TOKEN_E, TOKEN_END},
        {TOKEN_E, TOKEN_EE, TOKEN_S, TOKEN_ES, TOKEN_END},
        {TOKEN_S, TOKEN_SE, TOKEN_END},
};

/* As long as the hash, so that it is the first hash as it stands. */
static const char protocol_name[] = "Noise_XX_25519_ChaChaPoly_SHA256";

static enum status mix_hash(struct noise_xx *handshake, struct span bytes)
{
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    bool ok = context != NULL && EVP_DigestInit_ex2(context, EVP_sha256(), NULL) == 1 &&
              EVP_DigestUpdate(context, handshake->hash, NOISE_XX_HASH_BYTES) == 1 &&
              EVP_DigestUpdate(context, bytes.bytes, bytes.length) == 1 &&
              EVP_DigestFinal_ex(context, handshake->hash, NULL) == 1;
    EVP_MD_CTX_free(context);
    return ok ? STATUS_OK : STATUS_NO_MEMORY;
}

static bool hmac(uint8_t out[NOISE_XX_HASH_BYTES], const uint8_t key[NOISE_XX_HASH_BYTES],
        struct span message)
{
    return HMAC(EVP_sha256(), key, NOISE_XX_HASH_BYTES, message.bytes, message.length, out, NULL) !=
           NULL;
}

/* Two outputs of HKDF with the chaining key as salt. */
static enum status hkdf(const uint8_t chaining_key[NOISE_XX_HASH_BYTES], struct span input,
        uint8_t first[NOISE_XX_HASH_BYTES], uint8_t second[NOISE_XX_HASH_BYTES])
{
    uint8_t extracted[NOISE_XX_HASH_BYTES];
    uint8_t block[NOISE_XX_HASH_BYTES + 1];
    const uint8_t one = 1;
    bool ok = hmac(extracted, chaining_key, input) && hmac(first, extracted, span_of(&one, 1));
    memcpy(block, first, NOISE_XX_HASH_BYTES);
    block[NOISE_XX_HASH_BYTES] = 2;
    ok = ok && hmac(second, extracted, span_of(block, sizeof(block)));
    OPENSSL_cleanse(extracted, sizeof(extracted));
    OPENSSL_cleanse(block, sizeof(block));
    return ok ? STATUS_OK : STATUS_NO_MEMORY;
}

static enum status mix_key(struct noise_xx *handshake, struct span secret)
{
    uint8_t chaining_key[NOISE_XX_HASH_BYTES] = {0};
    uint8_t key[NOISE_XX_HASH_BYTES] = {0};
    enum status status = hkdf(handshake->chaining_key, secret, chaining_key, key);
    if (status == STATUS_OK) {
        memcpy(handshake->chaining_key, chaining_key, sizeof(chaining_key));
        noise_cipher_set_key(&handshake->cipher, key);
        handshake->has_key = true;
    }
    OPENSSL_cleanse(chaining_key, sizeof(chaining_key));
    OPENSSL_cleanse(key, sizeof(key));
    return status;
}

/* Agrees on a secret with remote and mixes it in. */
static enum status mix_agreement(struct noise_xx *handshake, const struct noise_key_pair *own,
        const uint8_t remote[NOISE_XX_KEY_BYTES])
{
    uint8_t secret[NOISE_XX_KEY_BYTES];
    size_t length = sizeof(secret);
    EVP_PKEY *key =
            EVP_PKEY_new_raw_public_key_ex(NULL, "X25519", NULL, remote, NOISE_XX_KEY_BYTES);
    EVP_PKEY_CTX *context = EVP_PKEY_CTX_new_from_pkey(NULL, own->key, NULL);
    enum status status = STATUS_NO_MEMORY;
    if (key != NULL && context != NULL && EVP_PKEY_derive_init(context) == 1 &&
            EVP_PKEY_derive_set_peer(context, key) == 1) {
        /* Fails for a remote key that would make the secret zero whatever ours is. */
        status = EVP_PKEY_derive(context, secret, &length) == 1 ? STATUS_OK : STATUS_BAD_HANDSHAKE;
    }
    if (status == STATUS_OK) {
        status = mix_key(handshake, span_of(secret, length));
    }
    OPENSSL_cleanse(secret, sizeof(secret));
    EVP_PKEY_CTX_free(context);
    EVP_PKEY_free(key);
    return status;
}

static enum status mix_token(struct noise_xx *handshake, enum token token)
{
    bool use_own_static = token == (handshake->is_initiator ? TOKEN_SE : TOKEN_ES);
    bool use_remote_static = token == (handshake->is_initiator ? TOKEN_ES : TOKEN_SE);
    return mix_agreement(handshake,
            use_own_static ? &handshake->own_static : &handshake->own_ephemeral,
            use_remote_static ? handshake->remote_static : handshake->remote_ephemeral);
}

/* Writes plaintext, encrypted as soon as there is a key, and moves *out behind it. */
static enum status encrypt_and_hash(
        struct noise_xx *handshake, struct span plaintext, uint8_t **out)
{
    size_t length = plaintext.length;
    if (handshake->has_key) {
        struct span hash = span_of(handshake->hash, NOISE_XX_HASH_BYTES);
        if (!noise_cipher_seal(&handshake->cipher, hash, &plaintext, 1, *out)) {
            return STATUS_LIMIT_REACHED;
        }
        length += NOISE_CIPHER_TAG_BYTES;
    } else if (length > 0) {
        memcpy(*out, plaintext.bytes, length);
    }
    enum status status = mix_hash(handshake, span_of(*out, length));
    *out += length;
    return status;
}

/* ciphertext includes the tag, where there is a key; plaintext gets that much less. */
static enum status decrypt_and_hash(
        struct noise_xx *handshake, struct span ciphertext, uint8_t *plaintext)
{
    if (handshake->has_key) {
        struct span hash = span_of(handshake->hash, NOISE_XX_HASH_BYTES);
        if (noise_cipher_verify(&handshake->cipher, hash, ciphertext) != STATUS_OK) {
            return STATUS_BAD_HANDSHAKE;
        }
        noise_cipher_decrypt(&handshake->cipher, plaintext, ciphertext.bytes,
                ciphertext.length - NOISE_CIPHER_TAG_BYTES);
    } else if (ciphertext.length > 0) {
        memcpy(plaintext, ciphertext.bytes, ciphertext.length);
    }
    return mix_hash(handshake, ciphertext);
}

static size_t overhead(const struct noise_xx *handshake)
{
    return handshake->has_key ? NOISE_CIPHER_TAG_BYTES : 0;
}

static enum status write_token(struct noise_xx *handshake, enum token token, uint8_t **out)
{
    struct span key;
    switch (token) {
    case TOKEN_E:
        key = span_of(handshake->own_ephemeral.public_key, NOISE_XX_KEY_BYTES);
        memcpy(*out, key.bytes, key.length);
        *out += key.length;
        return mix_hash(handshake, key);
    case TOKEN_S:
        key = span_of(handshake->own_static.public_key, NOISE_XX_KEY_BYTES);
        return encrypt_and_hash(handshake, key, out);
    case TOKEN_EE:
    case TOKEN_ES:
    case TOKEN_SE:
        return mix_token(handshake, token);
    case TOKEN_END:
        break;
    }
    return STATUS_OK;
}

static enum status take(struct span *out, struct span *rest, size_t length)
{
    if (length > rest->length) {
        return STATUS_BAD_HANDSHAKE;
    }
    *out = span_of(rest->bytes, length);
    *rest = span_of(rest->bytes + length, rest->length - length);
    return STATUS_OK;
}

static enum status read_token(struct noise_xx *handshake, enum token token, struct span *rest)
{
    struct span key;
    enum status status = STATUS_OK;
    switch (token) {
    case TOKEN_E:
        status = take(&key, rest, NOISE_XX_KEY_BYTES);
        if (status != STATUS_OK) {
            return status;
        }
        memcpy(handshake->remote_ephemeral, key.bytes, key.length);
        return mix_hash(handshake, key);
    case TOKEN_S:
        status = take(&key, rest, NOISE_XX_KEY_BYTES + overhead(handshake));
        return status == STATUS_OK ? decrypt_and_hash(handshake, key, handshake->remote_static)
                                   : status;
    case TOKEN_EE:
    case TOKEN_ES:
    case TOKEN_SE:
        return mix_token(handshake, token);
    case TOKEN_END:
        break;
    }
    return STATUS_OK;
}

enum status noise_key_pair_init(struct noise_key_pair *pair, const uint8_t *secret)
{
    size_t length = NOISE_XX_KEY_BYTES;
    pair->key = secret == NULL ? EVP_PKEY_Q_keygen(NULL, NULL, "X25519")
                               : EVP_PKEY_new_raw_private_key_ex(
                                         NULL, "X25519", NULL, secret, NOISE_XX_KEY_BYTES);
    if (pair->key == NULL ||
            EVP_PKEY_get_raw_public_key(pair->key, pair->public_key, &length) != 1) {
        noise_key_pair_fini(pair);
        ERR_clear_error();
        return STATUS_NO_MEMORY;
    }
    return STATUS_OK;
}

void noise_key_pair_fini(struct noise_key_pair *pair)
{
    EVP_PKEY_free(pair->key);
    pair->key = NULL;
}

enum status noise_xx_init(struct noise_xx *handshake, const struct noise_xx_options *options)
{
    memset(handshake, 0, sizeof(*handshake));
    handshake->is_initiator = options->is_initiator;
    memcpy(handshake->hash, protocol_name, NOISE_XX_HASH_BYTES);
    memcpy(handshake->chaining_key, protocol_name, NOISE_XX_HASH_BYTES);
    enum status status = noise_cipher_init(&handshake->cipher);
    if (status == STATUS_OK && EVP_PKEY_up_ref(options->static_pair->key) == 1) {
        handshake->own_static = *options->static_pair;
        status = noise_key_pair_init(&handshake->own_ephemeral, options->ephemeral_secret);
    }
    if (status == STATUS_OK) {
        status = mix_hash(handshake, options->prologue);
    }
    if (status != STATUS_OK) {
        noise_xx_fini(handshake);
        ERR_clear_error();
    }
    return status;
}

void noise_xx_fini(struct noise_xx *handshake)
{
    noise_cipher_fini(&handshake->cipher);
    noise_key_pair_fini(&handshake->own_static);
    noise_key_pair_fini(&handshake->own_ephemeral);
    OPENSSL_cleanse(handshake, sizeof(*handshake));
}

enum status noise_xx_write(
        struct noise_xx *handshake, struct span payload, uint8_t *out, size_t *written)
{
    assert(handshake->next_message < NOISE_XX_MESSAGES);
    const enum token *token = patterns[handshake->next_message++];
    uint8_t *end = out;
    for (; *token != TOKEN_END; token++) {
        enum status status = write_token(handshake, *token, &end);
        if (status != STATUS_OK) {
            ERR_clear_error();
            return status;
        }
    }
    enum status status = encrypt_and_hash(handshake, payload, &end);
    *written = (size_t)(end - out);
    return status;
}

enum status noise_xx_read(
        struct noise_xx *handshake, struct span message, uint8_t *payload, size_t *length)
{
    assert(handshake->next_message < NOISE_XX_MESSAGES);
    const enum token *token = patterns[handshake->next_message++];
    for (; *token != TOKEN_END; token++) {
        enum status status = read_token(handshake, *token, &message);
        if (status != STATUS_OK) {
            ERR_clear_error();
            return status;
        }
    }
    enum status status = decrypt_and_hash(handshake, message, payload);
    *length = status == STATUS_OK ? message.length - overhead(handshake) : 0;
    return status;
}

enum status noise_xx_split(struct noise_xx *handshake, uint8_t send_key[NOISE_XX_KEY_BYTES],
        uint8_t receive_key[NOISE_XX_KEY_BYTES])
{
    assert(handshake->next_message == NOISE_XX_MESSAGES);
    /* The first key is the initiator's to send with. */
    return handshake->is_initiator
                   ? hkdf(handshake->chaining_key, span_of(NULL, 0), send_key, receive_key)
                   : hkdf(handshake->chaining_key, span_of(NULL, 0), receive_key, send_key);
}
