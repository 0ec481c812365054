/* SPDX-License-Identifier: MIT */

/* What is taken encodes to bytes that parse to the same key; verifying with it never succeeds. */

#include <assert.h>

#include "net/identity/peer_id.h"
#include "net/identity/public_key.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const uint8_t signature[70] = {0x30, 0x44, 0x02, 0x20, 1};
    struct public_key key;
    if (public_key_parse(&key, span_of(data, size)) != STATUS_OK) {
        return 0;
    }
    uint8_t encoded[PUBLIC_KEY_MAX_ENCODED];
    struct public_key again;
    struct peer_id id;
    size_t length = public_key_encode(&key, encoded);
    enum status status = public_key_parse(&again, span_of(encoded, length));
    assert(status == STATUS_OK && again.type == key.type && again.length == key.length);
    peer_id_from_public_key(&id, &key);
    status = public_key_verify(&key, span_of("x", 1), span_of(signature, sizeof(signature)));
    assert(status == STATUS_BAD_KEY || status == STATUS_BAD_SIGNATURE);
    return 0;
}
