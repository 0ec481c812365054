/* SPDX-License-Identifier: MIT */

/* Who is called back for a message, on the event thread. */

#include <stdlib.h>
#include <string.h>

#include "node/api_private.h"
#include "node/node_private.h"

/* The subscription is free until its state says otherwise; one thread at a time sets one up. */
static struct sluice_subscription *find_free(struct sluice_node *node)
{
    for (size_t i = 0; i < API_SUBSCRIPTIONS_MAX; i++) {
        struct sluice_subscription *subscription = &node->subscriptions[i];
        /* acquire: pairs with the end of its last use */
        if (atomic_load_explicit(&subscription->state, memory_order_acquire) == SUBSCRIPTION_FREE) {
            return subscription;
        }
    }
    return NULL;
}

/* A node that does not run yet joins its topics when it starts. */
static enum status take_part(
        struct sluice_node *node, struct span name, bool is_running, const struct topic **topic)
{
    if (is_running) {
        return node_subscribe_topic(node->node, topic, name);
    }
    return topic_registry_subscribe(node->node->topics, topic, name);
}

/* *topic stays NULL where all are wanted. */
static enum sluice_result join_wanted(struct sluice_node *node,
        const struct sluice_interest *interest, bool is_running, const struct topic **topic)
{
    char shard[SHARD_TOPIC_MAX_BYTES];
    struct span name = {0};
    if (interest->pubsub_topic != NULL) {
        name = span_of_text(interest->pubsub_topic);
    } else if (interest->content_topic != NULL && node->shard_count != 0) {
        enum sluice_result result = api_shard_topic(node, interest->content_topic, shard, &name);
        if (result != SLUICE_OK) {
            return result;
        }
    } else {
        return SLUICE_OK;
    }
    return api_result(take_part(node, name, is_running, topic));
}

static bool is_empty(const char *text)
{
    return text != NULL && text[0] == '\0';
}

static struct span append(char **end, const char *text)
{
    size_t length = text == NULL ? 0 : strlen(text);
    struct span copy = span_of(*end, length);
    if (length > 0) {
        memcpy(*end, text, length);
    }
    *end += length;
    return copy;
}

static bool copy_texts(
        struct sluice_subscription *subscription, const struct sluice_interest *interest)
{
    const char *pubsub_topic = interest->is_pushed ? interest->pubsub_topic : NULL;
    const char *content_topic = interest->content_topic;
    subscription->texts = NULL;
    subscription->pubsub_topic = subscription->content_topic = span_of(NULL, 0);
    if (pubsub_topic == NULL && content_topic == NULL) {
        return true;
    }
    char *end = malloc((pubsub_topic == NULL ? 0 : strlen(pubsub_topic)) +
                       (content_topic == NULL ? 0 : strlen(content_topic)) + 1);
    if (end == NULL) {
        return false;
    }
    subscription->texts = end;
    subscription->pubsub_topic = append(&end, pubsub_topic);
    subscription->content_topic = append(&end, content_topic);
    return true;
}

static enum sluice_result set_up(struct sluice_subscription *subscription,
        const struct sluice_interest *interest, bool is_running)
{
    if (is_empty(interest->pubsub_topic) || is_empty(interest->content_topic)) {
        return SLUICE_BAD_ARGUMENT;
    }
    if (!copy_texts(subscription, interest)) {
        return SLUICE_NO_MEMORY;
    }
    subscription->topic = NULL;
    subscription->is_pushed = interest->is_pushed;
    enum sluice_result result = interest->is_pushed ? SLUICE_OK
                                                    : join_wanted(subscription->node, interest,
                                                              is_running, &subscription->topic);
    if (result != SLUICE_OK) {
        free(subscription->texts);
        subscription->texts = NULL;
    }
    return result;
}

/* A place in the table that is set up but not active; the mutex is held. */
static enum sluice_result find_place(struct sluice_node *node,
        const struct sluice_interest *interest, struct sluice_subscription **out)
{
    bool is_running = api_enter(node);
    int state = atomic_load_explicit(&node->state, memory_order_seq_cst);
    enum sluice_result result = SLUICE_NOT_RUNNING;
    if (is_running || state == NODE_CREATED) {
        *out = find_free(node);
        result = *out == NULL ? SLUICE_LIMIT_REACHED : set_up(*out, interest, is_running);
    }
    if (is_running) {
        api_leave(node);
    }
    return result;
}

enum sluice_result sluice_node_subscribe_to(struct sluice_node *node,
        const struct sluice_interest *interest, sluice_message_callback *callback, void *context,
        struct sluice_subscription **out)
{
    struct sluice_subscription *subscription = NULL;
    pthread_mutex_lock(&node->control);
    enum sluice_result result = find_place(node, interest, &subscription);
    if (result == SLUICE_OK) {
        subscription->callback = callback;
        subscription->context = context;
        atomic_store_explicit(
                &subscription->state, SUBSCRIPTION_ACTIVE, memory_order_release); /* ACTIVE */
        /* relaxed, as at the end: who pushes may see it a little later */
        atomic_fetch_add_explicit(&node->pushed_wanted, interest->is_pushed, memory_order_relaxed);
        *out = subscription;
    }
    pthread_mutex_unlock(&node->control);
    return result;
}

