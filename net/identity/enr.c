/* SPDX-License-Identifier: MIT */
#include "net/identity/enr.h"

#include <stdbool.h>
#include <string.h>

#include "codec/base64.h"
#include "hash/keccak256.h"
#include "net/identity/rlp.h"
#include "net/identity/secp256k1.h"

enum {
    SIGNATURE_BYTES = 64,
    CONTENT_MAX = ENR_BYTES_MAX - SIGNATURE_BYTES - 2 - RLP_HEAD_MAX,
    ROOM = 2048 /* for what turns out to be too much */
};

static const char prefix[] = "enr:";

/* Writing. */

static uint8_t *write_pair(uint8_t *to, const char *key, struct span value)
{
    return rlp_write_string(rlp_write_string(to, span_of_text(key)), value);
}

/* The first TCP address of IPv4; false when there is none. */
static bool find_plain(struct multiaddr_endpoint *out, const struct enr_options *options)
{
    for (size_t i = 0; i < options->address_count; i++) {
        if (multiaddr_endpoint(out, &options->addresses[i]) == STATUS_OK &&
                out->host_kind == MULTIADDR_HOST_IP4 && !out->is_websocket) {
            return true;
        }
    }
    return false;
}

/* All that ip and tcp do not say, each with its length and without /p2p. Returns the length. */
static size_t list_addresses(uint8_t *out, size_t room, const struct enr_options *options)
{
    struct multiaddr_endpoint plain;
    bool has_plain = find_plain(&plain, options);
    size_t length = 0;
    for (size_t i = 0; i < options->address_count; i++) {
        struct multiaddr_endpoint endpoint;
        struct multiaddr address;
        if (multiaddr_endpoint(&endpoint, &options->addresses[i]) != STATUS_OK) {
            continue;
        }
        endpoint.has_peer = false;
        bool is_plain = has_plain && endpoint.host_kind == MULTIADDR_HOST_IP4 &&
                        !endpoint.is_websocket && endpoint.port == plain.port &&
                        memcmp(endpoint.ip, plain.ip, 4) == 0;
        if (is_plain || multiaddr_from_endpoint(&address, &endpoint) != STATUS_OK ||
                length + 2 + address.length > room) {
            continue;
        }
        out[length++] = (uint8_t)(address.length >> 8);
        out[length++] = (uint8_t)address.length;
        memcpy(out + length, address.bytes, address.length);
        length += address.length;
    }
    return length;
}

static uint8_t *write_shards(uint8_t *to, const struct enr_options *options)
{
    uint8_t list[3 + 2 * ENR_SHARDS_MAX];
    size_t count = options->shard_count < ENR_SHARDS_MAX ? options->shard_count : ENR_SHARDS_MAX;
    if (count == 0) {
        return to;
    }
    list[0] = (uint8_t)(options->cluster_id >> 8);
    list[1] = (uint8_t)options->cluster_id;
    list[2] = (uint8_t)count;
    for (size_t i = 0; i < count; i++) {
        list[3 + 2 * i] = (uint8_t)(options->shards[i] >> 8);
        list[4 + 2 * i] = (uint8_t)options->shards[i];
    }
    return write_pair(to, "rs", span_of(list, 3 + 2 * count));
}

/* Sequence and pairs, in the order of their keys. */
static size_t write_content(uint8_t *out, const struct identity *identity,
        const struct enr_options *options, size_t address_room)
{
    uint8_t addresses[ENR_BYTES_MAX];
    struct multiaddr_endpoint plain;
    bool has_plain = find_plain(&plain, options);
    size_t address_length = list_addresses(addresses, address_room, options);
    const struct public_key *key = identity_public_key(identity);
    uint8_t *end = rlp_write_number(out, options->sequence);
    end = write_pair(end, "id", span_of_text("v4"));
    if (has_plain) {
        end = write_pair(end, "ip", span_of(plain.ip, 4));
    }
    if (address_length > 0) {
        end = write_pair(end, "multiaddrs", span_of(addresses, address_length));
    }
    end = write_shards(end, options);
    end = write_pair(end, "secp256k1", span_of(key->data, key->length));
    if (has_plain) {
        end = rlp_write_number(rlp_write_string(end, span_of_text("tcp")), plain.port);
    }
    end = write_pair(end, "waku2", span_of(&options->capabilities, 1));
    return (size_t)(end - out);
}

/* The hash that is signed: of the content as a list of its own. */
static void hash_content(uint8_t out[KECCAK256_BYTES], struct span content)
{
    uint8_t list[RLP_HEAD_MAX + ROOM];
    uint8_t *end = rlp_write_head(list, content.length, true);
    memcpy(end, content.bytes, content.length);
    keccak256(out, span_of(list, (size_t)(end - list) + content.length));
}

enum status enr_write(
        char out[ENR_TEXT_SIZE], const struct identity *identity, const struct enr_options *options)
{
    uint8_t content[ROOM];
    uint8_t record[RLP_HEAD_MAX + ENR_BYTES_MAX];
    uint8_t hash[KECCAK256_BYTES];
    uint8_t signature[SIGNATURE_BYTES];
    struct enr_options kept = *options;
    if (identity_public_key(identity)->type != KEY_TYPE_SECP256K1) {
        return STATUS_UNSUPPORTED;
    }
    size_t length = write_content(content, identity, &kept, ENR_BYTES_MAX);
    if (length > CONTENT_MAX) {
        length = write_content(content, identity, &kept, 0);
    }
    while (length > CONTENT_MAX && kept.shard_count > 0) {
        kept.shard_count =
                kept.shard_count <= ENR_SHARDS_MAX ? kept.shard_count / 2 : ENR_SHARDS_MAX;
        length = write_content(content, identity, &kept, 0);
    }
    hash_content(hash, span_of(content, length));
    enum status status = identity_sign_digest(identity, hash, signature);
    if (status != STATUS_OK) {
        return status;
    }
    uint8_t *end = rlp_write_head(record, 2 + SIGNATURE_BYTES + length, true);
    end = rlp_write_string(end, span_of(signature, SIGNATURE_BYTES));
    memcpy(end, content, length);
    end += length;
    memcpy(out, prefix, sizeof(prefix) - 1);
    base64_encode_url(out + sizeof(prefix) - 1, span_of(record, (size_t)(end - record)));
    return STATUS_OK;
}

