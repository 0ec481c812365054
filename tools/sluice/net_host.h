/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * A switch with ping and identify on threads of its own: what programs and tests need to talk libp2p
 * without a whole node around it.
 *
 * Lifetime: create, register more with net_host_switch, start, ..., destroy, which stops it.
 * Thread:   the one that created it.
 */

#include <stdbool.h>
#include <stddef.h>

#include "base/attributes.h"
#include "base/metrics.h"
#include "base/status.h"
#include "net/protocols/identify.h"
#include "net/switch/switch.h"

enum {
    NET_HOST_THREADS_MAX = 16
};

struct net_host_options {
    const struct identity *BORROWED identity;
    unsigned io_threads; /* 0: one */
    const char *agent;   /* NULL: the default */

    /* identity and loops are filled in. */
    struct switch_options limits;

    void (*identified)(
            void *context, struct connection *connection, const struct identify_info *info);
    void *context;
};

struct net_host;

MUST_USE enum status net_host_create(struct net_host **out, const struct net_host_options *options);
struct net_switch *BORROWED net_host_switch(const struct net_host *host);
struct identify *BORROWED net_host_identify(const struct net_host *host);

/* Before start. The text of a multiaddr. */
MUST_USE enum status net_host_listen(struct net_host *host, const char *address);

MUST_USE enum status net_host_start(struct net_host *host);

/* What its threads have counted. */
uint64_t net_host_metric(const struct net_host *host, enum metric metric);

/* Closes everything in an orderly way and joins the threads. */
void net_host_destroy(struct net_host **host);
