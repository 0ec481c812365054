/* SPDX-License-Identifier: MIT */
#include "net/identity/secp256k1.h"

#include <stdbool.h>

#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/ec.h>
#include <openssl/ecdsa.h>
#include <openssl/obj_mac.h>
#include <openssl/param_build.h>

static bool public_point_of(
        const EC_GROUP *group, const BIGNUM *secret, uint8_t out[SECP256K1_POINT_BYTES])
{
    EC_POINT *point = EC_POINT_new(group);
    bool ok = point != NULL && EC_POINT_mul(group, point, secret, NULL, NULL, NULL) == 1 &&
              EC_POINT_point2oct(group, point, POINT_CONVERSION_COMPRESSED, out,
                      SECP256K1_POINT_BYTES, NULL) == SECP256K1_POINT_BYTES;
    EC_POINT_free(point);
    return ok;
}

static EVP_PKEY *key_from(const BIGNUM *secret, const uint8_t point[SECP256K1_POINT_BYTES])
{
    EVP_PKEY *key = NULL;
    OSSL_PARAM *parameters = NULL;
    EVP_PKEY_CTX *context = EVP_PKEY_CTX_new_from_name(NULL, "EC", NULL);
    OSSL_PARAM_BLD *build = OSSL_PARAM_BLD_new();
    if (build != NULL &&
            OSSL_PARAM_BLD_push_utf8_string(build, OSSL_PKEY_PARAM_GROUP_NAME, "secp256k1", 0) ==
                    1 &&
            OSSL_PARAM_BLD_push_BN(build, OSSL_PKEY_PARAM_PRIV_KEY, secret) == 1 &&
            OSSL_PARAM_BLD_push_octet_string(
                    build, OSSL_PKEY_PARAM_PUB_KEY, point, SECP256K1_POINT_BYTES) == 1) {
        parameters = OSSL_PARAM_BLD_to_param(build);
    }
    if (context == NULL || parameters == NULL || EVP_PKEY_fromdata_init(context) != 1 ||
            EVP_PKEY_fromdata(context, &key, EVP_PKEY_KEYPAIR, parameters) != 1) {
        key = NULL;
    }
    OSSL_PARAM_free(parameters);
    OSSL_PARAM_BLD_free(build);
    EVP_PKEY_CTX_free(context);
    return key;
}

enum status secp256k1_key_create(EVP_PKEY **out, uint8_t public_point[SECP256K1_POINT_BYTES],
        const uint8_t secret[SECP256K1_SECRET_BYTES])
{
    enum status status = STATUS_NO_MEMORY;
    EC_GROUP *group = EC_GROUP_new_by_curve_name(NID_secp256k1);
    BIGNUM *number = BN_secure_new();
    if (group == NULL || number == NULL ||
            BN_bin2bn(secret, SECP256K1_SECRET_BYTES, number) == NULL) {
        goto done;
    }
    BN_set_flags(number, BN_FLG_CONSTTIME);
    if (BN_is_zero(number) || BN_cmp(number, EC_GROUP_get0_order(group)) >= 0) {
        status = STATUS_BAD_KEY;
        goto done;
    }
    if (public_point_of(group, number, public_point)) {
        *out = key_from(number, public_point);
        status = *out != NULL ? STATUS_OK : STATUS_NO_MEMORY;
    }
done:
    BN_clear_free(number);
    EC_GROUP_free(group);
    return status;
}

static enum status replace_s(ECDSA_SIG *signature, const BIGNUM *order)
{
    BIGNUM *r = BN_dup(ECDSA_SIG_get0_r(signature));
    BIGNUM *s = BN_new();
    if (r == NULL || s == NULL || BN_sub(s, order, ECDSA_SIG_get0_s(signature)) != 1 ||
            ECDSA_SIG_set0(signature, r, s) != 1) {
        BN_free(r);
        BN_free(s);
        return STATUS_NO_MEMORY;
    }
    return STATUS_OK;
}

enum status secp256k1_lower_s(uint8_t *der, size_t *length)
{
    enum status status = STATUS_NO_MEMORY;
    const uint8_t *at = der;
    EC_GROUP *group = EC_GROUP_new_by_curve_name(NID_secp256k1);
    BIGNUM *half = BN_new();
    ECDSA_SIG *signature = d2i_ECDSA_SIG(NULL, &at, (long)*length);
    if (group == NULL || half == NULL || signature == NULL ||
            BN_rshift1(half, EC_GROUP_get0_order(group)) != 1) {
        goto done;
    }
    status = STATUS_OK;
    if (BN_cmp(ECDSA_SIG_get0_s(signature), half) > 0) {
        status = replace_s(signature, EC_GROUP_get0_order(group));
    }
    if (status == STATUS_OK) {
        uint8_t *end = der; /* never longer than before: s became smaller */
        int written = i2d_ECDSA_SIG(signature, &end);
        *length = (size_t)written;
    }
done:
    ECDSA_SIG_free(signature);
    BN_free(half);
    EC_GROUP_free(group);
    return status;
}

enum status secp256k1_numbers(uint8_t numbers[64], const uint8_t *der, size_t length)
{
    const uint8_t *at = der;
    ECDSA_SIG *signature = d2i_ECDSA_SIG(NULL, &at, (long)length);
    bool ok = signature != NULL && BN_bn2binpad(ECDSA_SIG_get0_r(signature), numbers, 32) == 32 &&
              BN_bn2binpad(ECDSA_SIG_get0_s(signature), numbers + 32, 32) == 32;
    ECDSA_SIG_free(signature);
    return ok ? STATUS_OK : STATUS_BAD_FIELD;
}

enum status secp256k1_der(uint8_t der[72], size_t *length, const uint8_t numbers[64])
{
    ECDSA_SIG *signature = ECDSA_SIG_new();
    BIGNUM *r = BN_bin2bn(numbers, 32, NULL);
    BIGNUM *s = BN_bin2bn(numbers + 32, 32, NULL);
    int written = 0;
    if (signature != NULL && r != NULL && s != NULL && ECDSA_SIG_set0(signature, r, s) == 1) {
        uint8_t *end = der;
        r = s = NULL; /* the signature's now */
        written = i2d_ECDSA_SIG(signature, &end);
    }
    BN_free(r);
    BN_free(s);
    ECDSA_SIG_free(signature);
    *length = written > 0 ? (size_t)written : 0;
    return written > 0 ? STATUS_OK : STATUS_NO_MEMORY;
}
