/* SPDX-License-Identifier: MIT */
#pragma once

/* What a switch is made of, and its limits. A limit or time that is 0 has the default named here. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "net/identity/identity.h"
#include "net/muxer/muxer.h"
#include "net/transport/io_loop.h"
#include "net/transport/tls.h"

enum {
    SWITCH_CONNECTIONS_MAX = 150,
    SWITCH_UPGRADES_MAX = 1024,
    SWITCH_STREAMS_MAX = 1024,
    SWITCH_STREAMS_OF_PROTOCOL_MAX = 256,
    SWITCH_NEGOTIATIONS_MAX = 128,
    SWITCH_BUFFERED_BYTES_MAX = 256 * 1024 * 1024,
    SWITCH_UPGRADE_TIMEOUT_MS = 10 * 1000,
    SWITCH_NEGOTIATION_TIMEOUT_MS = 10 * 1000,
    SWITCH_WRITE_TIMEOUT_MS = 60 * 1000,
    SWITCH_DESCRIPTORS_RESERVED = 64 /* for files, listeners and HTTP */
};

struct switch_options {
    const struct identity *BORROWED identity;
    struct io_loop *const *loops; /* the first is the control thread; the array is copied */
    size_t loop_count;
    struct tls_context *BORROWED tls_server; /* for /wss listeners; NULL: none can be made */

    const enum muxer_kind *muxers; /* in order of preference; NULL: yamux, mplex. Copied */
    size_t muxer_count;

    size_t connections_max;    /* upgraded ones, both directions */
    size_t group_max;          /* from one IPv4 address or IPv6 /64; 0: no limit */
    size_t upgrades_max;       /* inbound and unfinished; beyond it the oldest gives way */
    size_t streams_max;        /* of a connection */
    size_t negotiations_max;   /* streams of a connection that have no protocol yet */
    size_t buffered_bytes_max; /* of all connections; beyond it the one with most is closed */

    uint64_t upgrade_timeout_ms;     /* from accept or dial to the agreed muxer */
    uint64_t negotiation_timeout_ms; /* of a stream's protocol */
    uint64_t write_timeout_ms;       /* without the kernel taking a byte of what is sent */
    uint64_t keep_alive_ms;          /* silence before a yamux ping; 0: the muxer's default */
};
