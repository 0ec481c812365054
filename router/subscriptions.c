/* SPDX-License-Identifier: MIT */
#include "router/subscriptions.h"

#include <assert.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "router/criteria.h"

struct subscriber {
    struct subscriber_entry entry;
    uint64_t last_seen_ns;
    struct subscriber *older; /* in the order of last_seen_ns */
    struct subscriber *newer;
    struct criterion **criteria; /* sorted by address */
    size_t criteria_count;
    size_t criteria_capacity;
    void (*release_context)(void *context);
    struct rcu_head reclaim;
};

struct subscriptions {
    struct subscriptions_options options;
    struct shared_map *criteria;
    struct subscriber **by_id; /* sorted */
    size_t peer_count;
    size_t peer_capacity;
    struct subscriber *oldest;
    struct subscriber *newest;
    uint64_t stamp;
};

const struct subscriptions_options subscriptions_defaults = {
        .criteria_per_request_max = 100,
        .criteria_per_peer_max = 1000,
        .peers_max = 1000,
        .expiry_ns = (uint64_t)300 * NANOSECONDS_PER_SECOND,
};

uint32_t subscription_result_code(enum subscription_result result)
{
    switch (result) {
    case SUBSCRIPTION_OK:
        return 200;
    case SUBSCRIPTION_BAD_REQUEST:
        return 400;
    case SUBSCRIPTION_NOT_FOUND:
        return 404;
    case SUBSCRIPTION_FULL:
        return 503;
    }
    return 503;
}

const char *subscription_result_text(enum subscription_result result)
{
    switch (result) {
    case SUBSCRIPTION_OK:
        return "OK";
    case SUBSCRIPTION_BAD_REQUEST:
        return "a pubsub topic and a limited number of content topics are required";
    case SUBSCRIPTION_NOT_FOUND:
        return "no such subscription";
    case SUBSCRIPTION_FULL:
        return "no room for more subscriptions";
    }
    return "";
}

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
    *out = subscriptions;
    return STATUS_OK;
}

/* Where id is, or would be, in by_id. */
static size_t position_of_id(const struct subscriptions *subscriptions, uint64_t id)
{
    size_t low = 0;
    size_t high = subscriptions->peer_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (subscriptions->by_id[middle]->entry.id < id) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static struct subscriber *find_subscriber(const struct subscriptions *subscriptions, uint64_t id)
{
    size_t i = position_of_id(subscriptions, id);
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
    size_t i = position_of_id(subscriptions, subscriber->entry.id);
    subscriptions->peer_count--;
    memmove(&subscriptions->by_id[i], &subscriptions->by_id[i + 1],
            (subscriptions->peer_count - i) * sizeof(void *));
    unlink_from_order(subscriptions, subscriber);
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
        drop_subscriber(subscriptions, subscriber);
        return NULL;
    }
    return subscriber;
}

static bool is_valid_request(
        const struct subscriptions *subscriptions, const struct subscription_request *request)
{
    if (request->content_topic_count == 0 ||
            request->content_topic_count > subscriptions->options.criteria_per_request_max) {
        return false;
    }
    for (size_t i = 0; i < request->content_topic_count; i++) {
        if (!criterion_is_valid(request->pubsub_topic, request->content_topics[i])) {
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

static struct subscriber *add_subscriber(
        struct subscriptions *subscriptions, struct subscriber_entry entry, uint64_t now_ns)
{
    if (subscriptions->peer_count >= subscriptions->options.peers_max ||
            !reserve_peer(subscriptions)) {
        return NULL;
    }
    struct subscriber *subscriber = memory_allocate_zeroed(sizeof(*subscriber));
    if (subscriber == NULL) {
        return NULL;
    }
    subscriber->entry = entry;
    subscriber->release_context = subscriptions->options.release_context;
    size_t i = position_of_id(subscriptions, entry.id);
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
                subscriptions->criteria, request->pubsub_topic, request->content_topics[i]);
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

static bool add_criteria(struct subscriptions *subscriptions, struct subscriber *subscriber,
        const struct subscription_request *request)
{
    struct addition addition = {
            .criteria = memory_allocate(request->content_topic_count * sizeof(void *)),
    };
    bool is_done = addition.criteria != NULL &&
                   prepare_addition(subscriptions, &addition, subscriber, request) &&
                   subscriber->criteria_count + addition.count <=
                           subscriptions->options.criteria_per_peer_max &&
                   reserve_criteria(subscriber, addition.count);
    if (is_done) {
        publish_addition(subscriber, &addition);
    } else {
        give_up_addition(subscriptions, &addition);
    }
    memory_free(addition.criteria);
    return is_done;
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
    if (!add_criteria(subscriptions, subscriber, request)) {
        if (known == NULL) {
            subscriber->release_context = NULL; /* the context was not taken */
            drop_subscriber(subscriptions, subscriber);
        }
        return SUBSCRIPTION_FULL;
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
                subscriptions->criteria, request->pubsub_topic, request->content_topics[i]);
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
        drop_subscriber(subscriptions, subscriptions->oldest);
        count++;
    }
    return count;
}

const struct subscriber_list *subscriptions_find_list(const struct subscriptions *subscriptions,
        struct span pubsub_topic, struct span content_topic)
{
    const struct criterion *criterion =
            criterion_find(subscriptions->criteria, pubsub_topic, content_topic);
    return criterion == NULL ? NULL : criterion_list(criterion);
}

size_t subscriptions_peer_count(const struct subscriptions *subscriptions)
{
    return subscriptions->peer_count;
}

size_t subscriptions_criteria_count(const struct subscriptions *subscriptions)
{
    return shared_map_count(subscriptions->criteria);
}

static bool visit_all(
        const struct subscriber *subscriber, subscriptions_visit *visit, void *context)
{
    for (size_t i = 0; i < subscriber->criteria_count; i++) {
        const struct criterion *criterion = subscriber->criteria[i];
        if (!visit(context, subscriber->entry.id, criterion->pubsub_topic,
                    criterion->content_topic)) {
            return false;
        }
    }
    return true;
}

void subscriptions_each(
        const struct subscriptions *subscriptions, subscriptions_visit *visit, void *context)
{
    const struct subscriber *subscriber = subscriptions->oldest;
    while (subscriber != NULL && visit_all(subscriber, visit, context)) {
        subscriber = subscriber->newer;
    }
}
