/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * A relay peer with as few parts as a load generator needs: one connection with an identity of its
 * own, which announces topics, sends frames that are ready made, and hands over what arrives. It
 * validates nothing, hashes nothing unless it asks for offers, and has no mesh but its one peer, so
 * that what it costs is not mistaken for the node at its other end. Many share one io loop.
 *
 * Lifetime: create, dial, ..., stop, run the loop until is_stopped, destroy. The loop and what the
 *           options point to outlive it.
 * Thread:   the loop's, also for events.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/attributes.h"
#include "base/span.h"
#include "base/status.h"
#include "net/transport/io_loop.h"

enum {
    LIGHT_PEER_TOPICS_MAX = 64,
    LIGHT_PEER_SHARDS_MAX = LIGHT_PEER_TOPICS_MAX
};

struct light_peer;

/* A message of one of the topics, as it came; both spans are valid in the call only. */
struct light_message {
    struct span topic;
    struct span bytes; /* the serialised WakuMessage */
};

/* Members may be NULL. */
struct light_peer_events {
    /* The other side takes part in all topics and can be written to; a receiver has sent GRAFT. */
    void (*ready)(void *context, struct light_peer *peer);
    void (*message)(void *context, struct light_peer *peer, const struct light_message *message);
    void (*writable)(void *context, struct light_peer *peer);
    /* No connection, or none any more; once. reason is a sentence. */
    void (*ended)(void *context, struct light_peer *peer, const char *reason);
};

struct light_peer_options {
    struct io_loop *BORROWED loop;
    const struct span *BORROWED topics; /* at most LIGHT_PEER_TOPICS_MAX */
    size_t topic_count;
    uint16_t cluster; /* for metadata, with the topics' positions as shards */
    bool receives;    /* subscribes and grafts; else it only publishes */
    bool asks;        /* for messages that are offered when its peer has pruned it: hashes each */
    size_t max_message_bytes;
    const struct light_peer_events *BORROWED events;
    void *context;
};

MUST_USE enum status light_peer_create(
        struct light_peer **out, const struct light_peer_options *options);

/* address: the text of a multiaddr. `ready` or `ended` follows. */
MUST_USE enum status light_peer_dial(struct light_peer *peer, const char *address);

/*
 * A whole frame with its length prefix, from memory_allocate. On failure it is still the caller's:
 * STATUS_CLOSED without a stream, STATUS_LIMIT_REACHED at the connection's cap.
 */
MUST_USE enum status light_peer_send(
        struct light_peer *peer, uint8_t *CONSUMED frame, size_t length);

/* Bytes given to send and not yet encrypted. */
size_t light_peer_queued(const struct light_peer *peer);
bool light_peer_is_ready(const struct light_peer *peer);

/* Messages asked for because they were only offered. */
uint64_t light_peer_asked(const struct light_peer *peer);

void light_peer_stop(struct light_peer *peer);
bool light_peer_is_stopped(const struct light_peer *peer);
void light_peer_destroy(struct light_peer **peer);
