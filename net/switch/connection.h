/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * A connection to a proven peer, with its muxer: what protocol handlers may ask of it.
 *
 * Ownership:  the switch owns it; it is valid from `connected` to `disconnected` of the observers.
 * Thread:     its io thread. Other threads go through net/switch/switch.h with its id.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/attributes.h"
#include "base/status.h"
#include "net/identity/multiaddr.h"
#include "net/identity/peer_id.h"
#include "net/identity/public_key.h"
#include "net/switch/close_reason.h"
#include "net/switch/stream.h"

struct net_switch;
struct connection;

/* Never 0 and never used again. */
uint64_t connection_id(const struct connection *connection);
struct net_switch *BORROWED connection_switch(const struct connection *connection);
struct io_loop *BORROWED connection_loop(const struct connection *connection);
const struct peer_id *BORROWED connection_peer(const struct connection *connection);
bool connection_is_outbound(const struct connection *connection);

/*
 * In which order the control thread admitted connections, from 1: of two to one peer the higher one
 * stays. 0 before it is admitted.
 */
uint64_t connection_admission(const struct connection *connection);

/* "/noise", "/yamux/1.0.0"; the latter NULL before one is agreed. */
const char *BORROWED connection_security(const struct connection *connection);
const char *BORROWED connection_muxer(const struct connection *connection);

/* What the peer calls itself; "" before identify has been exchanged. */
const char *BORROWED connection_agent(const struct connection *connection);
void connection_set_agent(struct connection *connection, struct span agent);

/* The other side's address as it shows on the socket, without /p2p. */
void connection_remote(const struct connection *connection, struct multiaddr *out);
void connection_local(const struct connection *connection, struct multiaddr *out);

/* Of the last ping of the muxer, UINT64_MAX: not measured. */
uint64_t connection_round_trip_ns(const struct connection *connection);

size_t connection_stream_count(const struct connection *connection);

struct stream_request {
    const char *const *protocols; /* in order of preference; the names outlive the stream */
    size_t protocol_count;
    const struct stream_events *events;
    void *context;
    uint64_t timeout_ms; /* for the agreement; 0: the switch's default */
};

/*
 * `opened` or `closed` follows. STATUS_LIMIT_REACHED: the protocol's outbound limit or the
 * connection's; no event then. *out may be NULL.
 */
MUST_USE enum status connection_open_stream(struct connection *connection,
        const struct stream_request *request, struct stream **BORROWED out);

/*
 * Once what is queued has left, as far as the peer's windows allow, or after a few seconds;
 * `disconnected` comes then. Until that nothing more is received, and no stream can be opened.
 */
void connection_close(struct connection *connection, enum close_reason reason);
