/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The switch: listens, dials, upgrades sockets to proven, multiplexed connections, and gives their
 * streams to the protocols registered with it.
 *
 * Each io loop owns the connections given to it for life. The first loop is also the control thread:
 * it accepts, and keeps the table of all connections, so that limits and the choice between two
 * connections to one peer are one thread's decisions.
 *
 * Lifetime:  the loops, the identity, protocols and observers outlive the switch. Order: create, add
 *            protocols and observers, run the loops, listen and dial; stop, run the loops until
 *            switch_is_stopped, join them, destroy.
 * Thread:    create, add_* and destroy while no loop runs; all others on any thread unless they say
 *            otherwise.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/attributes.h"
#include "base/status.h"
#include "net/identity/identity.h"
#include "net/identity/multiaddr.h"
#include "net/switch/connection.h"
#include "net/switch/stream.h"
#include "net/switch/switch_options.h"
#include "net/transport/io_loop.h"

struct net_switch;

/* What a protocol handler registers. */
struct protocol {
    const char *id;
    const struct stream_events *events; /* of inbound streams */
    void *context;                      /* their first stream_context */
    unsigned inbound_max;  /* streams a connection; 0: SWITCH_STREAMS_OF_PROTOCOL_MAX */
    unsigned outbound_max; /* likewise, those we open */
};

/* On the connection's io thread. Members may be NULL. */
struct switch_observer {
    void (*connected)(void *context, struct connection *connection);
    void (*disconnected)(void *context, struct connection *connection, enum close_reason reason);
};

/* A proven peer as the control thread knows it. */
struct switch_peer {
    uint64_t connection;
    struct peer_id peer;
    struct multiaddr remote; /* as it shows on the socket, without /p2p */
    bool is_outbound;
};

/* On the control thread. Members may be NULL. */
struct switch_gatekeeper {
    /* Whether a proven peer may stay: false ends the connection with CLOSE_SLOTS_MAX. */
    bool (*admit)(void *context, const struct switch_peer *peer);
    void (*admitted)(void *context, const struct switch_peer *peer);
    /* Only of those that were admitted. */
    void (*left)(void *context, const struct switch_peer *peer, enum close_reason reason);
};

MUST_USE enum status switch_create(struct net_switch **out, const struct switch_options *options);

/* Only after switch_is_stopped. */
void switch_destroy(struct net_switch **net_switch);

/* STATUS_BUSY when the id is taken. */
MUST_USE enum status switch_add_protocol(
        struct net_switch *net_switch, const struct protocol *protocol);
MUST_USE enum status switch_add_observer(
        struct net_switch *net_switch, const struct switch_observer *observer, void *context);
void switch_set_gatekeeper(
        struct net_switch *net_switch, const struct switch_gatekeeper *gatekeeper, void *context);

/* The ids of all registered protocols, NULL behind the last. Thread: any, once the loops run. */
const char *BORROWED switch_protocol_at(const struct net_switch *net_switch, size_t i);
const struct identity *BORROWED switch_identity(const struct net_switch *net_switch);

/*
 * STATUS_BUSY: the port is taken; STATUS_SYSTEM: errno says why.
 * Thread: before the loops run, or the control thread.
 */
MUST_USE enum status switch_listen(struct net_switch *net_switch, const struct multiaddr *address);

/* What is listened on, with the ports chosen and without /p2p; NULL behind the last. */
const struct multiaddr *BORROWED switch_listen_address(
        const struct net_switch *net_switch, size_t i);

/* The loop that accepts and decides. */
struct io_loop *BORROWED switch_control_loop(const struct net_switch *net_switch);

/*
 * Connects to address; a /p2p in it is the identity expected. A connection to that peer that stands
 * already is the answer. done comes exactly once, on the control thread, unless the call itself
 * fails; reason is meaningful when status is not STATUS_OK.
 */
struct switch_dial {
    struct multiaddr address;
    uint64_t timeout_ms; /* 0: the switch's upgrade timeout */
    void (*done)(void *context, enum status status, uint64_t connection);
    void *context;
};
MUST_USE enum status switch_dial(struct net_switch *net_switch, const struct switch_dial *dial);

/* Does nothing when it is gone already. */
void switch_close_connection(
        struct net_switch *net_switch, uint64_t connection, enum close_reason reason);

/* Runs work(context, connection) on the connection's io thread, with NULL when it is gone. */
MUST_USE enum status switch_run_on_connection(struct net_switch *net_switch, uint64_t connection,
        void (*work)(void *context, struct connection *connection), void *context);

/* Runs work on every open connection, each on its io thread. */
void switch_visit_connections(struct net_switch *net_switch,
        void (*work)(void *context, struct connection *connection), void *context);

enum {
    STREAM_WRITE_PIECES_MAX = 4
};

/*
 * As above, and with NULL at the end of each loop's connections, so often as there are loops.
 * STATUS_NO_MEMORY: it is called for none.
 */
MUST_USE enum status switch_visit_loops(struct net_switch *net_switch,
        void (*work)(void *context, struct connection *connection), void *context);
size_t switch_loop_count(const struct net_switch *net_switch);

/*
 * A write from another thread, made and owned by the caller until it is posted. done is called once
 * on the io thread and owns it again; STATUS_NOT_FOUND: the stream is gone. Pieces that were not
 * taken are not released.
 */
struct stream_write {
    struct io_task task;
    struct net_switch *net_switch;
    struct stream_address to;
    struct muxer_piece pieces[STREAM_WRITE_PIECES_MAX];
    size_t piece_count;
    bool closes_write;
    void (*done)(struct stream_write *CONSUMED write, enum status status);
};
void switch_post_write(struct net_switch *net_switch, struct stream_write *CONSUMED write);

/* Thread: the io thread of that connection. NULL when it is gone. */
struct connection *BORROWED switch_find_connection(
        const struct net_switch *net_switch, uint64_t connection);
struct stream *BORROWED switch_find_stream(
        const struct net_switch *net_switch, struct stream_address address);

/* Closes listeners and connections; the loops have to go on until it is stopped. */
void switch_stop(struct net_switch *net_switch);
bool switch_is_stopped(const struct net_switch *net_switch);

/* Open connections, and those still being upgraded. */
size_t switch_connection_count(const struct net_switch *net_switch);
size_t switch_upgrade_count(const struct net_switch *net_switch);
