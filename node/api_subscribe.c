/* SPDX-License-Identifier: MIT */

/* Who is called back for a message, on the event thread. */

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
        struct sluice_node *node, const char *name, bool is_running, const struct topic **topic)
{
    *topic = NULL;
    if (name == NULL) {
        return STATUS_OK;
    }
    if (is_running) {
        return node_subscribe_topic(node->node, topic, span_of_text(name));
    }
    return topic_registry_subscribe(node->node->topics, topic, span_of_text(name));
}

static enum sluice_result subscribe(struct sluice_node *node, const char *name, bool is_running,
        struct sluice_subscription *wanted, struct sluice_subscription **out)
{
    struct sluice_subscription *subscription = find_free(node);
    if (subscription == NULL) {
        return SLUICE_LIMIT_REACHED;
    }
    enum status status = take_part(node, name, is_running, &subscription->topic);
    if (status != STATUS_OK) {
        return api_result(status);
    }
    subscription->callback = wanted->callback;
    subscription->context = wanted->context;
    atomic_store_explicit(
            &subscription->state, SUBSCRIPTION_ACTIVE, memory_order_release); /* ACTIVE */
    *out = subscription;
    return SLUICE_OK;
}

enum sluice_result sluice_node_subscribe(struct sluice_node *node, const char *pubsub_topic,
        sluice_message_callback *callback, void *context, struct sluice_subscription **out)
{
    struct sluice_subscription wanted = {.callback = callback, .context = context};
    pthread_mutex_lock(&node->control);
    bool is_running = api_enter(node);
    int state = atomic_load_explicit(&node->state, memory_order_seq_cst);
    enum sluice_result result = SLUICE_NOT_RUNNING;
    if (is_running || state == NODE_CREATED) {
        result = subscribe(node, pubsub_topic, is_running, &wanted, out);
    }
    if (is_running) {
        api_leave(node);
    }
    pthread_mutex_unlock(&node->control);
    return result;
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

static void call(struct sluice_subscription *subscription, struct envelope *envelope)
{
    struct sluice_node *node = subscription->node;
    atomic_store_explicit(&node->calling, subscription, memory_order_seq_cst); /* CALL */
    if (atomic_load_explicit(&subscription->state, memory_order_seq_cst) ==
                    SUBSCRIPTION_ACTIVE && /* CALL, ACTIVE */
            (subscription->topic == NULL || subscription->topic == envelope->topic)) {
        struct sluice_envelope borrowed = {.node = node, .envelope = envelope};
        atomic_init(&borrowed.references, 0);
        subscription->callback(subscription->context, &borrowed);
    }
    atomic_store_explicit(&node->calling, NULL, memory_order_release); /* DONE */
    parking_wake(&node->progress);
}

void api_take_event(void *context, struct envelope *envelope)
{
    struct sluice_node *node = context;
    api_calling_node = node;
    for (size_t i = 0; i < API_SUBSCRIPTIONS_MAX; i++) {
        struct sluice_subscription *subscription = &node->subscriptions[i];
        /* relaxed: only to pass over what is free; call looks again */
        if (atomic_load_explicit(&subscription->state, memory_order_relaxed) ==
                SUBSCRIPTION_ACTIVE) {
            call(subscription, envelope);
        }
    }
    api_calling_node = NULL;
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
    atomic_store_explicit(&subscription->state, SUBSCRIPTION_FREE, memory_order_release);
    *subscription_pointer = NULL;
}
