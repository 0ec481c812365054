/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Who of the filter's subscribers wants which messages: criteria (pubsub topic, content topic), each
 * with the immutable list of its subscribers.
 *
 * Progress:   a lookup costs the same whatever the number of other subscriptions; a change copies
 *             the lists of the criteria it names and nothing else.
 * Ownership:  a subscriber's context belongs to the caller until options.release_context got it.
 * Thread:     one writer (the filter worker), which is an RCU thread too; everything but find_list is
 *             its alone. find_list: any registered reader, online; the list stays valid until it
 *             turns over.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/attributes.h"
#include "base/span.h"
#include "base/status.h"

struct subscriber_entry {
    uint64_t id;
    void *context;
};

/* Never changes once it can be found. In no particular order. */
struct subscriber_list {
    size_t count;
    const struct subscriber_entry *entries;
};

struct subscriptions_options {
    size_t criteria_per_request_max; /* 100 */
    size_t criteria_per_peer_max;    /* 1,000 */
    size_t peers_max;                /* 1,000 */
    _Atomic size_t *peer_total; /* tables that share it share peers_max; NULL: this one alone */
    uint64_t expiry_ns;         /* 300 s: alive while now - last seen <= expiry */

    /* When no reader can see a dropped subscriber any more; on any thread; NULL: nothing to do. */
    void (*release_context)(void *context);
};

extern const struct subscriptions_options subscriptions_defaults;

/* What the subscriber is told. */
enum subscription_result {
    SUBSCRIPTION_OK,
    SUBSCRIPTION_BAD_REQUEST, /* no topic, an empty or overlong one, or too many in one request */
    SUBSCRIPTION_NOT_FOUND,   /* it has no such subscription */
    SUBSCRIPTION_TOO_MANY_CRITERIA, /* it would have more than it may */
    SUBSCRIPTION_FULL               /* the served peers are at their limit, or there is no memory */
};

/* 200, 400, 404, 503, 503: the filter protocol's status code. 429 is for the rate limiter before this. */
uint32_t subscription_result_code(enum subscription_result result);
const char *BORROWED subscription_result_text(enum subscription_result result);

/* A request as the filter protocol carries it; all is copied. */
struct subscription_request {
    struct span pubsub_topic;
    const struct span *content_topics;
    size_t content_topic_count;
    const struct span
            *pubsub_topics; /* one for each content topic, instead of pubsub_topic; or NULL */
};

struct subscriptions;
struct subscriber;

MUST_USE enum status subscriptions_create(
        struct subscriptions **out, const struct subscriptions_options *options);

/* No reader may be left. Contexts are released after a grace period: rcu_drain() waits for it. */
void subscriptions_destroy(struct subscriptions **subscriptions);

/*
 * All of the request or nothing. Criteria that the subscriber has already count once. context is
 * taken only when *is_new is set: then id had no subscription before and has one now.
 */
MUST_USE enum subscription_result subscriptions_subscribe(struct subscriptions *subscriptions,
        struct subscriber_entry subscriber, const struct subscription_request *request,
        uint64_t now_ns, bool *is_new);

/* Criteria that it does not have are passed over; NOT_FOUND when it has none of them. */
MUST_USE enum subscription_result subscriptions_unsubscribe(struct subscriptions *subscriptions,
        uint64_t id, const struct subscription_request *request, uint64_t now_ns);
MUST_USE enum subscription_result subscriptions_unsubscribe_all(
        struct subscriptions *subscriptions, uint64_t id, uint64_t now_ns);
MUST_USE enum subscription_result subscriptions_ping(
        struct subscriptions *subscriptions, uint64_t id, uint64_t now_ns);

/* The subscriber has gone; false when it had none. */
bool subscriptions_drop(struct subscriptions *subscriptions, uint64_t id);

/* Drops at most max of those not heard of for longer than the expiry; returns how many. */
size_t subscriptions_expire(struct subscriptions *subscriptions, uint64_t now_ns, size_t max);

/* NULL when nobody wants it. */
const struct subscriber_list *BORROWED subscriptions_find_list(
        const struct subscriptions *subscriptions, struct span pubsub_topic,
        struct span content_topic);

/* NULL when id has no subscription. */
void *BORROWED subscriptions_find_context(const struct subscriptions *subscriptions, uint64_t id);

/* A subscriber as it is now, until the next change. */
struct subscription_view {
    struct subscriber_entry entry;
    uint64_t last_seen_ns;
    size_t criterion_count;
    const struct subscriber *subscriber;
};

/* The subscriber with the least id that is not below from; false: none. */
MUST_USE bool subscriptions_next(
        const struct subscriptions *subscriptions, uint64_t from, struct subscription_view *out);
void subscription_view_criterion(const struct subscription_view *view, size_t i,
        struct span *pubsub_topic, struct span *content_topic);

size_t subscriptions_peer_count(const struct subscriptions *subscriptions);
size_t subscriptions_criteria_count(const struct subscriptions *subscriptions); /* distinct ones */

/* Every (subscriber, criterion); visit returns false to stop. */
typedef bool subscriptions_visit(
        void *context, uint64_t id, struct span pubsub_topic, struct span content_topic);
void subscriptions_each(
        const struct subscriptions *subscriptions, subscriptions_visit *visit, void *context);
