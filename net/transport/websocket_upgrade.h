/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The HTTP exchange that turns a connection into a WebSocket (RFC 6455, section 4), both sides,
 * without sockets. Everything a peer sends before the upgrade is at most
 * WEBSOCKET_UPGRADE_BYTES_MAX bytes, or it is refused.
 */

#include <stdbool.h>
#include <stddef.h>

#include "base/attributes.h"
#include "base/span.h"
#include "base/status.h"

enum {
    WEBSOCKET_UPGRADE_BYTES_MAX = 8192
};

struct websocket_upgrade;

MUST_USE enum status websocket_upgrade_create_server(struct websocket_upgrade **out);

/* host as it goes in the Host header, port included. */
MUST_USE enum status websocket_upgrade_create_client(
        struct websocket_upgrade **out, const char *host);
void websocket_upgrade_destroy(struct websocket_upgrade **upgrade);

/*
 * Any cut of the peer's bytes; *consumed tells how many belong to the exchange. An error leaves the
 * answer that a server still owes in the output.
 */
MUST_USE enum status websocket_upgrade_receive(
        struct websocket_upgrade *upgrade, struct span input, size_t *consumed);
bool websocket_upgrade_is_done(const struct websocket_upgrade *upgrade);

/* What is to be sent now; taken as a whole. */
struct span websocket_upgrade_output(const struct websocket_upgrade *upgrade);
void websocket_upgrade_output_taken(struct websocket_upgrade *upgrade);
