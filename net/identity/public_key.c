/* SPDX-License-Identifier: MIT */
#include "net/identity/public_key.h"

#include <stdbool.h>
#include <string.h>

#include <openssl/core_names.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/x509.h>

#include "codec/wire.h"
#include "net/identity/secp256k1.h"

enum {
    ED25519_BYTES = 32,
    SECP256K1_BYTES = 33,
    P256_POINT_BYTES = 65,
    MAX_RSA_EXPONENT_BITS = 33
};

#define TAG_TYPE WIRE_TAG(1, WIRE_VARINT)
#define TAG_DATA WIRE_TAG(2, WIRE_LENGTH)

/* SubjectPublicKeyInfo of an uncompressed P-256 point, up to the point. */
static const uint8_t p256_head[] = {0x30, 0x59, 0x30, 0x13, 0x06, 0x07, 0x2a, 0x86, 0x48, 0xce,
        0x3d, 0x02, 0x01, 0x06, 0x08, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07, 0x03, 0x42,
        0x00};

static bool is_well_formed(uint64_t type, struct span data)
{
    switch (type) {
    case KEY_TYPE_ED25519:
        return data.length == ED25519_BYTES;
    case KEY_TYPE_SECP256K1:
        return data.length == SECP256K1_BYTES && (data.bytes[0] == 2 || data.bytes[0] == 3);
    case KEY_TYPE_ECDSA:
        return data.length == sizeof(p256_head) + P256_POINT_BYTES &&
               memcmp(data.bytes, p256_head, sizeof(p256_head)) == 0 &&
               data.bytes[sizeof(p256_head)] == POINT_CONVERSION_UNCOMPRESSED;
    case KEY_TYPE_RSA:
        return data.length > 0 && data.length <= PUBLIC_KEY_MAX_DATA;
    default:
        return false;
    }
}

enum status public_key_parse(struct public_key *out, struct span protobuf)
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
    if (!is_well_formed(type, data)) {
        return STATUS_BAD_KEY;
    }
    out->type = (enum key_type)type;
    out->length = (uint16_t)data.length;
    memcpy(out->data, data.bytes, data.length);
    return STATUS_OK;
}

size_t public_key_encode(const struct public_key *key, uint8_t out[PUBLIC_KEY_MAX_ENCODED])
{
    uint8_t *end = wire_write_number(out, TAG_TYPE, key->type);
    end = wire_write_bytes(end, TAG_DATA, span_of(key->data, key->length));
    return (size_t)(end - out);
}

static EVP_PKEY *ec_key(const char *curve, const uint8_t *point, size_t length)
{
    char group[16];
    uint8_t encoded[P256_POINT_BYTES];
    strncpy(group, curve, sizeof(group) - 1);
    group[sizeof(group) - 1] = '\0';
    memcpy(encoded, point, length);
    OSSL_PARAM parameters[] = {
            OSSL_PARAM_construct_utf8_string(OSSL_PKEY_PARAM_GROUP_NAME, group, 0),
            OSSL_PARAM_construct_octet_string(OSSL_PKEY_PARAM_PUB_KEY, encoded, length),
            OSSL_PARAM_construct_end()};
    EVP_PKEY *key = NULL;
    EVP_PKEY_CTX *context = EVP_PKEY_CTX_new_from_name(NULL, "EC", NULL);
    if (context == NULL || EVP_PKEY_fromdata_init(context) != 1 ||
            EVP_PKEY_fromdata(context, &key, EVP_PKEY_PUBLIC_KEY, parameters) != 1) {
        key = NULL;
    }
    EVP_PKEY_CTX_free(context);
    return key;
}

/* A huge modulus or exponent would make a verification cost milliseconds. */
static bool is_acceptable_rsa(EVP_PKEY *key)
{
    BIGNUM *exponent = NULL;
    int bits = EVP_PKEY_get_bits(key);
    bool ok = EVP_PKEY_is_a(key, "RSA") == 1 && bits >= PUBLIC_KEY_MIN_RSA_BITS &&
              bits <= PUBLIC_KEY_MAX_RSA_BITS &&
              EVP_PKEY_get_bn_param(key, OSSL_PKEY_PARAM_RSA_E, &exponent) == 1 &&
              BN_num_bits(exponent) <= MAX_RSA_EXPONENT_BITS;
    BN_free(exponent);
    return ok;
}

