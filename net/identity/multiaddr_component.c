/* SPDX-License-Identifier: MIT */
#include "net/identity/multiaddr_component.h"

#include <arpa/inet.h>
#include <assert.h>
#include <net/if.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "codec/varint.h"
#include "net/identity/peer_id.h"

enum value_kind {
    VALUE_NONE,
    VALUE_IP4,
    VALUE_IP6,
    VALUE_PORT,
    VALUE_ZONE,
    VALUE_NAME,
    VALUE_PEER
};

enum {
    IP4_BYTES = 4,
    IP6_BYTES = 16,
    PORT_BYTES = 2,
    PORT_MAX_DIGITS = 5
};

struct protocol {
    enum component_code code;
    enum value_kind kind;
    const char *name;
};

/* The first name of a code is the one that is printed. */
static const struct protocol protocols[] = {
        {COMPONENT_IP4, VALUE_IP4, "ip4"},
        {COMPONENT_TCP, VALUE_PORT, "tcp"},
        {COMPONENT_IP6, VALUE_IP6, "ip6"},
        {COMPONENT_IP6ZONE, VALUE_ZONE, "ip6zone"},
        {COMPONENT_DNS, VALUE_NAME, "dns"},
        {COMPONENT_DNS4, VALUE_NAME, "dns4"},
        {COMPONENT_DNS6, VALUE_NAME, "dns6"},
        {COMPONENT_DNSADDR, VALUE_NAME, "dnsaddr"},
        {COMPONENT_UDP, VALUE_PORT, "udp"},
        {COMPONENT_P2P_CIRCUIT, VALUE_NONE, "p2p-circuit"},
        {COMPONENT_P2P, VALUE_PEER, "p2p"},
        {COMPONENT_P2P, VALUE_PEER, "ipfs"},
        {COMPONENT_TLS, VALUE_NONE, "tls"},
        {COMPONENT_SNI, VALUE_NAME, "sni"},
        {COMPONENT_QUIC, VALUE_NONE, "quic"},
        {COMPONENT_QUIC_V1, VALUE_NONE, "quic-v1"},
        {COMPONENT_WS, VALUE_NONE, "ws"},
        {COMPONENT_WSS, VALUE_NONE, "wss"},
};

enum {
    PROTOCOL_COUNT = sizeof(protocols) / sizeof(protocols[0])
};

static const struct protocol *find_by_code(uint64_t code)
{
    for (size_t i = 0; i < PROTOCOL_COUNT; i++) {
        if ((uint64_t)protocols[i].code == code) {
            return &protocols[i];
        }
    }
    return NULL;
}

static const struct protocol *find_by_name(struct span name)
{
    for (size_t i = 0; i < PROTOCOL_COUNT; i++) {
        if (span_equal(span_of_text(protocols[i].name), name)) {
            return &protocols[i];
        }
    }
    return NULL;
}

static bool has_length_prefix(enum value_kind kind)
{
    return kind == VALUE_NAME || kind == VALUE_ZONE || kind == VALUE_PEER;
}

static size_t fixed_size(enum value_kind kind)
{
    switch (kind) {
    case VALUE_IP4:
        return IP4_BYTES;
    case VALUE_IP6:
        return IP6_BYTES;
    case VALUE_PORT:
        return PORT_BYTES;
    case VALUE_NONE:
    case VALUE_ZONE:
    case VALUE_NAME:
    case VALUE_PEER:
        break;
    }
    return 0;
}

