/* SPDX-License-Identifier: MIT */

/* What other nodes do for the application: lightpush and filter, through the node's clients. */

#include <stdlib.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/metrics.h"
#include "net/protocols/service_code.h"
#include "node/api_private.h"
#include "node/filter.h"
#include "node/lightpush.h"
#include "node/store_client.h"

enum {
    TOPICS_MAX = 1000 /* of one request */
};

enum status api_read_service(
        struct multiaddr *address, bool *has_peer, const struct sluice_service *service)
{
    *has_peer = service != NULL && service->peer != NULL;
    return *has_peer ? store_client_read_address(address, service->peer) : STATUS_OK;
}

static enum sluice_result result_of(uint32_t code)
{
    return code == SERVICE_OK ? SLUICE_OK : SLUICE_FAILED;
}

/* Lightpush. */

struct wanted_push {
    const struct sluice_message *message;
    const struct sluice_service *service;
};

static void on_pushed(void *context, const struct node_push_outcome *outcome)
{
    struct sluice_answer answer = {.result = result_of(outcome->code),
            .code = outcome->code,
            .peer_count = outcome->relay_peer_count,
            .text = outcome->description};
    api_answer(context, answer);
}

static enum status push_fields(struct sluice_node *node, struct node_push *push,
        const struct waku_message_view *fields, struct api_call *call)
{
    size_t size = waku_message_size(fields);
    uint8_t *bytes = malloc(size + 1);
    if (bytes == NULL) {
        return STATUS_NO_MEMORY;
    }
    push->message = span_of(bytes, waku_message_encode(bytes, size, fields));
    enum status status = node_push(node->node, push, on_pushed, call);
    free(bytes);
    return status == STATUS_BUSY ? STATUS_LIMIT_REACHED : status;
}

static enum status begin_push(struct sluice_node *node, const void *what, struct api_call *call)
{
    const struct wanted_push *wanted = what;
    struct waku_message_view fields;
    struct multiaddr address;
    bool has_peer;
    struct node_push push = {.version = LIGHTPUSH_V3};
    if (api_fields(&fields, wanted->message) != SLUICE_OK) {
        return STATUS_BAD_ARGUMENT;
    }
    enum status status = api_read_service(&address, &has_peer, wanted->service);
    if (status != STATUS_OK) {
        return status;
    }
    push.peer = has_peer ? &address : NULL;
    push.timeout_ms = wanted->service != NULL ? wanted->service->timeout_ms : 0;
    if (wanted->message->pubsub_topic != NULL) {
        push.pubsub_topic = span_of_text(wanted->message->pubsub_topic);
    }
    return push_fields(node, &push, &fields, call);
}

enum sluice_result sluice_node_push(struct sluice_node *node, const struct sluice_message *message,
        const struct sluice_service *service, sluice_answer_callback *done, void *context)
{
    struct wanted_push wanted = {.message = message, .service = service};
    return api_ask(node, done, context, begin_push, &wanted);
}

/* Filter. */

struct wanted_filter {
    const struct sluice_filter_request *request;
    const struct sluice_service *service;
};

_Static_assert((int)SLUICE_FILTER_PING == (int)NODE_FILTER_PING &&
                       (int)SLUICE_FILTER_SUBSCRIBE == (int)NODE_FILTER_SUBSCRIBE &&
                       (int)SLUICE_FILTER_UNSUBSCRIBE == (int)NODE_FILTER_UNSUBSCRIBE &&
                       (int)SLUICE_FILTER_UNSUBSCRIBE_ALL == (int)NODE_FILTER_UNSUBSCRIBE_ALL,
        "the library's verbs are the node's");

static void on_answered(void *context, uint32_t code, const char *description)
{
    struct sluice_answer answer = {.result = result_of(code), .code = code, .text = description};
    api_answer(context, answer);
}

static bool is_sound(const struct sluice_filter_request *request)
{
    bool has_topics =
            request->verb == SLUICE_FILTER_SUBSCRIBE || request->verb == SLUICE_FILTER_UNSUBSCRIBE;
    return (unsigned)request->verb <= SLUICE_FILTER_UNSUBSCRIBE_ALL &&
           (!has_topics || (request->content_topic_count > 0 &&
                                   request->content_topic_count <= TOPICS_MAX));
}

static enum status begin_filter(struct sluice_node *node, const void *what, struct api_call *call)
{
    const struct wanted_filter *wanted = what;
    const struct sluice_filter_request *request = wanted->request;
    struct span topics[TOPICS_MAX];
    struct multiaddr address;
    bool has_peer;
    if (!is_sound(request)) {
        return STATUS_BAD_ARGUMENT;
    }
    enum status status = api_read_service(&address, &has_peer, wanted->service);
    if (status != STATUS_OK) {
        return status;
    }
    struct node_filter_request asked = {.verb = (enum node_filter_verb)request->verb,
            .peer = has_peer ? &address : NULL,
            .timeout_ms = wanted->service != NULL ? wanted->service->timeout_ms : 0};
    if (request->verb == SLUICE_FILTER_SUBSCRIBE || request->verb == SLUICE_FILTER_UNSUBSCRIBE) {
        for (size_t i = 0; i < request->content_topic_count; i++) {
            topics[i] = span_of_text(request->content_topics[i]);
        }
        asked.content_topics = topics;
        asked.content_topic_count = request->content_topic_count;
        asked.pubsub_topic = request->pubsub_topic != NULL ? span_of_text(request->pubsub_topic)
                                                           : span_of(NULL, 0);
    }
    return node_filter_ask(node->node, &asked, on_answered, call);
}

enum sluice_result sluice_node_filter(struct sluice_node *node,
        const struct sluice_filter_request *request, const struct sluice_service *service,
        sluice_answer_callback *done, void *context)
{
    struct wanted_filter wanted = {.request = request, .service = service};
    return api_ask(node, done, context, begin_filter, &wanted);
}

/* What filter services push: made a message here, and told of on the event thread. */

struct pushed {
    struct event_task task;
    struct sluice_envelope *envelope;
    int64_t received_ns;
};

static void tell_pushed(struct event_task *task)
{
    struct pushed *pushed = (struct pushed *)task;
    if (api_envelope_seal(pushed->envelope, pushed->received_ns)) {
        api_tell_pushed(pushed->envelope->node, pushed->envelope);
    }
    sluice_envelope_unref(pushed->envelope);
    memory_free(pushed);
}

void api_take_pushed(void *context, struct span pubsub_topic, struct span message)
{
    struct sluice_node *node = context;
    /* relaxed: a subscription that is just being made may miss it */
    if (atomic_load_explicit(&node->pushed_wanted, memory_order_relaxed) == 0) {
        return;
    }
    struct pushed *pushed = memory_allocate_zeroed(sizeof(*pushed));
    if (pushed == NULL) {
        return;
    }
    if (api_envelope_make(&pushed->envelope, node, pubsub_topic, message) != SLUICE_OK) {
        memory_free(pushed);
        return;
    }
    pushed->task.carry_out = tell_pushed;
    pushed->received_ns = clock_wall_ns();
    node_post_event_task(node->node, &pushed->task);
}
