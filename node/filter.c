/* SPDX-License-Identifier: MIT */
#include "node/filter.h"

#include <semaphore.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "net/protocols/filter.h"
#include "node/node_private.h"
#include "node/subscribe_client.h"

/* As a client. */

enum status node_filter_ask(struct node *node, const struct node_filter_request *request,
        node_filter_answered *answered, void *context)
{
    return node->network == NULL ? STATUS_NOT_FOUND
                                 : subscribe_client_ask(network_subscribe_client(node->network),
                                           request, answered, context);
}

struct waiting_answer {
    sem_t over;
    struct node_filter_answer *answer;
};

static void on_answered(void *context, uint32_t code, const char *description)
{
    struct waiting_answer *waiting = context;
    waiting->answer->code = code;
    snprintf(waiting->answer->description, NODE_FILTER_DESCRIPTION_SIZE, "%s", description);
    sem_post(&waiting->over);
}

enum status node_filter_ask_and_wait(struct node *node, const struct node_filter_request *request,
        struct node_filter_answer *answer)
{
    struct waiting_answer waiting = {.answer = answer};
    sem_init(&waiting.over, 0, 0);
    enum status status = node_filter_ask(node, request, on_answered, &waiting);
    if (status == STATUS_OK) {
        while (sem_wait(&waiting.over) != 0) {
        }
    }
    sem_destroy(&waiting.over);
    return status;
}

void node_filter_set_receiver(struct node *node, node_filter_received *received, void *context)
{
    if (node->network != NULL) {
        subscribe_client_set_receiver(network_subscribe_client(node->network), received, context);
    }
}

/* As a server. */

const char *node_filter_push_result_text(enum node_filter_push_result result)
{
    static const char *const texts[] = {"none", "sent", "waiting", "dropped", "not_connected"};
    return texts[result];
}
_Static_assert((int)NODE_FILTER_PUSH_NONE == (int)FILTER_PUSH_NONE &&
                       (int)NODE_FILTER_PUSH_SENT == (int)FILTER_PUSH_SENT &&
                       (int)NODE_FILTER_PUSH_WAITING == (int)FILTER_PUSH_WAITING &&
                       (int)NODE_FILTER_PUSH_DROPPED == (int)FILTER_PUSH_DROPPED &&
                       (int)NODE_FILTER_PUSH_NOT_CONNECTED == (int)FILTER_PUSH_NOT_CONNECTED,
        "the node's results are the protocol's");

/* A question to one filter thread, whose asker waits. */
struct next_question {
    struct filter_request request;
    sem_t over;
    uint64_t from;
    uint64_t id;
    bool is_found;
    struct node_filter_subscriber *out; /* NULL though found: no memory */
};

static uint64_t ms_since(uint64_t now_ns, uint64_t then_ns)
{
    return then_ns == 0 || then_ns > now_ns ? 0 : (now_ns - then_ns) / NANOSECONDS_PER_MILLISECOND;
}

static uint8_t *copy_topic(uint8_t *to, struct span *topic)
{
    memcpy(to, topic->bytes, topic->length);
    topic->bytes = to;
    return to + topic->length;
}

/* Subscriber, criteria and their texts in one block. */
static struct node_filter_subscriber *make_copy(const struct subscription_view *view)
{
    struct node_filter_criterion criterion;
    size_t bytes = 0;
    for (size_t i = 0; i < view->criterion_count; i++) {
        subscription_view_criterion(view, i, &criterion.pubsub_topic, &criterion.content_topic);
        bytes += criterion.pubsub_topic.length + criterion.content_topic.length;
    }
    size_t rows = view->criterion_count * sizeof(criterion);
    struct node_filter_subscriber *out = memory_allocate_zeroed(sizeof(*out) + rows + bytes);
    if (out == NULL) {
        return NULL;
    }
    struct node_filter_criterion *criteria = (struct node_filter_criterion *)(out + 1);
    uint8_t *end = (uint8_t *)criteria + rows;
    out->criteria = criteria;
    out->criterion_count = view->criterion_count;
    for (size_t i = 0; i < view->criterion_count; i++) {
        subscription_view_criterion(view, i, &criteria[i].pubsub_topic, &criteria[i].content_topic);
        end = copy_topic(end, &criteria[i].pubsub_topic);
        end = copy_topic(end, &criteria[i].content_topic);
    }
    return out;
}

static void describe(
        struct node_filter_subscriber *out, const struct subscription_view *view, uint64_t now_ns)
{
    struct filter_subscriber_state state;
    filter_subscriber_read(view->entry.context, &state);
    out->peer = state.peer;
    out->is_connected = state.connection != 0;
    out->age_ms = ms_since(now_ns, state.subscribed_ns);
    out->silent_ms = ms_since(now_ns, view->last_seen_ns);
    out->queue_bytes = state.queue_bytes;
    out->queue_messages = state.queue_messages;
    out->sent = state.sent;
    out->dropped = state.dropped;
    out->last_push = (enum node_filter_push_result)state.last_push;
    out->last_push_ms = ms_since(now_ns, state.last_push_ns);
}

/* Those that are in the table without being a peer (subscribers in this process) are passed over. */
static void answer_next(struct filter_request *request, struct subscriptions *subscriptions)
{
    struct next_question *question = (struct next_question *)request;
    struct subscription_view view;
    uint64_t from = question->from;
    bool is_found = subscriptions_next(subscriptions, from, &view);
    while (is_found && view.entry.context == NULL && view.entry.id != UINT64_MAX) {
        is_found = subscriptions_next(subscriptions, view.entry.id + 1, &view);
    }
    if (is_found && view.entry.context != NULL) {
        question->is_found = true;
        question->id = view.entry.id;
        question->out = make_copy(&view);
        if (question->out != NULL) {
            describe(question->out, &view, clock_monotonic_ns());
        }
    }
    sem_post(&question->over);
}

static void ask_thread(const struct node *node, size_t thread, struct next_question *question)
{
    question->request.carry_out = answer_next;
    sem_init(&question->over, 0, 0);
    inbox_push(node->filter_link.threads[thread], &question->request.link);
    inbox_wake(node->filter_link.threads[thread]);
    while (sem_wait(&question->over) != 0) {
    }
    sem_destroy(&question->over);
}

enum status node_filter_next_subscriber(
        struct node *node, struct node_filter_cursor *cursor, struct node_filter_subscriber **out)
{
    *out = NULL;
    if (node->network == NULL || network_filter(node->network) == NULL) {
        return STATUS_NOT_FOUND;
    }
    while (cursor->thread < node->filter_link.count) {
        struct next_question question = {.from = cursor->id};
        ask_thread(node, cursor->thread, &question);
        if (question.is_found && question.id != UINT64_MAX) {
            cursor->id = question.id + 1;
        } else {
            cursor->id = 0;
            cursor->thread++;
        }
        if (question.is_found) {
            *out = question.out;
            return *out == NULL ? STATUS_NO_MEMORY : STATUS_OK;
        }
    }
    return STATUS_OK;
}

void node_filter_subscriber_destroy(struct node_filter_subscriber **subscriber)
{
    memory_free(*subscriber);
    *subscriber = NULL;
}

size_t node_filter_subscriber_count(const struct node *node)
{
    /* relaxed: a reading */
    return atomic_load_explicit(&node->filter_peers, memory_order_relaxed);
}
