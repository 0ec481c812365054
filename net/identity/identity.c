/* SPDX-License-Identifier: MIT */
#include "net/identity/identity.h"

#include <assert.h>
#include <stdbool.h>
#include <string.h>

#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/rand.h>

#include "base/memory.h"
#include "codec/wire.h"
#include "net/identity/key_file.h"
#include "net/identity/secp256k1.h"

enum {
    SECRET_BYTES = 32,
    ED25519_PUBLIC_BYTES = 32,
    PRIVATE_KEY_MAX_ENCODED = 128
};

#define TAG_TYPE WIRE_TAG(1, WIRE_VARINT)
#define TAG_DATA WIRE_TAG(2, WIRE_LENGTH)

struct identity {
    EVP_PKEY *key;
    uint8_t secret[SECRET_BYTES];
    struct public_key public_key;
    struct peer_id peer_id;
};

static enum status ed25519_key_create(
        EVP_PKEY **out, struct public_key *public_key, const uint8_t secret[SECRET_BYTES])
{
    size_t length = ED25519_PUBLIC_BYTES;
    *out = EVP_PKEY_new_raw_private_key_ex(NULL, "ED25519", NULL, secret, SECRET_BYTES);
    if (*out == NULL || EVP_PKEY_get_raw_public_key(*out, public_key->data, &length) != 1) {
        return STATUS_NO_MEMORY;
    }
    public_key->length = (uint16_t)length;
    return STATUS_OK;
}

static enum status create_from_secret(
        struct identity **out, enum key_type type, const uint8_t secret[SECRET_BYTES])
{
    if (type != KEY_TYPE_ED25519 && type != KEY_TYPE_SECP256K1) {
        return STATUS_UNSUPPORTED;
    }
    struct identity *identity = memory_allocate_zeroed(sizeof(*identity));
    if (identity == NULL) {
        return STATUS_NO_MEMORY;
    }
    memcpy(identity->secret, secret, SECRET_BYTES);
    identity->public_key.type = type;
    enum status status;
    if (type == KEY_TYPE_ED25519) {
        status = ed25519_key_create(&identity->key, &identity->public_key, secret);
    } else {
        identity->public_key.length = SECP256K1_POINT_BYTES;
        status = secp256k1_key_create(&identity->key, identity->public_key.data, secret);
    }
    if (status != STATUS_OK) {
        identity_destroy(&identity);
        ERR_clear_error();
        return status;
    }
    peer_id_from_public_key(&identity->peer_id, &identity->public_key);
    *out = identity;
    return STATUS_OK;
}

enum status identity_create(struct identity **out, enum key_type type)
{
    uint8_t secret[SECRET_BYTES];
    enum status status;
    do {
        if (RAND_priv_bytes(secret, SECRET_BYTES) != 1) {
            return STATUS_SYSTEM;
        }
        /* One random secret in 2^128 is no secp256k1 key. */
        status = create_from_secret(out, type, secret);
    } while (status == STATUS_BAD_KEY);
    OPENSSL_cleanse(secret, SECRET_BYTES);
    return status;
}

