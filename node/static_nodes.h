/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Peers that the node stays connected to: each is dialled at the start, and again, later and later,
 * whenever there is no connection to it.
 *
 * Lifetime: create before the loops run, start once they do; destroy when the switch has stopped and
 *           the control loop's thread has ended, before the loop.
 */

#include <stddef.h>

#include "base/attributes.h"
#include "base/status.h"
#include "net/identity/multiaddr.h"
#include "net/switch/switch.h"

struct static_nodes;

MUST_USE enum status static_nodes_create(struct static_nodes **out, struct net_switch *net_switch,
        const struct multiaddr addresses[], size_t count);
void static_nodes_start(struct static_nodes *nodes);
void static_nodes_destroy(struct static_nodes **nodes);