/* Only the one DER form that encodes back to the same bytes: peer ids are hashes of them. */
static bool is_canonical(EVP_PKEY *key, struct span der)
{
    uint8_t *encoded = NULL;
    int length = i2d_PUBKEY(key, &encoded);
    bool ok = length > 0 && span_equal(span_of(encoded, (size_t)length), der);
    OPENSSL_free(encoded);
    return ok;
}

static EVP_PKEY *rsa_key(struct span der)
{
    const uint8_t *at = der.bytes;
    EVP_PKEY *key = d2i_PUBKEY(NULL, &at, (long)der.length);
    if (key != NULL && !(is_acceptable_rsa(key) && is_canonical(key, der))) {
        EVP_PKEY_free(key);
        key = NULL;
    }
    return key;
}

static EVP_PKEY *load(const struct public_key *key)
{
    switch (key->type) {
    case KEY_TYPE_ED25519:
        return EVP_PKEY_new_raw_public_key_ex(NULL, "ED25519", NULL, key->data, key->length);
    case KEY_TYPE_SECP256K1:
        return ec_key("secp256k1", key->data, key->length);
    case KEY_TYPE_ECDSA:
        return ec_key("P-256", key->data + sizeof(p256_head), P256_POINT_BYTES);
    case KEY_TYPE_RSA:
        return rsa_key(span_of(key->data, key->length));
    }
    return NULL;
}

enum status public_key_verify(
        const struct public_key *key, struct span message, struct span signature)
{
    enum status status = STATUS_BAD_KEY;
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    EVP_PKEY *loaded = load(key);
    if (context == NULL) {
        status = STATUS_NO_MEMORY;
    } else if (loaded != NULL) {
        const char *digest = key->type == KEY_TYPE_ED25519 ? NULL : "SHA256";
        bool is_valid =
                signature.length > 0 && signature.length <= SIGNATURE_MAX_BYTES &&
                EVP_DigestVerifyInit_ex(context, NULL, digest, NULL, NULL, loaded, NULL) == 1 &&
                EVP_DigestVerify(context, signature.bytes, signature.length, message.bytes,
                        message.length) == 1;
        status = is_valid ? STATUS_OK : STATUS_BAD_SIGNATURE;
    }
    EVP_PKEY_free(loaded);
    EVP_MD_CTX_free(context);
    /* What OpenSSL queued about a bad key must not be taken for an error of TLS on this thread. */
    ERR_clear_error();
    return status;
}

enum status public_key_verify_digest(
        const struct public_key *key, const uint8_t hash[32], struct span signature)
{
    uint8_t der[72];
    size_t length;
    if (key->type != KEY_TYPE_SECP256K1 || signature.length != 64) {
        return STATUS_BAD_SIGNATURE;
    }
    enum status status = secp256k1_der(der, &length, signature.bytes);
    if (status != STATUS_OK) {
        return status;
    }
    EVP_PKEY *loaded = load(key);
    EVP_PKEY_CTX *context = loaded != NULL ? EVP_PKEY_CTX_new_from_pkey(NULL, loaded, NULL) : NULL;
    status = STATUS_BAD_KEY;
    if (context != NULL && EVP_PKEY_verify_init(context) == 1) {
        bool is_valid = EVP_PKEY_verify(context, der, length, hash, 32) == 1;
        status = is_valid ? STATUS_OK : STATUS_BAD_SIGNATURE;
    }
    EVP_PKEY_CTX_free(context);
    EVP_PKEY_free(loaded);
    ERR_clear_error();
    return status;
}

const char *key_type_name(enum key_type type)
{
    switch (type) {
    case KEY_TYPE_RSA:
        return "RSA";
    case KEY_TYPE_ED25519:
        return "Ed25519";
    case KEY_TYPE_SECP256K1:
        return "secp256k1";
    case KEY_TYPE_ECDSA:
        return "ECDSA";
    }
    return "unknown";
}
