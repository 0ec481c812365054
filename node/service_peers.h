/* SPDX-License-Identifier: MIT */
#pragma once

/* The peers that options name for a service (--storenode, --filternode, --lightpushnode), in texts. */

#include <stddef.h>

#include "base/options.h"
#include "net/identity/multiaddr.h"

enum {
    SERVICE_PEERS_MAX = 6
};

struct service_peer {
    const char *protocol;              /* that it is asked by; a constant */
    char address[MULTIADDR_TEXT_SIZE]; /* without /p2p */
};

struct service_peers {
    size_t count;
    struct service_peer peers[SERVICE_PEERS_MAX];
};

/* An option that is malformed is left out: who makes the network of it refuses it. */
void service_peers_read(struct service_peers *out, const struct options *options);
