/* SPDX-License-Identifier: MIT */

/* What the subscription table tells: nothing here changes it. */

#include "router/subscriptions_private.h"

uint32_t subscription_result_code(enum subscription_result result)
{
    switch (result) {
    case SUBSCRIPTION_OK:
        return 200;
    case SUBSCRIPTION_BAD_REQUEST:
        return 400;
    case SUBSCRIPTION_NOT_FOUND:
        return 404;
    case SUBSCRIPTION_TOO_MANY_CRITERIA:
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
        return "peer has no subscriptions";
    case SUBSCRIPTION_TOO_MANY_CRITERIA:
        return "peer has reached maximum number of filter criteria";
    case SUBSCRIPTION_FULL:
        return "node has reached maximum number of subscriptions";
    }
    return "";
}

size_t subscriptions_position(const struct subscriptions *subscriptions, uint64_t id)
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

void *subscriptions_find_context(const struct subscriptions *subscriptions, uint64_t id)
{
    size_t i = subscriptions_position(subscriptions, id);
    bool is_there = i < subscriptions->peer_count && subscriptions->by_id[i]->entry.id == id;
    return is_there ? subscriptions->by_id[i]->entry.context : NULL;
}

bool subscriptions_next(
        const struct subscriptions *subscriptions, uint64_t from, struct subscription_view *out)
{
    size_t i = subscriptions_position(subscriptions, from);
    if (i == subscriptions->peer_count) {
        return false;
    }
    const struct subscriber *subscriber = subscriptions->by_id[i];
    *out = (struct subscription_view){.entry = subscriber->entry,
            .last_seen_ns = subscriber->last_seen_ns,
            .criterion_count = subscriber->criteria_count,
            .subscriber = subscriber};
    return true;
}

void subscription_view_criterion(const struct subscription_view *view, size_t i,
        struct span *pubsub_topic, struct span *content_topic)
{
    *pubsub_topic = view->subscriber->criteria[i]->pubsub_topic;
    *content_topic = view->subscriber->criteria[i]->content_topic;
}
