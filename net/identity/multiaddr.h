/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Self-describing addresses: "/ip4/10.0.0.1/tcp/60000/p2p/16Uiu2...", in text and in binary, and
 * the endpoint that a transport dials or listens on.
 *
 * Known components: ip4 ip6 ip6zone dns dns4 dns6 dnsaddr tcp udp tls sni ws wss quic quic-v1 p2p
 * p2p-circuit. An address with another one is STATUS_UNSUPPORTED, a malformed one
 * STATUS_BAD_ADDRESS.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/attributes.h"
#include "base/span.h"
#include "base/status.h"
#include "net/identity/peer_id.h"

enum {
    MULTIADDR_MAX_BYTES = 382,
    MULTIADDR_MAX_COMPONENTS = 16,
    MULTIADDR_TEXT_SIZE = 1024,
    MULTIADDR_NAME_SIZE = 254 /* the longest DNS name and the final zero */
};

/* The binary form; only parse functions make one, so that what it holds is well-formed. */
struct multiaddr {
    uint16_t length;
    uint8_t bytes[MULTIADDR_MAX_BYTES]; /* zero behind length */
};

enum multiaddr_host {
    MULTIADDR_HOST_IP4,
    MULTIADDR_HOST_IP6,
    MULTIADDR_HOST_DNS, /* IPv4 or IPv6 */
    MULTIADDR_HOST_DNS4,
    MULTIADDR_HOST_DNS6
};

/* A TCP endpoint, with or without WebSocket and TLS on it. */
struct multiaddr_endpoint {
    enum multiaddr_host host_kind;
    uint16_t port;
    bool is_websocket;
    bool is_secure; /* wss, or tls before ws */
    bool has_peer;
    uint8_t ip[16];                 /* IP4 (4 bytes), IP6 */
    char host[MULTIADDR_NAME_SIZE]; /* the DNS name, or the IP address as text */
    char zone[16];                  /* of an IPv6 address; empty: none */
    char sni[MULTIADDR_NAME_SIZE];  /* server name for TLS: the sni component, else a DNS host */
    struct peer_id peer;            /* whom to expect there, if has_peer */
};

MUST_USE enum status multiaddr_parse(struct multiaddr *out, struct span text);
MUST_USE enum status multiaddr_from_bytes(struct multiaddr *out, struct span bytes);

/* Writes the text and a final zero. Returns out. */
const char *multiaddr_print(char out[MULTIADDR_TEXT_SIZE], const struct multiaddr *address);

struct span multiaddr_span(const struct multiaddr *address);

/* STATUS_UNSUPPORTED when it is no TCP or WebSocket address: udp, quic, dnsaddr, circuits. */
MUST_USE enum status multiaddr_endpoint(
        struct multiaddr_endpoint *out, const struct multiaddr *address);

/* The inverse, in canonical form. Of host, ip and zone only what host_kind needs is read. */
MUST_USE enum status multiaddr_from_endpoint(
        struct multiaddr *out, const struct multiaddr_endpoint *endpoint);

/* /tls/ws becomes /wss; everything else stays. */
void multiaddr_canonicalize(struct multiaddr *address);

/* Compares canonical forms. */
bool multiaddr_equal(const struct multiaddr *a, const struct multiaddr *b);

/* The last /p2p component. False when there is none. */
bool multiaddr_peer(struct peer_id *out, const struct multiaddr *address);

/* Sets or replaces the /p2p suffix; STATUS_TOO_LARGE when it does not fit. */
MUST_USE enum status multiaddr_set_peer(struct multiaddr *address, const struct peer_id *peer);
