/* SPDX-License-Identifier: MIT */

/* Subscribers as the filter threads know them: who they are, and on which connection. */

#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "hash/sha256.h"
#include "net/protocols/filter_private.h"

/*
 * Ordering:
 *
 *   LAST  release decrement -> acquire decrement that finds the last one, before it is freed.
 *
 * The counters are relaxed: they guard nothing.
 */

/* The same for a peer whenever it comes; who does not know the secret cannot aim at another's. */
uint64_t filter_number_of(const struct filter *filter, const struct peer_id *peer)
{
    uint8_t digest[SHA256_BYTES];
    uint64_t number;
    struct span pieces[] = {span_of(filter->secret, sizeof(filter->secret)), peer_id_span(peer)};
    sha256(digest, (struct sha256_pieces){pieces, 2});
    memcpy(&number, digest, sizeof(number));
    return number;
}

struct filter_subscriber *filter_subscriber_create(
        struct filter *filter, const struct peer_id *peer, uint64_t now_ns)
{
    struct filter_subscriber *subscriber = memory_allocate_zeroed(sizeof(*subscriber));
    if (subscriber == NULL) {
        return NULL;
    }
    atomic_init(&subscriber->references, 1);
    subscriber->filter = filter;
    subscriber->id = filter_number_of(filter, peer);
    subscriber->peer = *peer;
    subscriber->subscribed_ns = now_ns;
    atomic_init(&subscriber->last_push, FILTER_PUSH_NONE);
    return subscriber;
}

void filter_subscriber_ref(struct filter_subscriber *subscriber)
{
    /* relaxed: the caller holds a reference */
    atomic_fetch_add_explicit(&subscriber->references, 1, memory_order_relaxed);
}

void filter_subscriber_unref(struct filter_subscriber *subscriber)
{
    /* LAST */
    if (atomic_fetch_sub_explicit(&subscriber->references, 1, memory_order_acq_rel) == 1) {
        memory_free(subscriber);
    }
}

/* After a grace period: the last list that named it is gone, and with it the last push. */
void filter_release_subscriber(void *context)
{
    struct filter_subscriber *subscriber = context;
    if (subscriber == NULL) {
        return;
    }
    if (subscriber->connection == 0) {
        filter_subscriber_unref(subscriber);
        return;
    }
    subscriber->detach = (struct filter_order){
            .subscriber = subscriber, .connection = subscriber->connection, .is_attach = false};
    filter_post_order(subscriber->filter, &subscriber->detach);
}

void filter_subscriber_note(struct filter_subscriber *subscriber, enum filter_push_result result)
{
    atomic_store_explicit(&subscriber->last_push, (int)result, memory_order_relaxed);
    atomic_store_explicit(&subscriber->last_push_ns, clock_monotonic_ns(), memory_order_relaxed);
    if (result == FILTER_PUSH_SENT) {
        atomic_fetch_add_explicit(&subscriber->sent, 1, memory_order_relaxed);
    } else if (result == FILTER_PUSH_NOT_CONNECTED) {
        atomic_fetch_add_explicit(&subscriber->dropped, 1, memory_order_relaxed);
    }
}

void filter_subscriber_read(
        const struct filter_subscriber *subscriber, struct filter_subscriber_state *out)
{
    *out = (struct filter_subscriber_state){.peer = subscriber->peer,
            .connection = subscriber->connection,
            .subscribed_ns = subscriber->subscribed_ns,
            .queue_bytes = atomic_load_explicit(&subscriber->queue_bytes, memory_order_relaxed),
            .queue_messages =
                    atomic_load_explicit(&subscriber->queue_messages, memory_order_relaxed),
            .sent = atomic_load_explicit(&subscriber->sent, memory_order_relaxed),
            .dropped = atomic_load_explicit(&subscriber->dropped, memory_order_relaxed),
            .last_push = (enum filter_push_result)atomic_load_explicit(
                    &subscriber->last_push, memory_order_relaxed),
            .last_push_ns = atomic_load_explicit(&subscriber->last_push_ns, memory_order_relaxed)};
}

/* Without memory the peer is attached by its next request. */
void filter_subscriber_attach(struct filter_subscriber *subscriber, uint64_t connection)
{
    if (subscriber->connection == connection) {
        return;
    }
    struct filter_order *order = memory_allocate(sizeof(*order));
    if (order == NULL) {
        return;
    }
    filter_subscriber_ref(subscriber);
    *order = (struct filter_order){
            .subscriber = subscriber, .connection = connection, .is_attach = true};
    subscriber->connection = connection;
    filter_post_order(subscriber->filter, order);
}

/* Connections that come and go. */

struct presence {
    struct filter_request request;
    uint64_t id;
    uint64_t connection;
    bool is_there;
};

static void take_presence(struct filter_request *request, struct subscriptions *subscriptions)
{
    struct presence *presence = (struct presence *)request;
    struct filter_subscriber *subscriber = subscriptions_find_context(subscriptions, presence->id);
    if (subscriber != NULL && presence->is_there) {
        filter_subscriber_attach(subscriber, presence->connection);
    } else if (subscriber != NULL && subscriber->connection == presence->connection) {
        subscriber->connection = 0;
    }
    memory_free(presence);
}

/* Without memory a peer that is back is attached by its next request, and one that is gone is found
 * to be so by its io thread. */
void filter_post_presence(struct filter *filter, struct connection *connection, bool is_there)
{
    struct presence *presence = memory_allocate(sizeof(*presence));
    if (presence == NULL) {
        return;
    }
    *presence = (struct presence){.request.carry_out = take_presence,
            .id = filter_number_of(filter, connection_peer(connection)),
            .connection = connection_id(connection),
            .is_there = is_there};
    filter_link_post(filter->options.filter_link, presence->id, &presence->request);
}

/* Subscribers that take nothing. */

struct drop_request {
    struct filter_request request;
    struct filter_subscriber *subscriber; /* one reference */
    uint64_t connection;
};

static void carry_out_drop(struct filter_request *request, struct subscriptions *subscriptions)
{
    struct drop_request *drop = (struct drop_request *)request;
    struct filter_subscriber *subscriber = drop->subscriber;
    if (subscriptions_find_context(subscriptions, subscriber->id) == subscriber &&
            subscriber->connection == drop->connection) {
        (void)subscriptions_drop(subscriptions, subscriber->id);
    }
    filter_subscriber_unref(subscriber);
    memory_free(drop);
}

bool filter_post_drop(struct filter_subscriber *subscriber, uint64_t connection)
{
    struct drop_request *drop = memory_allocate(sizeof(*drop));
    if (drop == NULL) {
        return false;
    }
    filter_subscriber_ref(subscriber);
    *drop = (struct drop_request){.request.carry_out = carry_out_drop,
            .subscriber = subscriber,
            .connection = connection};
    filter_link_post(subscriber->filter->options.filter_link, subscriber->id, &drop->request);
    return true;
}
