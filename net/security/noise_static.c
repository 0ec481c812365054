/* SPDX-License-Identifier: MIT */
#include "net/security/noise_static.h"

#include <string.h>

#include "base/memory.h"

static const char signature_prefix[] = "noise-libp2p-static-key:";

enum {
    PREFIX_BYTES = sizeof(signature_prefix) - 1,
    MAX_IDENTITY_KEY = 64 /* own keys are short: Ed25519 36 bytes, secp256k1 37 */
};

_Static_assert(NOISE_STATIC_SIGNED_BYTES == PREFIX_BYTES + NOISE_XX_KEY_BYTES, "prefix and key");

struct noise_static {
    struct noise_key_pair pair;
    size_t identity_key_length;
    size_t signature_length;
    uint8_t identity_key[MAX_IDENTITY_KEY];
    uint8_t signature[IDENTITY_SIGNATURE_MAX];
};

void noise_static_signed_bytes(
        uint8_t out[NOISE_STATIC_SIGNED_BYTES], const uint8_t static_key[NOISE_XX_KEY_BYTES])
{
    memcpy(out, signature_prefix, PREFIX_BYTES);
    memcpy(out + PREFIX_BYTES, static_key, NOISE_XX_KEY_BYTES);
}

static enum status encode_identity_key(
        struct noise_static *own_static, const struct public_key *public_key)
{
    uint8_t encoded[PUBLIC_KEY_MAX_ENCODED];
    size_t length = public_key_encode(public_key, encoded);
    if (length > MAX_IDENTITY_KEY) {
        return STATUS_UNSUPPORTED;
    }
    memcpy(own_static->identity_key, encoded, length);
    own_static->identity_key_length = length;
    return STATUS_OK;
}

static enum status sign(struct noise_static *own_static, const struct identity *identity)
{
    uint8_t message[NOISE_STATIC_SIGNED_BYTES];
    noise_static_signed_bytes(message, own_static->pair.public_key);
    return identity_sign(identity, span_of(message, sizeof(message)), own_static->signature,
            &own_static->signature_length);
}

enum status noise_static_create(struct noise_static **out, const struct identity *identity)
{
    struct noise_static *own_static = memory_allocate_zeroed(sizeof(*own_static));
    if (own_static == NULL) {
        return STATUS_NO_MEMORY;
    }
    enum status status = noise_key_pair_init(&own_static->pair, NULL);
    if (status == STATUS_OK) {
        status = encode_identity_key(own_static, identity_public_key(identity));
    }
    if (status == STATUS_OK) {
        status = sign(own_static, identity);
    }
    if (status != STATUS_OK) {
        noise_static_destroy(&own_static);
        return status;
    }
    *out = own_static;
    return STATUS_OK;
}

void noise_static_destroy(struct noise_static **own_static)
{
    if (*own_static == NULL) {
        return;
    }
    noise_key_pair_fini(&(*own_static)->pair);
    memory_free(*own_static);
    *own_static = NULL;
}

const struct noise_key_pair *noise_static_pair(const struct noise_static *own_static)
{
    return &own_static->pair;
}

struct span noise_static_identity_key(const struct noise_static *own_static)
{
    return span_of(own_static->identity_key, own_static->identity_key_length);
}

struct span noise_static_signature(const struct noise_static *own_static)
{
    return span_of(own_static->signature, own_static->signature_length);
}
