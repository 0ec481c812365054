/* SPDX-License-Identifier: MIT */
#include "router/subscriptions.h"

#include <assert.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/metrics.h"
#include "router/subscriptions_private.h"

const struct subscriptions_options subscriptions_defaults = {
        .criteria_per_request_max = 100,
        .criteria_per_peer_max = 1000,
        .peers_max = 1000,
        .expiry_ns = (uint64_t)300 * NANOSECONDS_PER_SECOND,
};

enum status subscriptions_create(
        struct subscriptions **out, const struct subscriptions_options *options)
{
    struct subscriptions *subscriptions = memory_allocate_zeroed(sizeof(*subscriptions));
    if (subscriptions == NULL) {
        return STATUS_NO_MEMORY;
    }
    enum status status = shared_map_create(&subscriptions->criteria, criterion_matches);
    if (status != STATUS_OK) {
        memory_free(subscriptions);
        return status;
    }
    subscriptions->options = *options;
    atomic_init(&subscriptions->own_total, 0);
    subscriptions->peer_total =
            options->peer_total != NULL ? options->peer_total : &subscriptions->own_total;
    *out = subscriptions;
    return STATUS_OK;
}

static struct subscriber *find_subscriber(const struct subscriptions *subscriptions, uint64_t id)
{
    size_t i = subscriptions_position(subscriptions, id);
    bool is_there = i < subscriptions->peer_count && subscriptions->by_id[i]->entry.id == id;
    return is_there ? subscriptions->by_id[i] : NULL;
}

