/* SPDX-License-Identifier: MIT */
#pragma once

/* What stands behind include/sluice.h, for node/api*.c only. */

#include <pthread.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "base/options.h"
#include "codec/topics.h"
#include "codec/waku_message.h"
#include "include/sluice.h"
#include "net/identity/multiaddr.h"
#include "node/node.h"
#include "queues/envelope.h"
#include "queues/parking.h"

enum {
    API_SUBSCRIPTIONS_MAX = 64
};

struct sluice_options {
    struct options *options;
};

enum subscription_state {
    SUBSCRIPTION_FREE,
    SUBSCRIPTION_SET_UP, /* its fields belong to who sets it up */
    SUBSCRIPTION_ACTIVE
};

/*
 * A place in a node's table. The event thread reads the table without a lock:
 *
 *   ACTIVE  release store of state -> acquire load by the event thread, which sees the fields.
 *   CALL    the event thread stores calling and then loads state; who ends a subscription stores state
 *           and then loads calling. All four are seq_cst: of two that do so at the same time at least
 *           one sees the other, so either the callback does not begin, or its end is waited for.
 *   DONE    release store of calling -> acquire load by who waits: the callback has returned.
 */
struct sluice_subscription {
    atomic_int state;
    struct sluice_node *node;
    const struct topic *topic; /* NULL: all, or is_pushed */
    bool is_pushed;
    struct span pubsub_topic;  /* of what is pushed; empty: all */
    struct span content_topic; /* empty: all */
    char *texts;               /* that these two point into; NULL: both are empty */
    sluice_message_callback *callback;
    void *context;
};

enum node_state {
    NODE_CREATED,
    NODE_RUNNING,
    NODE_STOPPED
};

/*
 * GATE: who enters adds to inside and then loads state; stop stores state and then loads inside. All
 * four are seq_cst: of two that do so at the same time at least one sees the other, so nothing is
 * posted to a node whose threads have ended.
 */
struct sluice_node {
    struct parking progress; /* woken when somebody left, or a callback has returned */
    alignas(CACHE_LINE) _Atomic(const struct sluice_subscription *)
            calling; /* the event thread's */
    alignas(CACHE_LINE) atomic_size_t inside;
    atomic_int state;
    atomic_size_t publishes; /* whose outcome is not told yet */
    atomic_size_t held_bytes;
    atomic_size_t calls;         /* likewise */
    atomic_size_t peer_events;   /* that wait for the callback */
    atomic_size_t pushed_wanted; /* subscriptions with is_pushed */
    atomic_bool is_ending;       /* queries give up */

    alignas(CACHE_LINE) pthread_mutex_t control; /* the topic registry has one writer at a time */
    struct node *node;
    struct sluice_options *options;
    size_t held_max;
    size_t publishes_max;
    size_t calls_max;
    sluice_peer_callback *peer_callback; /* NULL: none; constant once the node has started */
    void *peer_context;
    uint16_t cluster;
    uint16_t shard_count; /* 0: no autosharding */
    struct sluice_subscription subscriptions[API_SUBSCRIPTIONS_MAX];
};

/* A kept envelope, or, with zero references, the borrowed one of a callback. */
struct sluice_envelope {
    struct sluice_node *node;
    struct envelope *envelope;
    atomic_uint references;
    size_t charge;
    bool is_detached; /* envelope, topic and bytes are in one block with this one */
};

/* A call under way whose outcome is a struct sluice_answer. */
enum {
    API_ANSWER_TEXT_SIZE = 257
};
struct api_call {
    struct event_task task;
    struct sluice_node *node;
    sluice_answer_callback *done;
    void *context;
    struct sluice_answer answer;
    char text[API_ANSWER_TEXT_SIZE];
};

/* Begins something that ends with api_answer. STATUS_OK: it will. */
typedef enum status api_begin(
        struct sluice_node *node, const void *what, struct api_call *CONSUMED call);

/* The node of which the calling thread runs a callback; NULL: none. */
extern _Thread_local const struct sluice_node *api_calling_node;

enum sluice_result api_result(enum status status);

/* Says why in error, which may be NULL, and returns the result. */
enum sluice_result api_fail(
        struct sluice_error *error, enum sluice_result result, const char *text);

/* ASCII capitals to small letters, in place: names in tables to names as exported. */
void api_lower(char *text);

/* False when the node does not run; otherwise it does until api_leave. */
MUST_USE bool api_enter(struct sluice_node *node);
void api_leave(struct sluice_node *node);

/* Until the condition, which is checked again after each wake. */
void api_wait(struct sluice_node *node,
        bool (*is_over)(const struct sluice_node *node, void *context), void *context);

/* node/api_call.c */

/* Counts in call-limit. False when it is reached. */
MUST_USE bool api_try_count_call(struct sluice_node *node);
void api_uncount_call(struct sluice_node *node);

/* The result is the call's: SLUICE_OK, or done is not called. */
MUST_USE enum sluice_result api_ask(struct sluice_node *node, sluice_answer_callback *done,
        void *context, api_begin *begin, const void *what);

/* Thread: any. answer.text is copied, and cut. */
void api_answer(struct api_call *CONSUMED call, struct sluice_answer answer);

/* node/api_envelope.c */

/*
 * A message that came neither by relay nor by publish: a copy, charged as a kept one is, with one
 * reference. Not to be seen before api_envelope_seal. SLUICE_LIMIT_REACHED: event-hold-limit.
 */
MUST_USE enum sluice_result api_envelope_make(struct sluice_envelope **out,
        struct sluice_node *node, struct span pubsub_topic, struct span message);

/* Decodes and hashes it. False: it is no WakuMessage. */
MUST_USE bool api_envelope_seal(struct sluice_envelope *envelope, int64_t received_ns);

/* A kept one of an envelope; NULL: no room. */
MUST_USE struct sluice_envelope *api_envelope_keep(
        struct sluice_node *node, struct envelope *BORROWED envelope);

/* node/api_service.c */

/* On io threads. */
void api_take_pushed(void *context, struct span pubsub_topic, struct span message);

/* *address is that of service. False: there is none in it. STATUS_BAD_ADDRESS: malformed. */
MUST_USE enum status api_read_service(
        struct multiaddr *address, bool *has_peer, const struct sluice_service *service);

/* node/api_subscribe.c */

void api_tell_pushed(struct sluice_node *node, struct sluice_envelope *BORROWED envelope);
void api_free_subscriptions(struct sluice_node *node);
void api_take_event(void *context, struct envelope *BORROWED envelope);
MUST_USE enum sluice_result api_join_subscribed(struct sluice_node *node);

/* node/api_publish.c */
struct span api_span(struct sluice_bytes bytes);

/* The shard of a content topic, with autosharding; *out points into name. */
MUST_USE enum sluice_result api_shard_topic(const struct sluice_node *node,
        const char *content_topic, char name[SHARD_TOPIC_MAX_BYTES], struct span *out);

/* The fields of a message that can be sent. SLUICE_BAD_ARGUMENT: it cannot. */
MUST_USE enum sluice_result api_fields(
        struct waku_message_view *out, const struct sluice_message *message);
void api_take_verdict(
        void *context, void *completion, const struct lane_decision *decision, size_t peer_count);
