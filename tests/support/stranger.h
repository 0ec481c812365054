/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * A libp2p peer that says on its relay stream whatever bytes a test gives it, and reads what it gets
 * or does not.
 */

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/span.h"
#include "net/identity/identity.h"
#include "net/protocols/exchange.h"
#include "tools/sluice/net_host.h"

struct stranger_options {
    const struct identity *identity; /* NULL: a new one */
    const char *muxer;               /* NULL: yamux */
    bool reads_nothing;
    const struct span *metadata; /* what it answers; NULL: it has no such protocol */
};

struct stranger {
    struct stranger_options options;
    struct identity *own_identity;
    struct net_host *host;
    struct exchange_server metadata;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    struct stream_address stream; /* ours; stream 0: not open */
    uint64_t connection;
    unsigned connected_count;
    unsigned disconnected_count;
    size_t received_bytes;
    unsigned answered_count; /* questions for its metadata */
};

/* Dials address; returns when the relay stream is agreed or the connection ended. Fails the test after a minute. */
void stranger_start(
        struct stranger *stranger, const struct stranger_options *options, const char *address);

/* Ends without a word. */
void stranger_stop(struct stranger *stranger);

/* Queues the bytes on the relay stream, without a length before them. */
void stranger_say(struct stranger *stranger, struct span bytes);

/* A whole RPC: a subscription to topic with a GRAFT, and a message on it. */
void stranger_subscribe(struct stranger *stranger, const char *topic);
void stranger_publish(struct stranger *stranger, const char *topic, struct span message);

void stranger_wait_disconnected(struct stranger *stranger);
void stranger_wait_received(struct stranger *stranger, size_t bytes);
void stranger_wait_answered(struct stranger *stranger); /* its metadata, at least once */
size_t stranger_received(struct stranger *stranger);
bool stranger_is_connected(struct stranger *stranger);