/* Names go into logs and to the resolver: letters, digits and three signs, nothing else. */
static bool is_name(struct span value, size_t max)
{
    if (value.length == 0 || value.length > max) {
        return false;
    }
    for (size_t i = 0; i < value.length; i++) {
        uint8_t c = value.bytes[i];
        bool is_alphanumeric =
                (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
        if (!is_alphanumeric && c != '-' && c != '.' && c != '_') {
            return false;
        }
    }
    return true;
}

static bool is_valid_value(enum value_kind kind, struct span value)
{
    struct peer_id id;
    switch (kind) {
    case VALUE_ZONE:
        return is_name(value, IF_NAMESIZE - 1);
    case VALUE_NAME:
        return is_name(value, COMPONENT_VALUE_MAX_BYTES);
    case VALUE_PEER:
        return peer_id_from_bytes(&id, value) == STATUS_OK;
    case VALUE_NONE:
    case VALUE_IP4:
    case VALUE_IP6:
    case VALUE_PORT:
        break;
    }
    return value.length == fixed_size(kind);
}

static struct span take(struct span *rest, size_t length)
{
    struct span taken = span_of(rest->bytes, length);
    rest->bytes += length;
    rest->length -= length;
    return taken;
}

enum status component_read(struct component *out, struct span *rest)
{
    uint64_t code;
    if (varint_read(&code, rest) != STATUS_OK) {
        return STATUS_BAD_ADDRESS;
    }
    const struct protocol *protocol = find_by_code(code);
    if (protocol == NULL) {
        return STATUS_UNSUPPORTED;
    }
    uint64_t length = fixed_size(protocol->kind);
    if (has_length_prefix(protocol->kind) && varint_read(&length, rest) != STATUS_OK) {
        return STATUS_BAD_ADDRESS;
    }
    if (length > rest->length) {
        return STATUS_BAD_ADDRESS;
    }
    out->code = protocol->code;
    out->value = take(rest, (size_t)length);
    return is_valid_value(protocol->kind, out->value) ? STATUS_OK : STATUS_BAD_ADDRESS;
}

/* Takes "/word" off the front. False when there is no slash or nothing behind it. */
static bool take_word(struct span *out, struct span *rest)
{
    if (rest->length < 2 || rest->bytes[0] != '/') {
        return false;
    }
    take(rest, 1);
    const uint8_t *slash = memchr(rest->bytes, '/', rest->length);
    *out = take(rest, slash != NULL ? (size_t)(slash - rest->bytes) : rest->length);
    return out->length > 0;
}

static bool parse_ip(uint8_t *out, int family, struct span word)
{
    char text[INET6_ADDRSTRLEN];
    if (word.length >= sizeof(text) || memchr(word.bytes, '\0', word.length) != NULL) {
        return false;
    }
    memcpy(text, word.bytes, word.length);
    text[word.length] = '\0';
    return inet_pton(family, text, out) == 1;
}

static bool parse_port(uint8_t out[PORT_BYTES], struct span word)
{
    unsigned port = 0;
    for (size_t i = 0; i < word.length; i++) {
        if (word.bytes[i] < '0' || word.bytes[i] > '9') {
            return false;
        }
        port = port * 10 + (unsigned)(word.bytes[i] - '0');
        if (port > UINT16_MAX) {
            return false;
        }
    }
    out[0] = (uint8_t)(port >> 8);
    out[1] = (uint8_t)port;
    return word.length <= PORT_MAX_DIGITS;
}

static bool parse_peer(uint8_t *out, size_t *length, struct span word)
{
    struct peer_id id;
    if (peer_id_parse(&id, word) != STATUS_OK) {
        return false;
    }
    *length = id.length;
    memcpy(out, id.bytes, id.length);
    return true;
}

static bool parse_name(uint8_t *out, size_t *length, struct span word)
{
    if (word.length > COMPONENT_VALUE_MAX_BYTES) {
        return false;
    }
    *length = word.length;
    memcpy(out, word.bytes, word.length);
    return true;
}

/* Writes the binary value of word to out and its length to *length. */
static bool parse_value(uint8_t *out, size_t *length, enum value_kind kind, struct span word)
{
    *length = fixed_size(kind);
    switch (kind) {
    case VALUE_IP4:
        return parse_ip(out, AF_INET, word);
    case VALUE_IP6:
        return parse_ip(out, AF_INET6, word);
    case VALUE_PORT:
        return parse_port(out, word);
    case VALUE_PEER:
        return parse_peer(out, length, word);
    case VALUE_ZONE:
    case VALUE_NAME:
        return parse_name(out, length, word);
    case VALUE_NONE:
        break;
    }
    return true;
}

enum status component_read_text(
        struct component *out, uint8_t storage[COMPONENT_VALUE_MAX_BYTES], struct span *rest)
{
    struct span word;
    if (!take_word(&word, rest)) {
        return STATUS_BAD_ADDRESS;
    }
    const struct protocol *protocol = find_by_name(word);
    if (protocol == NULL) {
        return STATUS_UNSUPPORTED;
    }
    if (protocol->kind != VALUE_NONE && !take_word(&word, rest)) {
        return STATUS_BAD_ADDRESS;
    }
    size_t length;
    if (!parse_value(storage, &length, protocol->kind, word)) {
        return STATUS_BAD_ADDRESS;
    }
    out->code = protocol->code;
    out->value = span_of(storage, length);
    return is_valid_value(protocol->kind, out->value) ? STATUS_OK : STATUS_BAD_ADDRESS;
}

size_t component_write(uint8_t *out, const struct component *component)
{
    const struct protocol *protocol = find_by_code(component->code);
    uint8_t *end = varint_write(out, component->code);
    if (has_length_prefix(protocol->kind)) {
        end = varint_write(end, component->value.length);
    }
    if (component->value.length > 0) {
        memcpy(end, component->value.bytes, component->value.length);
    }
    return (size_t)(end - out) + component->value.length;
}

static void print_peer(char out[PEER_ID_TEXT_SIZE], struct span value)
{
    struct peer_id id;
    bool is_peer = peer_id_from_bytes(&id, value) == STATUS_OK;
    assert(is_peer);
    peer_id_print(out, &id);
}

size_t component_print(char *out, size_t capacity, const struct component *component)
{
    const struct protocol *protocol = find_by_code(component->code);
    const uint8_t *bytes = component->value.bytes;
    char value[COMPONENT_VALUE_MAX_BYTES + 1] = "";
    switch (protocol->kind) {
    case VALUE_IP4:
        inet_ntop(AF_INET, bytes, value, sizeof(value));
        break;
    case VALUE_IP6:
        inet_ntop(AF_INET6, bytes, value, sizeof(value));
        break;
    case VALUE_PORT:
        snprintf(value, sizeof(value), "%u", (unsigned)bytes[0] << 8 | bytes[1]);
        break;
    case VALUE_PEER:
        print_peer(value, component->value);
        break;
    case VALUE_ZONE:
    case VALUE_NAME:
        memcpy(value, bytes, component->value.length);
        value[component->value.length] = '\0';
        break;
    case VALUE_NONE:
        break;
    }
    const char *separator = protocol->kind == VALUE_NONE ? "" : "/";
    int length = snprintf(out, capacity, "/%s%s%s", protocol->name, separator, value);
    assert(length > 0 && (size_t)length < capacity);
    return (size_t)length;
}