enum sluice_result sluice_node_subscribe(struct sluice_node *node, const char *pubsub_topic,
        sluice_message_callback *callback, void *context, struct sluice_subscription **out)
{
    struct sluice_interest interest = {.pubsub_topic = pubsub_topic};
    return sluice_node_subscribe_to(node, &interest, callback, context, out);
}

enum sluice_result sluice_node_leave(struct sluice_node *node, const char *pubsub_topic)
{
    if (!api_enter(node)) {
        return SLUICE_NOT_RUNNING;
    }
    enum status status = node_unsubscribe_topic(node->node, span_of_text(pubsub_topic));
    api_leave(node);
    return api_result(status);
}

/* What was subscribed before the start. */
enum sluice_result api_join_subscribed(struct sluice_node *node)
{
    enum status status = STATUS_OK;
    pthread_mutex_lock(&node->control);
    for (size_t i = 0; status == STATUS_OK && i < API_SUBSCRIPTIONS_MAX; i++) {
        struct sluice_subscription *subscription = &node->subscriptions[i];
        /* relaxed: whoever set it up held the mutex */
        int state = atomic_load_explicit(&subscription->state, memory_order_relaxed);
        if (state == SUBSCRIPTION_ACTIVE && subscription->topic != NULL) {
            status = node_subscribe_topic(node->node, NULL, subscription->topic->name);
        }
    }
    pthread_mutex_unlock(&node->control);
    return api_result(status);
}

static bool wants(const struct sluice_subscription *subscription,
        const struct sluice_envelope *borrowed, bool is_pushed)
{
    const struct envelope *envelope = borrowed->envelope;
    return subscription->is_pushed == is_pushed &&
           (subscription->topic == NULL || subscription->topic == envelope->topic) &&
           (subscription->pubsub_topic.length == 0 ||
                   span_equal(subscription->pubsub_topic, envelope->topic->name)) &&
           (subscription->content_topic.length == 0 ||
                   span_equal(subscription->content_topic, envelope->content_topic));
}

static void call(
        struct sluice_subscription *subscription, struct sluice_envelope *envelope, bool is_pushed)
{
    struct sluice_node *node = subscription->node;
    atomic_store_explicit(&node->calling, subscription, memory_order_seq_cst); /* CALL */
    if (atomic_load_explicit(&subscription->state, memory_order_seq_cst) ==
                    SUBSCRIPTION_ACTIVE && /* CALL, ACTIVE */
            wants(subscription, envelope, is_pushed)) {
        subscription->callback(subscription->context, envelope);
    }
    atomic_store_explicit(&node->calling, NULL, memory_order_release); /* DONE */
    parking_wake(&node->progress);
}

static void tell_all(struct sluice_node *node, struct sluice_envelope *envelope, bool is_pushed)
{
    api_calling_node = node;
    for (size_t i = 0; i < API_SUBSCRIPTIONS_MAX; i++) {
        struct sluice_subscription *subscription = &node->subscriptions[i];
        /* relaxed: only to pass over what is free; call looks again */
        if (atomic_load_explicit(&subscription->state, memory_order_relaxed) ==
                SUBSCRIPTION_ACTIVE) {
            call(subscription, envelope, is_pushed);
        }
    }
    api_calling_node = NULL;
}

void api_take_event(void *context, struct envelope *envelope)
{
    struct sluice_envelope borrowed = {.node = context, .envelope = envelope};
    atomic_init(&borrowed.references, 0);
    tell_all(context, &borrowed, false);
}

void api_tell_pushed(struct sluice_node *node, struct sluice_envelope *envelope)
{
    tell_all(node, envelope, true);
}

static bool is_not_called(const struct sluice_node *node, void *context)
{
    return atomic_load_explicit(&node->calling, memory_order_seq_cst) != context; /* CALL, DONE */
}

void sluice_subscription_end(struct sluice_subscription **subscription_pointer)
{
    struct sluice_subscription *subscription = *subscription_pointer;
    if (subscription == NULL) {
        return;
    }
    struct sluice_node *node = subscription->node;
    atomic_store_explicit(
            &subscription->state, SUBSCRIPTION_SET_UP, memory_order_seq_cst); /* CALL */
    if (api_calling_node != node) {
        api_wait(node, is_not_called, subscription);
    }
    atomic_fetch_sub_explicit(&node->pushed_wanted, subscription->is_pushed, memory_order_relaxed);
    free(subscription->texts);
    subscription->texts = NULL;
    atomic_store_explicit(&subscription->state, SUBSCRIPTION_FREE, memory_order_release);
    *subscription_pointer = NULL;
}

void api_free_subscriptions(struct sluice_node *node)
{
    for (size_t i = 0; i < API_SUBSCRIPTIONS_MAX; i++) {
        free(node->subscriptions[i].texts);
    }
}