static int hex_digit(uint8_t c)
{
    if (c >= '0' && c <= '9') {
        return c - '0';
    }
    if (c >= 'a' && c <= 'f') {
        return c - 'a' + 10;
    }
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

enum status identity_create_from_hex(struct identity **out, struct span hex)
{
    uint8_t secret[SECRET_BYTES];
    if (hex.length > 2 && hex.bytes[0] == '0' && (hex.bytes[1] == 'x' || hex.bytes[1] == 'X')) {
        hex = span_of(hex.bytes + 2, hex.length - 2);
    }
    if (hex.length != sizeof(secret) * 2) {
        return STATUS_BAD_KEY;
    }
    for (size_t i = 0; i < sizeof(secret); i++) {
        int high = hex_digit(hex.bytes[2 * i]);
        int low = hex_digit(hex.bytes[2 * i + 1]);
        if (high < 0 || low < 0) {
            OPENSSL_cleanse(secret, SECRET_BYTES);
            return STATUS_BAD_KEY;
        }
        secret[i] = (uint8_t)(high << 4 | low);
    }
    enum status status = create_from_secret(out, KEY_TYPE_SECP256K1, secret);
    OPENSSL_cleanse(secret, SECRET_BYTES);
    return status;
}

/* Ed25519: secret and public key, the latter twice in old files. */
static bool is_ed25519_data(struct span data)
{
    const size_t once = SECRET_BYTES + ED25519_PUBLIC_BYTES;
    return data.length == once ||
           (data.length == once + ED25519_PUBLIC_BYTES &&
                   memcmp(data.bytes + SECRET_BYTES, data.bytes + once, ED25519_PUBLIC_BYTES) == 0);
}

static enum status create_from_data(struct identity **out, uint64_t type, struct span data)
{
    bool is_ed25519 = type == KEY_TYPE_ED25519 && is_ed25519_data(data);
    bool is_secp256k1 = type == KEY_TYPE_SECP256K1 && data.length == SECRET_BYTES;
    if (!is_ed25519 && !is_secp256k1) {
        return type == KEY_TYPE_RSA || type == KEY_TYPE_ECDSA ? STATUS_UNSUPPORTED : STATUS_BAD_KEY;
    }
    enum status status = create_from_secret(out, (enum key_type)type, data.bytes);
    if (status == STATUS_OK && is_ed25519 &&
            memcmp((*out)->public_key.data, data.bytes + SECRET_BYTES, ED25519_PUBLIC_BYTES) != 0) {
        identity_destroy(out);
        return STATUS_BAD_KEY;
    }
    return status;
}

enum status identity_create_from_bytes(struct identity **out, struct span protobuf)
{
    uint64_t type = UINT64_MAX;
    struct span data = {0};
    while (protobuf.length > 0) {
        struct wire_field field;
        if (wire_next(&field, &protobuf) != STATUS_OK) {
            return STATUS_BAD_KEY;
        }
        if (field.tag == TAG_TYPE) {
            type = field.number;
        } else if (field.tag == TAG_DATA) {
            data = field.bytes;
        }
    }
    return create_from_data(out, type, data);
}

enum status identity_load(struct identity **out, const char *path)
{
    uint8_t bytes[KEY_FILE_MAX_BYTES];
    size_t length = 0;
    enum status status = key_file_read(bytes, &length, path);
    if (status == STATUS_OK) {
        status = identity_create_from_bytes(out, span_of(bytes, length));
    }
    OPENSSL_cleanse(bytes, sizeof(bytes));
    return status;
}

enum status identity_save(const struct identity *identity, const char *path)
{
    uint8_t bytes[PRIVATE_KEY_MAX_ENCODED];
    const struct public_key *public_key = &identity->public_key;
    bool is_ed25519 = public_key->type == KEY_TYPE_ED25519;
    size_t data_length = SECRET_BYTES + (is_ed25519 ? public_key->length : 0U);
    uint8_t *end = wire_write_number(bytes, TAG_TYPE, public_key->type);
    end = wire_write_head(end, TAG_DATA, data_length);
    memcpy(end, identity->secret, SECRET_BYTES);
    memcpy(end + SECRET_BYTES, public_key->data, data_length - SECRET_BYTES);
    end += data_length;
    enum status status = key_file_write(path, span_of(bytes, (size_t)(end - bytes)));
    OPENSSL_cleanse(bytes, sizeof(bytes));
    return status;
}

void identity_destroy(struct identity **identity)
{
    if (*identity == NULL) {
        return;
    }
    EVP_PKEY_free((*identity)->key);
    OPENSSL_cleanse(*identity, sizeof(**identity));
    memory_free(*identity);
    *identity = NULL;
}

enum status identity_sign(const struct identity *identity, struct span message,
        uint8_t signature[IDENTITY_SIGNATURE_MAX], size_t *length)
{
    bool is_ed25519 = identity->public_key.type == KEY_TYPE_ED25519;
    const char *digest = is_ed25519 ? NULL : "SHA256";
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    *length = IDENTITY_SIGNATURE_MAX;
    bool ok = context != NULL &&
              EVP_DigestSignInit_ex(context, NULL, digest, NULL, NULL, identity->key, NULL) == 1 &&
              EVP_DigestSign(context, signature, length, message.bytes, message.length) == 1;
    EVP_MD_CTX_free(context);
    if (!ok) {
        ERR_clear_error();
        return STATUS_NO_MEMORY;
    }
    return is_ed25519 ? STATUS_OK : secp256k1_lower_s(signature, length);
}

enum status identity_sign_digest(
        const struct identity *identity, const uint8_t hash[32], uint8_t signature[64])
{
    uint8_t der[IDENTITY_SIGNATURE_MAX];
    size_t length = sizeof(der);
    if (identity->public_key.type != KEY_TYPE_SECP256K1) {
        return STATUS_UNSUPPORTED;
    }
    EVP_PKEY_CTX *context = EVP_PKEY_CTX_new_from_pkey(NULL, identity->key, NULL);
    bool ok = context != NULL && EVP_PKEY_sign_init(context) == 1 &&
              EVP_PKEY_sign(context, der, &length, hash, 32) == 1;
    EVP_PKEY_CTX_free(context);
    if (!ok) {
        ERR_clear_error();
        return STATUS_NO_MEMORY;
    }
    enum status status = secp256k1_lower_s(der, &length);
    return status == STATUS_OK ? secp256k1_numbers(signature, der, length) : status;
}

const struct public_key *identity_public_key(const struct identity *identity)
{
    return &identity->public_key;
}

const struct peer_id *identity_peer_id(const struct identity *identity)
{
    return &identity->peer_id;
}
