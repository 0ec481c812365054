/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * A lane's messages of the last heartbeats: told of in IHAVE while young, given out to IWANT a limited
 * number of times to each peer.
 *
 * Ownership: holds one reference to each envelope, under a cap of its own: the oldest go first.
 * Thread:    one (the lane's).
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/attributes.h"
#include "base/status.h"
#include "queues/envelope.h"

struct message_cache_options {
    unsigned history;    /* 6 heartbeats a message is kept */
    unsigned gossip;     /* 3 of them in which it is told of */
    size_t bytes_max;    /* 32 MiB of messages with all that they pin */
    unsigned asks_max;   /* 3 times to each peer */
    unsigned askers_max; /* 1,024 peers a message; they count in bytes */
};

struct message_cache;

MUST_USE enum status message_cache_create(
        struct message_cache **out, const struct message_cache_options *options);
void message_cache_destroy(struct message_cache **cache);

/* Takes a reference of its own; not of what is larger than the whole cache, or when memory lacks. */
void message_cache_add(struct message_cache *cache, struct envelope *envelope);

/*
 * Messages with that id that the peer may still have (the same bytes on two topics have one id): call
 * with *step = 0 until NULL. Each one given out counts as asked for by the peer.
 */
struct envelope *BORROWED message_cache_ask(struct message_cache *cache,
        const uint8_t id[MESSAGE_ID_BYTES], uint64_t peer, size_t *step);

bool message_cache_contains(
        const struct message_cache *cache, const struct topic *topic, const uint8_t *id);

/* Ids of the topic that are to be told of, newest first: at most max into out; returns how many. */
size_t message_cache_list(const struct message_cache *cache, const struct topic *topic,
        uint8_t (*out)[MESSAGE_ID_BYTES], size_t max);

/* A heartbeat has passed. */
void message_cache_shift(struct message_cache *cache);

size_t message_cache_count(const struct message_cache *cache);
size_t message_cache_bytes(const struct message_cache *cache);

/* Messages that left before their time for the cap. */
uint64_t message_cache_evicted(const struct message_cache *cache);
