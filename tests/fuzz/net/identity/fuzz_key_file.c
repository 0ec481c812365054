/* SPDX-License-Identifier: MIT */

/* Private keys, from a file or as --nodekey: what is taken can sign, and its signature is good. */

#include "net/identity/identity.h"
#include "tests/support/require.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void use(struct identity *identity)
{
    uint8_t signature[IDENTITY_SIGNATURE_MAX];
    size_t length = 0;
    struct span message = span_of_text("message");
    struct peer_id id;
    REQUIRE(identity_sign(identity, message, signature, &length) == STATUS_OK);
    REQUIRE(public_key_verify(identity_public_key(identity), message, span_of(signature, length)) ==
            STATUS_OK);
    peer_id_from_public_key(&id, identity_public_key(identity));
    REQUIRE(peer_id_equal(&id, identity_peer_id(identity)));
    identity_destroy(&identity);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct identity *identity = NULL;
    if (identity_create_from_bytes(&identity, span_of(data, size)) == STATUS_OK) {
        use(identity);
    }
    if (identity_create_from_hex(&identity, span_of(data, size)) == STATUS_OK) {
        use(identity);
    }
    return 0;
}
