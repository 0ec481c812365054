/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * A listening socket. One io thread accepts and gives each descriptor to whoever will own the
 * connection, so that the address stays exclusive and connections spread evenly.
 *
 * Out of descriptors (EMFILE and its kin) it stops listening for LISTENER_BACKOFF_MS, so that the
 * loop does not spin; those who wait stay in the kernel's backlog.
 *
 * Thread: the io thread of its loop.
 */

#include <stdint.h>
#include <sys/socket.h>

#include "base/attributes.h"
#include "base/status.h"
#include "net/identity/multiaddr.h"
#include "net/transport/io_loop.h"

enum {
    LISTENER_BACKLOG = 1024,
    LISTENER_BACKOFF_MS = 250
};

struct listener;

/* Owns the descriptor from here on. */
typedef void listener_accepted(
        void *context, struct listener *listener, int descriptor, const struct sockaddr *remote);

struct listener_options {
    struct io_loop *loop;
    const struct multiaddr_endpoint *endpoint; /* numeric; port 0: any */
    listener_accepted *accepted;
    void *context;
};

/* STATUS_BUSY: the port is taken; STATUS_SYSTEM: errno says why. */
MUST_USE enum status listener_create(struct listener **out, const struct listener_options *options);
void listener_destroy(struct listener **listener);

/* What it is bound to, the chosen port included. */
const struct multiaddr_endpoint *BORROWED listener_endpoint(const struct listener *listener);
