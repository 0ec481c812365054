/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The last messages of the topics that REST clients have subscribed to, until a client fetches them:
 * by pubsub topic or by content topic. Envelopes are held by reference, under a cap in number and one
 * in bytes; beyond them the oldest go, counted as sluice_rest_cache_evicted_total.
 *
 * Thread:    any; a mutex is held for a few pointers at a time, never while something is written out.
 * Ownership: a fetched batch is the caller's.
 */

#include <stdbool.h>
#include <stddef.h>

#include "base/attributes.h"
#include "base/span.h"
#include "base/status.h"
#include "codec/waku_message.h"
#include "queues/envelope.h"

struct rest_cache;

struct rest_cache_options {
    size_t messages_max;
    size_t bytes_max;
    size_t topics_max; /* of each kind */
};

enum rest_topic_kind {
    REST_PUBSUB_TOPIC,
    REST_CONTENT_TOPIC
};

MUST_USE enum status rest_cache_create(
        struct rest_cache **out, const struct rest_cache_options *options);
void rest_cache_destroy(struct rest_cache **cache);

/* Subscribing twice is OK. STATUS_LIMIT_REACHED, STATUS_NO_MEMORY. */
MUST_USE enum status rest_cache_subscribe(
        struct rest_cache *cache, enum rest_topic_kind kind, struct span topic);

/* Its messages go, unless they are held for a topic of the other kind. */
void rest_cache_unsubscribe(struct rest_cache *cache, enum rest_topic_kind kind, struct span topic);
bool rest_cache_is_subscribed(
        struct rest_cache *cache, enum rest_topic_kind kind, struct span topic);
void rest_cache_clear(struct rest_cache *cache);

/* Calls for each topic of the kind, under the mutex. */
void rest_cache_for_each(struct rest_cache *cache, enum rest_topic_kind kind,
        void (*each)(void *context, struct span topic), void *context);

/* Takes a reference where a topic of it is subscribed. */
void rest_cache_add(struct rest_cache *cache, struct envelope *BORROWED envelope);

/* The same for a message without envelope, which is copied. What is no WakuMessage is ignored. */
void rest_cache_add_bytes(struct rest_cache *cache, struct span pubsub_topic, struct span message);

struct rest_cached {
    struct rest_cached *next;
    struct envelope *envelope; /* NULL: bytes */
    size_t charge;
    bool is_wanted[2]; /* by topics of that kind */
    struct span pubsub_topic;
    struct waku_message_view fields; /* rate_limit_proof of an envelope: looked up when written */
    uint8_t bytes[];
};

/*
 * All messages that came since the topic was subscribed, oldest first, which are then out of the cache,
 * also for a topic of the other kind. STATUS_NOT_FOUND: it is not subscribed.
 */
MUST_USE enum status rest_cache_fetch(struct rest_cache *cache, enum rest_topic_kind kind,
        struct span topic, struct rest_cached **out);
void rest_cached_destroy(struct rest_cached **batch);
