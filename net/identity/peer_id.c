/* SPDX-License-Identifier: MIT */
#include "net/identity/peer_id.h"

#include <assert.h>
#include <string.h>

#include <openssl/sha.h>
#include <xxhash.h>

#include "net/identity/base32.h"
#include "net/identity/base58.h"

/* All numbers here are below 128, so that each is one byte as a varint. */
enum {
    MULTIHASH_IDENTITY = 0x00,
    MULTIHASH_SHA256 = 0x12,
    MULTIHASH_HEAD = 2, /* function and digest length */
    CID_VERSION = 1,
    CID_LIBP2P_KEY = 0x72,
    CID_HEAD = 2
};

static void set(struct peer_id *out, uint8_t function, const uint8_t *digest, size_t length)
{
    assert(length <= PEER_ID_MAX_INLINE_KEY);
    memset(out, 0, sizeof(*out));
    out->length = (uint8_t)(MULTIHASH_HEAD + length);
    out->bytes[0] = function;
    out->bytes[1] = (uint8_t)length;
    memcpy(out->bytes + MULTIHASH_HEAD, digest, length);
}

void peer_id_from_public_key(struct peer_id *out, const struct public_key *key)
{
    uint8_t encoded[PUBLIC_KEY_MAX_ENCODED];
    size_t length = public_key_encode(key, encoded);
    if (length <= PEER_ID_MAX_INLINE_KEY) {
        set(out, MULTIHASH_IDENTITY, encoded, length);
        return;
    }
    uint8_t digest[SHA256_DIGEST_LENGTH];
    SHA256(encoded, length, digest);
    set(out, MULTIHASH_SHA256, digest, sizeof(digest));
}

enum status peer_id_from_bytes(struct peer_id *out, struct span bytes)
{
    if (bytes.length <= MULTIHASH_HEAD || bytes.length > PEER_ID_MAX_BYTES ||
            bytes.bytes[1] != bytes.length - MULTIHASH_HEAD) {
        return STATUS_BAD_ADDRESS;
    }
    uint8_t function = bytes.bytes[0];
    size_t length = bytes.bytes[1];
    if (function != MULTIHASH_IDENTITY &&
            (function != MULTIHASH_SHA256 || length != SHA256_DIGEST_LENGTH)) {
        return STATUS_BAD_ADDRESS;
    }
    set(out, function, bytes.bytes + MULTIHASH_HEAD, length);
    return STATUS_OK;
}

static enum status from_cid(struct peer_id *out, struct span cid)
{
    if (cid.length < CID_HEAD || cid.bytes[0] != CID_VERSION || cid.bytes[1] != CID_LIBP2P_KEY) {
        return STATUS_BAD_ADDRESS;
    }
    return peer_id_from_bytes(out, span_of(cid.bytes + CID_HEAD, cid.length - CID_HEAD));
}

enum status peer_id_parse(struct peer_id *out, struct span text)
{
    uint8_t bytes[BASE58_MAX_BYTES];
    size_t length = 0;
    if (text.length < 2) {
        return STATUS_BAD_ADDRESS;
    }
    struct span digits = span_of(text.bytes + 1, text.length - 1);
    enum status status = STATUS_BAD_ADDRESS;
    bool is_cid = true;
    switch (text.bytes[0]) {
    case 'b':
    case 'B':
        status = base32_decode(bytes, sizeof(bytes), &length, digits);
        break;
    case 'z':
        status = base58_decode(bytes, &length, digits);
        break;
    case '1':
    case 'Q':
        status = base58_decode(bytes, &length, text);
        is_cid = false;
        break;
    default:
        break;
    }
    if (status != STATUS_OK) {
        return STATUS_BAD_ADDRESS;
    }
    struct span decoded = span_of(bytes, length);
    return is_cid ? from_cid(out, decoded) : peer_id_from_bytes(out, decoded);
}

const char *peer_id_print(char out[PEER_ID_TEXT_SIZE], const struct peer_id *id)
{
    char text[BASE58_TEXT_SIZE];
    size_t length = base58_encode(text, peer_id_span(id));
    assert(length < PEER_ID_TEXT_SIZE);
    memcpy(out, text, length + 1);
    return out;
}

struct span peer_id_span(const struct peer_id *id)
{
    return span_of(id->bytes, id->length);
}

bool peer_id_equal(const struct peer_id *a, const struct peer_id *b)
{
    return span_equal(peer_id_span(a), peer_id_span(b));
}

int peer_id_compare(const struct peer_id *a, const struct peer_id *b)
{
    /* The zeros behind a shorter one make its prefix decide, and its length settles a tie. */
    int order = memcmp(a->bytes, b->bytes, PEER_ID_MAX_BYTES);
    return order != 0 ? order : (int)a->length - (int)b->length;
}

uint64_t peer_id_hash(const struct peer_id *id, uint64_t seed)
{
    return XXH3_64bits_withSeed(id->bytes, id->length, seed);
}