static size_t position_of_criterion(
        const struct subscriber *subscriber, const struct criterion *criterion)
{
    size_t low = 0;
    size_t high = subscriber->criteria_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if ((uintptr_t)subscriber->criteria[middle] < (uintptr_t)criterion) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static bool has_criterion(const struct subscriber *subscriber, const struct criterion *criterion)
{
    size_t i = position_of_criterion(subscriber, criterion);
    return i < subscriber->criteria_count && subscriber->criteria[i] == criterion;
}

static void unlink_from_order(struct subscriptions *subscriptions, struct subscriber *subscriber)
{
    if (subscriber->older != NULL) {
        subscriber->older->newer = subscriber->newer;
    } else {
        subscriptions->oldest = subscriber->newer;
    }
    if (subscriber->newer != NULL) {
        subscriber->newer->older = subscriber->older;
    } else {
        subscriptions->newest = subscriber->older;
    }
}

static void link_as_newest(
        struct subscriptions *subscriptions, struct subscriber *subscriber, uint64_t now_ns)
{
    subscriber->last_seen_ns = now_ns;
    subscriber->newer = NULL;
    subscriber->older = subscriptions->newest;
    if (subscriptions->newest != NULL) {
        subscriptions->newest->newer = subscriber;
    } else {
        subscriptions->oldest = subscriber;
    }
    subscriptions->newest = subscriber;
}

static void touch(
        struct subscriptions *subscriptions, struct subscriber *subscriber, uint64_t now_ns)
{
    unlink_from_order(subscriptions, subscriber);
    link_as_newest(subscriptions, subscriber, now_ns);
}

static void free_subscriber(struct subscriber *subscriber)
{
    memory_free(subscriber->criteria);
    memory_free(subscriber);
}

static void reclaim_subscriber(struct rcu_head *head)
{
    rcu_reclaim_begin();
    struct subscriber *subscriber = caa_container_of(head, struct subscriber, reclaim);
    subscriber->release_context(subscriber->entry.context);
    free_subscriber(subscriber);
}

static void drop_subscriber(struct subscriptions *subscriptions, struct subscriber *subscriber)
{
    for (size_t i = 0; i < subscriber->criteria_count; i++) {
        struct criterion *criterion = subscriber->criteria[i];
        criterion_remove(criterion, subscriber->entry.id);
        criterion_release(subscriptions->criteria, criterion);
    }
    size_t i = subscriptions_position(subscriptions, subscriber->entry.id);
    subscriptions->peer_count--;
    memmove(&subscriptions->by_id[i], &subscriptions->by_id[i + 1],
            (subscriptions->peer_count - i) * sizeof(void *));
    unlink_from_order(subscriptions, subscriber);
    /* relaxed: a number that guards nothing */
    atomic_fetch_sub_explicit(subscriptions->peer_total, 1, memory_order_relaxed);
    if (subscriber->release_context != NULL) {
        rcu_retire(&subscriber->reclaim, reclaim_subscriber);
    } else {
        free_subscriber(subscriber);
    }
}

void subscriptions_destroy(struct subscriptions **subscriptions)
{
    struct subscriptions *old = *subscriptions;
    if (old == NULL) {
        return;
    }
    while (old->oldest != NULL) {
        drop_subscriber(old, old->oldest);
    }
    shared_map_destroy(&old->criteria);
    memory_free(old->by_id);
    memory_free(old);
    *subscriptions = NULL;
}

static bool is_expired(const struct subscriptions *subscriptions,
        const struct subscriber *subscriber, uint64_t now_ns)
{
    return now_ns > subscriber->last_seen_ns &&
           now_ns - subscriber->last_seen_ns > subscriptions->options.expiry_ns;
}

/* An expired subscriber that was not cleared away yet is as good as gone. */
static struct subscriber *find_live(
        struct subscriptions *subscriptions, uint64_t id, uint64_t now_ns)
{
    struct subscriber *subscriber = find_subscriber(subscriptions, id);
    if (subscriber != NULL && is_expired(subscriptions, subscriber, now_ns)) {
        metrics_add(METRIC_FILTER_EXPIRED, 1);
        drop_subscriber(subscriptions, subscriber);
        return NULL;
    }
    return subscriber;
}

static struct span pubsub_topic_of(const struct subscription_request *request, size_t i)
{
    return request->pubsub_topics != NULL ? request->pubsub_topics[i] : request->pubsub_topic;
}

static bool is_valid_request(
        const struct subscriptions *subscriptions, const struct subscription_request *request)
{
    if (request->content_topic_count == 0 ||
            request->content_topic_count > subscriptions->options.criteria_per_request_max) {
        return false;
    }
    for (size_t i = 0; i < request->content_topic_count; i++) {
        if (!criterion_is_valid(pubsub_topic_of(request, i), request->content_topics[i])) {
            return false;
        }
    }
    return true;
}

/* Room for one more in by_id. */
static bool reserve_peer(struct subscriptions *subscriptions)
{
    if (subscriptions->peer_count < subscriptions->peer_capacity) {
        return true;
    }
    size_t capacity = subscriptions->peer_capacity == 0 ? 16 : subscriptions->peer_capacity * 2;
    struct subscriber **grown = memory_resize(subscriptions->by_id, capacity * sizeof(void *));
    if (grown == NULL) {
        return false;
    }
    subscriptions->by_id = grown;
    subscriptions->peer_capacity = capacity;
    return true;
}

/* A place among all tables' subscribers. One whose time is over and was not cleared away yet is free. */
static bool try_take_place(struct subscriptions *subscriptions, uint64_t now_ns)
{
    (void)subscriptions_expire(subscriptions, now_ns, 1);
    /* relaxed: a number that guards nothing */
    if (atomic_fetch_add_explicit(subscriptions->peer_total, 1, memory_order_relaxed) <
            subscriptions->options.peers_max) {
        return true;
    }
    atomic_fetch_sub_explicit(subscriptions->peer_total, 1, memory_order_relaxed);
    return false;
}

static struct subscriber *add_subscriber(
        struct subscriptions *subscriptions, struct subscriber_entry entry, uint64_t now_ns)
{
    struct subscriber *subscriber = NULL;
    if (reserve_peer(subscriptions)) {
        subscriber = memory_allocate_zeroed(sizeof(*subscriber));
    }
    if (subscriber == NULL || !try_take_place(subscriptions, now_ns)) {
        memory_free(subscriber);
        return NULL;
    }
    subscriber->entry = entry;
    subscriber->release_context = subscriptions->options.release_context;
    size_t i = subscriptions_position(subscriptions, entry.id);
    memmove(&subscriptions->by_id[i + 1], &subscriptions->by_id[i],
            (subscriptions->peer_count - i) * sizeof(void *));
    subscriptions->by_id[i] = subscriber;
    subscriptions->peer_count++;
    link_as_newest(subscriptions, subscriber, now_ns);
    return subscriber;
}

static bool reserve_criteria(struct subscriber *subscriber, size_t more)
{
    size_t needed = subscriber->criteria_count + more;
    if (needed <= subscriber->criteria_capacity) {
        return true;
    }
    size_t capacity =
            subscriber->criteria_capacity * 2 > needed ? subscriber->criteria_capacity * 2 : needed;
    struct criterion **grown = memory_resize(subscriber->criteria, capacity * sizeof(void *));
    if (grown == NULL) {
        return false;
    }
    subscriber->criteria = grown;
    subscriber->criteria_capacity = capacity;
    return true;
}

/* The criteria that a request adds to what a subscriber has. */
struct addition {
    struct criterion **criteria;
    size_t count;
};

/* Makes what is missing of the request's criteria, and the lists that they will have; false: no memory. */
static bool prepare_addition(struct subscriptions *subscriptions, struct addition *addition,
        const struct subscriber *subscriber, const struct subscription_request *request)
{
    uint64_t stamp = ++subscriptions->stamp;
    for (size_t i = 0; i < request->content_topic_count; i++) {
        struct criterion *criterion = criterion_find_or_add(
                subscriptions->criteria, pubsub_topic_of(request, i), request->content_topics[i]);
        if (criterion == NULL) {
            return false;
        }
        bool is_repeated = criterion->stamp == stamp;
        criterion->stamp = stamp;
        if (is_repeated || has_criterion(subscriber, criterion)) {
            continue;
        }
        addition->criteria[addition->count++] = criterion;
        if (!criterion_prepare(criterion, subscriber->entry)) {
            return false;
        }
    }
    return true;
}

static void give_up_addition(struct subscriptions *subscriptions, struct addition *addition)
{
    for (size_t i = 0; i < addition->count; i++) {
        criterion_give_up(addition->criteria[i]);
        criterion_release(subscriptions->criteria, addition->criteria[i]);
    }
}

static void publish_addition(struct subscriber *subscriber, struct addition *addition)
{
    for (size_t i = 0; i < addition->count; i++) {
        struct criterion *criterion = addition->criteria[i];
        size_t position = position_of_criterion(subscriber, criterion);
        memmove(&subscriber->criteria[position + 1], &subscriber->criteria[position],
                (subscriber->criteria_count - position) * sizeof(void *));
        subscriber->criteria[position] = criterion;
        subscriber->criteria_count++;
        criterion_publish(criterion);
    }
}

static enum subscription_result add_criteria(struct subscriptions *subscriptions,
        struct subscriber *subscriber, const struct subscription_request *request)
{
    size_t max = subscriptions->options.criteria_per_peer_max;
    struct addition addition = {
            .criteria = memory_allocate(request->content_topic_count * sizeof(void *)),
    };
    enum subscription_result result = SUBSCRIPTION_FULL;
    if (addition.criteria != NULL &&
            prepare_addition(subscriptions, &addition, subscriber, request)) {
        result = subscriber->criteria_count + addition.count > max ? SUBSCRIPTION_TOO_MANY_CRITERIA
                                                                   : SUBSCRIPTION_OK;
    }
    if (result == SUBSCRIPTION_OK && !reserve_criteria(subscriber, addition.count)) {
        result = SUBSCRIPTION_FULL;
    }
    if (result == SUBSCRIPTION_OK) {
        publish_addition(subscriber, &addition);
    } else {
        give_up_addition(subscriptions, &addition);
    }
    memory_free(addition.criteria);
    return result;
}

enum subscription_result subscriptions_subscribe(struct subscriptions *subscriptions,
        struct subscriber_entry entry, const struct subscription_request *request, uint64_t now_ns,
        bool *is_new)
{
    *is_new = false;
    if (!is_valid_request(subscriptions, request)) {
        return SUBSCRIPTION_BAD_REQUEST;
    }
    struct subscriber *known = find_live(subscriptions, entry.id, now_ns);
    struct subscriber *subscriber =
            known != NULL ? known : add_subscriber(subscriptions, entry, now_ns);
    if (subscriber == NULL) {
        return SUBSCRIPTION_FULL;
    }
    enum subscription_result result = add_criteria(subscriptions, subscriber, request);
    if (result != SUBSCRIPTION_OK) {
        if (known == NULL) {
            subscriber->release_context = NULL; /* the context was not taken */
            drop_subscriber(subscriptions, subscriber);
        }
        return result;
    }
    touch(subscriptions, subscriber, now_ns);
    *is_new = known == NULL;
    return SUBSCRIPTION_OK;
}

static bool remove_criterion(struct subscriptions *subscriptions, struct subscriber *subscriber,
        struct criterion *criterion)
{
    if (criterion == NULL || !has_criterion(subscriber, criterion)) {
        return false;
    }
    size_t position = position_of_criterion(subscriber, criterion);
    subscriber->criteria_count--;
    memmove(&subscriber->criteria[position], &subscriber->criteria[position + 1],
            (subscriber->criteria_count - position) * sizeof(void *));
    criterion_remove(criterion, subscriber->entry.id);
    criterion_release(subscriptions->criteria, criterion);
    return true;
}

enum subscription_result subscriptions_unsubscribe(struct subscriptions *subscriptions, uint64_t id,
        const struct subscription_request *request, uint64_t now_ns)
{
    if (!is_valid_request(subscriptions, request)) {
        return SUBSCRIPTION_BAD_REQUEST;
    }
    struct subscriber *subscriber = find_live(subscriptions, id, now_ns);
    if (subscriber == NULL) {
        return SUBSCRIPTION_NOT_FOUND;
    }
    touch(subscriptions, subscriber, now_ns);
    size_t removed = 0;
    for (size_t i = 0; i < request->content_topic_count; i++) {
        struct criterion *criterion = criterion_find(
                subscriptions->criteria, pubsub_topic_of(request, i), request->content_topics[i]);
        removed += remove_criterion(subscriptions, subscriber, criterion);
    }
    if (subscriber->criteria_count == 0) {
        drop_subscriber(subscriptions, subscriber);
    }
    return removed > 0 ? SUBSCRIPTION_OK : SUBSCRIPTION_NOT_FOUND;
}

enum subscription_result subscriptions_unsubscribe_all(
        struct subscriptions *subscriptions, uint64_t id, uint64_t now_ns)
{
    struct subscriber *subscriber = find_live(subscriptions, id, now_ns);
    if (subscriber == NULL) {
        return SUBSCRIPTION_NOT_FOUND;
    }
    drop_subscriber(subscriptions, subscriber);
    return SUBSCRIPTION_OK;
}

enum subscription_result subscriptions_ping(
        struct subscriptions *subscriptions, uint64_t id, uint64_t now_ns)
{
    struct subscriber *subscriber = find_live(subscriptions, id, now_ns);
    if (subscriber == NULL) {
        return SUBSCRIPTION_NOT_FOUND;
    }
    touch(subscriptions, subscriber, now_ns);
    return SUBSCRIPTION_OK;
}

bool subscriptions_drop(struct subscriptions *subscriptions, uint64_t id)
{
    struct subscriber *subscriber = find_subscriber(subscriptions, id);
    if (subscriber == NULL) {
        return false;
    }
    drop_subscriber(subscriptions, subscriber);
    return true;
}

size_t subscriptions_expire(struct subscriptions *subscriptions, uint64_t now_ns, size_t max)
{
    size_t count = 0;
    while (count < max && subscriptions->oldest != NULL &&
            is_expired(subscriptions, subscriptions->oldest, now_ns)) {
        metrics_add(METRIC_FILTER_EXPIRED, 1);
        drop_subscriber(subscriptions, subscriptions->oldest);
        count++;
    }
    return count;
}
