/* SPDX-License-Identifier: MIT */
#pragma once

/* What stands behind include/sluice.h, for node/api*.c only. */

#include <pthread.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "base/options.h"
#include "include/sluice.h"
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
    const struct topic *topic; /* NULL: all */
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

    alignas(CACHE_LINE) pthread_mutex_t control; /* the topic registry has one writer at a time */
    struct node *node;
    struct sluice_options *options;
    size_t held_max;
    size_t publishes_max;
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
};

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

/* node/api_subscribe.c */
void api_take_event(void *context, struct envelope *BORROWED envelope);
MUST_USE enum sluice_result api_join_subscribed(struct sluice_node *node);

/* node/api_publish.c */
void api_take_verdict(
        void *context, void *completion, const struct lane_decision *decision, size_t peer_count);
