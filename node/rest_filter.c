/* SPDX-License-Identifier: MIT */

/* Filter subscriptions of REST clients: with a service peer, through the node's filter client. */

#include <stdlib.h>

#include "node/filter.h"
#include "node/rest_private.h"

static enum status send_question(struct rest *rest, const struct rest_filter_ask *ask,
        const struct span *content_topics, rest_filter_answered *done, void *done_context)
{
    static const enum node_filter_verb verbs[] = {[REST_FILTER_PING] = NODE_FILTER_PING,
            [REST_FILTER_SUBSCRIBE] = NODE_FILTER_SUBSCRIBE,
            [REST_FILTER_UNSUBSCRIBE] = NODE_FILTER_UNSUBSCRIBE,
            [REST_FILTER_UNSUBSCRIBE_ALL] = NODE_FILTER_UNSUBSCRIBE_ALL};
    struct node_filter_request request = {.verb = verbs[ask->verb],
            .content_topics = content_topics,
            .content_topic_count = ask->content_topic_count};
    if (ask->pubsub_topic != NULL) {
        request.pubsub_topic = span_of_text(ask->pubsub_topic);
    }
    return node_filter_ask(rest->node, &request, done, done_context);
}

enum status rest_ask_filter(void *context, const struct rest_filter_ask *ask,
        rest_filter_answered *done, void *done_context)
{
    struct span *topics = calloc(ask->content_topic_count + 1, sizeof(*topics));
    if (topics == NULL) {
        return STATUS_NO_MEMORY;
    }
    for (size_t i = 0; i < ask->content_topic_count; i++) {
        topics[i] = span_of_text(ask->content_topics[i]);
    }
    enum status status = send_question(context, ask, topics, done, done_context);
    free(topics);
    return status;
}

void rest_take_pushed(struct rest *rest, struct span pubsub_topic, struct span message)
{
    rest_api_take_pushed(rest->api, pubsub_topic, message);
}
