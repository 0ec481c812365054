/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * /ipfs/id/1.0.0 and /ipfs/id/push/1.0.0, both ways: every connection asks who the other side is as
 * soon as it stands, answers when asked, and takes what is pushed to it.
 *
 * Lifetime:  create before the loops run, destroy after the switch.
 * Thread:    identify_push on any; everything else happens on the connections' io threads.
 */

#include <stddef.h>

#include "base/attributes.h"
#include "base/span.h"
#include "base/status.h"
#include "net/protocols/identify_message.h"
#include "net/switch/switch.h"

#define IDENTIFY_PROTOCOL_ID      "/ipfs/id/1.0.0"
#define IDENTIFY_PUSH_PROTOCOL_ID "/ipfs/id/push/1.0.0"

struct identify;

struct identify_options {
    struct net_switch *net_switch;
    const char *agent;            /* NULL: "sluice/" and the version */
    const char *protocol_version; /* NULL: "ipfs/0.1.0" */
    /* Announced besides what is listened on; the array is copied. */
    const struct multiaddr *extra_addresses;
    size_t extra_address_count;
    bool only_extra_addresses; /* what is listened on is not announced */
    /* A peer has said who it is, or that this has changed. May be NULL. info is valid in the call. */
    void (*identified)(
            void *context, struct connection *connection, const struct identify_info *info);
    void *context;
};

/* Registers both protocols and an observer with the switch. */
MUST_USE enum status identify_create(struct identify **out, const struct identify_options *options);
void identify_destroy(struct identify **identify);

/* Tells every peer that has the push protocol, after protocols or addresses have changed. */
void identify_push(struct identify *identify);