/* Reading. */

struct record {
    struct span signature;
    struct span content; /* what is signed, without its head */
    struct span scheme;
    struct span key;
    struct span ip;
    struct span tcp;
    struct span addresses;
};

static enum status take_pair(struct record *record, struct span *rest)
{
    const struct {
        const char *key;
        struct span *value;
    } known[] = {{"id", &record->scheme}, {"secp256k1", &record->key}, {"ip", &record->ip},
            {"tcp", &record->tcp}, {"multiaddrs", &record->addresses}};
    struct span key;
    struct span value;
    bool is_list;
    enum status status = rlp_read(&key, &is_list, rest);
    if (status != STATUS_OK || is_list) {
        return STATUS_BAD_FIELD;
    }
    status = rlp_read(&value, &is_list, rest);
    for (size_t i = 0; status == STATUS_OK && i < sizeof(known) / sizeof(known[0]); i++) {
        if (!is_list && span_equal(key, span_of_text(known[i].key))) {
            *known[i].value = value;
        }
    }
    return status;
}

static enum status read_record(struct record *out, struct span bytes)
{
    struct span rest;
    struct span sequence;
    bool is_list;
    memset(out, 0, sizeof(*out));
    enum status status = rlp_read(&rest, &is_list, &bytes);
    if (status != STATUS_OK || !is_list || bytes.length > 0) {
        return STATUS_BAD_FIELD;
    }
    status = rlp_read(&out->signature, &is_list, &rest);
    if (status != STATUS_OK || is_list || out->signature.length != SIGNATURE_BYTES) {
        return STATUS_BAD_FIELD;
    }
    out->content = rest;
    status = rlp_read(&sequence, &is_list, &rest);
    if (status != STATUS_OK || is_list) {
        return STATUS_BAD_FIELD;
    }
    while (status == STATUS_OK && rest.length > 0) {
        status = take_pair(out, &rest);
    }
    return status;
}

static enum status check_record(struct public_key *key, const struct record *record)
{
    uint8_t hash[KECCAK256_BYTES];
    if (!span_equal(record->scheme, span_of_text("v4"))) {
        return STATUS_UNSUPPORTED;
    }
    if (record->key.length != SECP256K1_POINT_BYTES) {
        return STATUS_BAD_KEY;
    }
    memset(key, 0, sizeof(*key));
    key->type = KEY_TYPE_SECP256K1;
    key->length = SECP256K1_POINT_BYTES;
    memcpy(key->data, record->key.bytes, record->key.length);
    hash_content(hash, record->content);
    return public_key_verify_digest(key, hash, record->signature);
}

/* ip and tcp, or the first of multiaddrs that can be dialled. */
static enum status address_of(struct multiaddr *out, const struct record *record)
{
    struct multiaddr_endpoint endpoint = {.host_kind = MULTIADDR_HOST_IP4};
    struct span rest = record->addresses;
    if (record->ip.length == 4 && record->tcp.length > 0 && record->tcp.length <= 2) {
        memcpy(endpoint.ip, record->ip.bytes, 4);
        for (size_t i = 0; i < record->tcp.length; i++) {
            endpoint.port = (uint16_t)(endpoint.port << 8 | record->tcp.bytes[i]);
        }
        return multiaddr_from_endpoint(out, &endpoint);
    }
    while (rest.length >= 2) {
        size_t length = (size_t)rest.bytes[0] << 8 | rest.bytes[1];
        rest = span_of(rest.bytes + 2, rest.length - 2);
        if (length > rest.length) {
            return STATUS_BAD_FIELD;
        }
        if (multiaddr_from_bytes(out, span_of(rest.bytes, length)) == STATUS_OK &&
                multiaddr_endpoint(&endpoint, out) == STATUS_OK) {
            return STATUS_OK;
        }
        rest = span_of(rest.bytes + length, rest.length - length);
    }
    return STATUS_NOT_FOUND;
}

enum status enr_address(struct multiaddr *out, struct span text)
{
    uint8_t bytes[ENR_BYTES_MAX + 3];
    struct record record;
    struct public_key key;
    struct peer_id peer;
    size_t head = sizeof(prefix) - 1;
    size_t length;
    if (text.length <= head || text.length >= ENR_TEXT_SIZE ||
            memcmp(text.bytes, prefix, head) != 0) {
        return STATUS_BAD_FIELD;
    }
    enum status status =
            base64_decode(bytes, &length, span_of(text.bytes + head, text.length - head));
    if (status == STATUS_OK) {
        status = read_record(&record, span_of(bytes, length));
    }
    if (status == STATUS_OK) {
        status = check_record(&key, &record);
    }
    if (status == STATUS_OK) {
        status = address_of(out, &record);
    }
    if (status != STATUS_OK) {
        return status;
    }
    peer_id_from_public_key(&peer, &key);
    return multiaddr_set_peer(out, &peer);
}
