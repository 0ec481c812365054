/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Which peers we want to be connected to: static ones are dialled again for ever, with a jittered
 * backoff; others as long as there are outbound slots free. It decides who may stay, as the
 * gatekeeper of the switch, and keeps what is known of peers.
 *
 * A peer of another cluster, or one whose score made us leave it, is not dialled again for a while.
 *
 * Lifetime:  create after the switch and before its loops run, start when they do. stop comes before
 *            switch_stop; destroy after the switch is stopped and before its loops are destroyed.
 * Thread:    create and destroy while no loop runs; all others on any thread. Everything happens on
 *            the control thread of the switch.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/attributes.h"
#include "base/status.h"
#include "net/peer_manager/peer_connections.h"
#include "net/peer_manager/peer_slots.h"
#include "net/peer_manager/peer_store.h"
#include "net/switch/switch.h"

enum {
    PEER_BACKOFF_FIRST_MS = 1000,
    PEER_BACKOFF_MAX_MS = 5 * 60 * 1000,
    PEER_STATIC_BACKOFF_MAX_MS = 60 * 1000,
    PEER_AVOIDED_MS = 10 * 60 * 1000, /* of another cluster, or graylisted */
    PEER_IDENTIFY_MS = 30 * 1000,     /* who has not identified by then counts as a service peer */
    PEER_DIALS_MAX = 8,               /* at once */
    PEER_SAVE_MS = 5 * 60 * 1000
};

struct peer_manager;

/* A number or time that is 0 has the default named here. */
struct peer_manager_options {
    struct net_switch *net_switch;
    const char *relay_service_ratio; /* NULL: "50:50" */
    size_t connections_max;          /* SWITCH_CONNECTIONS_MAX */
    size_t store_capacity;           /* PEER_STORE_CAPACITY */
    uint64_t backoff_first_ms;       /* PEER_BACKOFF_FIRST_MS */
    uint64_t backoff_max_ms;         /* PEER_BACKOFF_MAX_MS */
    uint64_t static_backoff_max_ms;  /* PEER_STATIC_BACKOFF_MAX_MS */
    uint64_t identify_ms;            /* PEER_IDENTIFY_MS */
    uint64_t avoided_ms;             /* PEER_AVOIDED_MS */
    const char *file;                /* peers are kept there; NULL: they are not kept */
};

MUST_USE enum status peer_manager_create(
        struct peer_manager **out, const struct peer_manager_options *options);
void peer_manager_destroy(struct peer_manager **manager);

/* Dials from now on. */
void peer_manager_start(struct peer_manager *manager);

/* No more dials; the peers are saved. */
void peer_manager_stop(struct peer_manager *manager);

/* address ends in /p2p. A static peer is to be connected always. Takes effect a little later. */
MUST_USE enum status peer_manager_add(
        struct peer_manager *manager, const struct multiaddr *address, enum peer_origin origin);

/*
 * Connects to address, which ends in /p2p, now and whatever the slots say, and keeps it as one that
 * was asked for. done comes once, on the control thread, unless the call itself fails.
 */
MUST_USE enum status peer_manager_dial(struct peer_manager *manager,
        const struct multiaddr *address, void (*done)(void *context, enum status status),
        void *context);

/* Forgets the peer and closes its connection. */
MUST_USE enum status peer_manager_remove(struct peer_manager *manager, const struct peer_id *peer);

/* What identify told: connections beyond the slots of their kind are closed. */
void peer_manager_set_kind(struct peer_manager *manager, uint64_t connection, enum peer_kind kind);

/* Likewise, with all of it; kind matters when facts has protocols. Addresses of relay peers are kept. */
void peer_manager_identified(struct peer_manager *manager, uint64_t connection, enum peer_kind kind,
        struct peer_facts *CONSUMED facts);

/* What metadata told; from memory_allocate. */
void peer_manager_set_metadata(
        struct peer_manager *manager, uint64_t connection, struct peer_metadata *CONSUMED metadata);

/* Thread: any. As long as the manager. */
const struct peer_protocols *BORROWED peer_manager_protocols(const struct peer_manager *manager);

/* One of both may be NULL: a peer that is only known, or only connected. Valid in the call. */
struct peer_view {
    const struct peer_record *record;
    const struct peer_connection *connection;
};

/* Calls visit for every peer, connected ones first, then with NULL; on the control thread. */
MUST_USE enum status peer_manager_visit(struct peer_manager *manager,
        void (*visit)(void *context, const struct peer_view *peer), void *context);
