/* SPDX-License-Identifier: MIT */
#include "net/identity/multiaddr.h"

#include <string.h>

#include "net/identity/multiaddr_component.h"

static enum status append(struct multiaddr *address, const struct component *component)
{
    uint8_t encoded[COMPONENT_MAX_BYTES];
    size_t length = component_write(encoded, component);
    if (length > MULTIADDR_MAX_BYTES - (size_t)address->length) {
        return STATUS_TOO_LARGE;
    }
    memcpy(address->bytes + address->length, encoded, length);
    address->length = (uint16_t)(address->length + length);
    return STATUS_OK;
}

static void clear(struct multiaddr *address)
{
    memset(address, 0, sizeof(*address));
}

/* Reads components from text or from binary until rest is empty. */
static enum status read_all(struct multiaddr *out, struct span rest, bool is_text)
{
    size_t count = 0;
    clear(out);
    do {
        struct component component;
        uint8_t storage[COMPONENT_VALUE_MAX_BYTES];
        enum status status = is_text ? component_read_text(&component, storage, &rest)
                                     : component_read(&component, &rest);
        if (status == STATUS_OK) {
            status = ++count <= MULTIADDR_MAX_COMPONENTS ? append(out, &component)
                                                         : STATUS_TOO_LARGE;
        }
        if (status != STATUS_OK) {
            clear(out);
            return status;
        }
    } while (rest.length > 0);
    return STATUS_OK;
}

enum status multiaddr_parse(struct multiaddr *out, struct span text)
{
    if (text.length > 1 && text.bytes[text.length - 1] == '/') {
        text.length--;
    }
    return read_all(out, text, true);
}

enum status multiaddr_from_bytes(struct multiaddr *out, struct span bytes)
{
    return read_all(out, bytes, false);
}

/* The next component of a well-formed address. False at its end. */
static bool next(struct component *out, struct span *rest)
{
    return rest->length > 0 && component_read(out, rest) == STATUS_OK;
}

const char *multiaddr_print(char out[MULTIADDR_TEXT_SIZE], const struct multiaddr *address)
{
    struct span rest = multiaddr_span(address);
    struct component component;
    size_t length = 0;
    out[0] = '\0';
    while (next(&component, &rest)) {
        length += component_print(out + length, MULTIADDR_TEXT_SIZE - length, &component);
    }
    return out;
}

struct span multiaddr_span(const struct multiaddr *address)
{
    return span_of(address->bytes, address->length);
}

void multiaddr_canonicalize(struct multiaddr *address)
{
    struct multiaddr old = *address;
    struct span rest = multiaddr_span(&old);
    struct component component;
    clear(address);
    while (next(&component, &rest)) {
        struct span behind = rest;
        struct component following;
        if (component.code == COMPONENT_TLS && next(&following, &behind) &&
                following.code == COMPONENT_WS) {
            component.code = COMPONENT_WSS;
            rest = behind;
        }
        if (append(address, &component) != STATUS_OK) {
            break; /* cannot be: nothing becomes longer */
        }
    }
}

bool multiaddr_equal(const struct multiaddr *a, const struct multiaddr *b)
{
    struct multiaddr first = *a;
    struct multiaddr second = *b;
    multiaddr_canonicalize(&first);
    multiaddr_canonicalize(&second);
    return span_equal(multiaddr_span(&first), multiaddr_span(&second));
}

bool multiaddr_peer(struct peer_id *out, const struct multiaddr *address)
{
    struct span rest = multiaddr_span(address);
    struct component component;
    bool found = false;
    while (next(&component, &rest)) {
        if (component.code == COMPONENT_P2P) {
            found = peer_id_from_bytes(out, component.value) == STATUS_OK;
        }
    }
    return found;
}

/* The length without a /p2p at the very end. */
static uint16_t length_without_peer(const struct multiaddr *address)
{
    struct span rest = multiaddr_span(address);
    struct component component;
    size_t start = 0;
    bool ends_with_peer = false;
    while (rest.length > 0) {
        start = address->length - rest.length;
        if (!next(&component, &rest)) {
            break;
        }
        ends_with_peer = component.code == COMPONENT_P2P;
    }
    return ends_with_peer ? (uint16_t)start : address->length;
}

enum status multiaddr_set_peer(struct multiaddr *address, const struct peer_id *peer)
{
    struct component component = {.code = COMPONENT_P2P, .value = peer_id_span(peer)};
    struct multiaddr changed = {.length = length_without_peer(address)};
    memcpy(changed.bytes, address->bytes, changed.length);
    enum status status = append(&changed, &component);
    if (status == STATUS_OK) {
        *address = changed;
    }
    return status;
}
