/* SPDX-License-Identifier: MIT */
#pragma once

/* Where a transport listens or dials: the part of a multiaddr below /p2p, taken apart. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "base/attributes.h"
#include "base/span.h"
#include "base/status.h"
#include "net/identity/multiaddr.h"

enum endpoint_host {
    ENDPOINT_IP4,
    ENDPOINT_IP6,
    ENDPOINT_DNS4,
    ENDPOINT_DNS6,
    ENDPOINT_DNS
};

enum {
    ENDPOINT_HOST_MAX = 254, /* with its NUL */
    ENDPOINT_TEXT_MAX = 320
};

struct endpoint {
    enum endpoint_host kind;
    char host[ENDPOINT_HOST_MAX]; /* a number or a name */
    uint16_t port;
    bool is_websocket;
    bool is_tls;
};

/*
 * Takes /ip4|ip6|dns4|dns6|dns/HOST/tcp/PORT, then nothing, /ws, /wss or /tls/ws, then nothing or
 * /p2p/ID. STATUS_UNSUPPORTED for other transports.
 */
MUST_USE enum status endpoint_from_multiaddr(
        struct endpoint *out, const struct multiaddr *address);

/* The multiaddr text of a socket address, with the suffix of transport's kind. */
void endpoint_format_address(
        char *out, size_t capacity, const struct sockaddr *address, const struct endpoint *transport);

/* The socket address of a numeric endpoint; STATUS_BAD_ADDRESS for a name. */
MUST_USE enum status endpoint_to_address(
        struct sockaddr_storage *out, const struct endpoint *endpoint);
