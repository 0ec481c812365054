/* SPDX-License-Identifier: MIT */
#pragma once

/* One component of a multiaddr: its code and value, in text and in binary. */

#include <stddef.h>
#include <stdint.h>

#include "base/attributes.h"
#include "base/span.h"
#include "base/status.h"

/* The numbers are those of the multicodec table. */
enum component_code {
    COMPONENT_IP4 = 4,
    COMPONENT_TCP = 6,
    COMPONENT_IP6 = 41,
    COMPONENT_IP6ZONE = 42,
    COMPONENT_DNS = 53,
    COMPONENT_DNS4 = 54,
    COMPONENT_DNS6 = 55,
    COMPONENT_DNSADDR = 56,
    COMPONENT_UDP = 273,
    COMPONENT_P2P_CIRCUIT = 290,
    COMPONENT_P2P = 421,
    COMPONENT_TLS = 448,
    COMPONENT_SNI = 449,
    COMPONENT_QUIC = 460,
    COMPONENT_QUIC_V1 = 461,
    COMPONENT_WS = 477,
    COMPONENT_WSS = 478
};

enum {
    COMPONENT_VALUE_MAX_BYTES = 253, /* a DNS name */
    COMPONENT_MAX_BYTES = 2 + 2 + COMPONENT_VALUE_MAX_BYTES
};

struct component {
    enum component_code code;
    struct span value; /* binary, without its length */
};

/* Takes one component off the front of rest and checks its value. */
MUST_USE enum status component_read(struct component *out, struct span *rest);

/* The same from text that starts with "/"; the value is written to storage. */
MUST_USE enum status component_read_text(
        struct component *out, uint8_t storage[COMPONENT_VALUE_MAX_BYTES], struct span *rest);

/* The binary form; returns the bytes written, at most COMPONENT_MAX_BYTES. */
size_t component_write(uint8_t *out, const struct component *component);

/* "/name" or "/name/value" and a final zero, for which out has room. Returns the characters. */
size_t component_print(char *out, size_t capacity, const struct component *component);
