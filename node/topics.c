/* SPDX-License-Identifier: MIT */

/* The pubsub topics of a node: those it takes part in, and those it only publishes to. */

#include <stdio.h>

#include "codec/topics.h"
#include "node/node_private.h"

/* Peers first, so that none gets a GRAFT for a topic that it does not know us in. */
static enum status tell_of_topic(
        struct node *node, const struct topic *topic, enum lane_event_kind kind)
{
    if (node->network != NULL) {
        network_take_part(node->network, topic->name, kind == LANE_EVENT_JOIN_TOPIC);
    }
    if (node->relay_port.post == NULL) {
        return STATUS_OK;
    }
    struct lane_event *event = lane_event_create(kind, 0, NULL);
    if (event == NULL) {
        return STATUS_NO_MEMORY;
    }
    event->topic = topic;
    if (node->network != NULL) {
        network_topic_changed(node->network, topic);
    }
    intake_post_event(&node->intake, topic->lane, event);
    return STATUS_OK;
}

static enum status join_topic(struct node *node, const struct topic **out, struct span name)
{
    const struct topic *topic = NULL;
    enum status status = topic_registry_subscribe(node->topics, &topic, name);
    if (status != STATUS_OK) {
        return status;
    }
    if (out != NULL) {
        *out = topic;
    }
    /* relaxed: a count */
    atomic_fetch_add_explicit(&node->topics_joined, 1, memory_order_relaxed);
    node_fill_sync_set(node);
    return tell_of_topic(node, topic, LANE_EVENT_JOIN_TOPIC);
}

enum status node_subscribe_topic(struct node *node, const struct topic **out, struct span name)
{
    pthread_mutex_lock(&node->topics_writer);
    enum status status = join_topic(node, out, name);
    pthread_mutex_unlock(&node->topics_writer);
    return status;
}

static enum status leave_topic(struct node *node, struct span name)
{
    enum status status = topic_registry_unsubscribe(node->topics, name);
    if (status != STATUS_OK) {
        return status;
    }
    const struct topic *topic = topic_registry_find_interned(node->topics, name);
    /* relaxed: a count */
    atomic_fetch_add_explicit(&node->topics_left, 1, memory_order_relaxed);
    return tell_of_topic(node, topic, LANE_EVENT_LEAVE_TOPIC);
}

enum status node_unsubscribe_topic(struct node *node, struct span name)
{
    pthread_mutex_lock(&node->topics_writer);
    enum status status = leave_topic(node, name);
    pthread_mutex_unlock(&node->topics_writer);
    return status;
}

/*
 * Peers' subscriptions to shards that we take no part in are worth knowing: own messages go to them.
 * Beyond half of max-topics there is no room for that.
 */
static void intern_network(struct node *node)
{
    const struct node_settings *settings = &node->settings;
    char name[SHARD_TOPIC_MAX_BYTES];
    uint32_t count = settings->shard_count <= settings->max_topics / 2 ? settings->shard_count : 0;
    pthread_mutex_lock(&node->topics_writer);
    for (uint32_t i = 0; i < count; i++) {
        struct shard shard = {.cluster = settings->cluster, .index = (uint16_t)i};
        if (topic_registry_intern(node->topics, span_of(name, shard_format(name, shard))) !=
                STATUS_OK) {
            break; /* no room: what is published there is refused */
        }
    }
    pthread_mutex_unlock(&node->topics_writer);
}

enum status node_join_topics(struct node *node, struct node_error *error)
{
    const char *name;
    for (size_t i = 0; (name = network_topic_at(node->network, i)) != NULL; i++) {
        enum status status = node_subscribe_topic(node, NULL, span_of_text(name));
        if (status != STATUS_OK) {
            snprintf(error->text, sizeof(error->text), "pubsub topic %.200s: %s", name,
                    status_text(status));
            return status;
        }
    }
    intern_network(node);
    return STATUS_OK;
}

const struct topic *node_publish_topic(const struct node *node, struct span name, bool *is_fanout)
{
    struct shard shard;
    const struct topic *topic = topic_registry_find_subscribed(node->topics, name);
    *is_fanout = topic == NULL;
    if (topic == NULL && shard_parse(&shard, name) == STATUS_OK &&
            shard.cluster == node->settings.cluster && shard.index < node->settings.shard_count) {
        topic = topic_registry_find_interned(node->topics, name);
    }
    return topic;
}
