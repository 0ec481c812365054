/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Which peers we want to be connected to: static and added ones are dialled again for ever, with a
 * jittered backoff; others as long as there are outbound slots free. It decides who may stay, as the
 * gatekeeper of the switch.
 *
 * Lifetime:  create after the switch and before its loops run. stop comes before switch_stop; destroy
 *            after the switch is stopped and before its loops are destroyed.
 * Thread:    create and destroy while no loop runs; all others on any thread. Everything happens on
 *            the control thread of the switch.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/attributes.h"
#include "base/status.h"
#include "net/peer_manager/peer_slots.h"
#include "net/peer_manager/peer_store.h"
#include "net/switch/switch.h"

enum {
    PEER_BACKOFF_FIRST_MS = 2 * 1000,
    PEER_BACKOFF_MAX_MS = 5 * 60 * 1000,
    PEER_DIALS_MAX = 8, /* at once */
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
    const char *file;                /* peers are kept there; NULL: they are not kept */
};

MUST_USE enum status peer_manager_create(
        struct peer_manager **out, const struct peer_manager_options *options);
void peer_manager_destroy(struct peer_manager **manager);

/* No more dials; the peers are saved. */
void peer_manager_stop(struct peer_manager *manager);

/* address ends in /p2p. is_static: to be connected always. Takes effect a little later. */
MUST_USE enum status peer_manager_add(
        struct peer_manager *manager, const struct multiaddr *address, bool is_static);

/* Forgets the peer and closes its connection. */
MUST_USE enum status peer_manager_remove(struct peer_manager *manager, const struct peer_id *peer);

/* What identify told: connections beyond the slots of their kind are closed. */
void peer_manager_set_kind(struct peer_manager *manager, uint64_t connection, enum peer_kind kind);

/* Calls visit for every peer known, then with NULL, on the control thread. */
MUST_USE enum status peer_manager_visit(struct peer_manager *manager,
        void (*visit)(void *context, const struct peer_record *peer), void *context);
