/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The live feed: server-sent events of messages and of what happens to the node, to clients that stay
 * connected. Each client has a queue that is bounded in bytes; what it has no room for is dropped,
 * counted, and the client is told how many it missed ("dropped").
 *
 *   event: message   {"pubsubTopic","contentTopic","messageHash","timestamp","received","version",
 *                    "ephemeral","size"[,"payload","meta"]}; payload and meta in base64, times in
 *                    nanoseconds since 1970, size is the payload's
 *   event: NAME      of others: JSON as given
 *   event: dropped   {"count": events that this client did not get since the last one}
 *
 * A client asks by the query: kinds=message,peer,health,... (all when absent), content-topic and
 * pubsub-topic (lists joined by ','; all when absent), shard=N (of any cluster), payload=true.
 *
 * Progress:   without clients of a kind, a call costs one load. No envelope is held.
 * Lifetime:   destroy after all who push have ended, before the servers of its clients.
 * Thread:     open on a server's thread, all else on any.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "admin/http_request.h"
#include "base/attributes.h"
#include "base/status.h"
#include "queues/envelope.h"

enum live_kind {
    LIVE_MESSAGE,
    LIVE_PEER,       /* joined or left */
    LIVE_HEALTH,     /* a part changed */
    LIVE_SUBSCRIBER, /* dropped */
    LIVE_FIGURES,    /* once a second */
    LIVE_KINDS
};

struct live_feed;

struct live_feed_options {
    size_t clients_max;
    size_t queue_bytes_max; /* of one client */
};

MUST_USE enum status live_feed_create(
        struct live_feed **out, const struct live_feed_options *options);
void live_feed_destroy(struct live_feed **feed);

/* Makes the request a client, or answers 400 or 503. first: an event that it gets at once; "": none. */
void live_feed_open(struct live_feed *feed, struct http_request *request, const char *first);

/* Whether any client wants that kind. */
bool live_feed_wants(const struct live_feed *feed, enum live_kind kind);

void live_feed_message(struct live_feed *feed, const struct envelope *envelope);

/* json: one line. */
void live_feed_event(struct live_feed *feed, enum live_kind kind, const char *json);

/* Lets go of clients that have left, now and then; returns how many there are. */
size_t live_feed_tidy(struct live_feed *feed);
