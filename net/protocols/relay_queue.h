/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * What waits for one peer of relay, or for one subscriber of filter: control RPCs before messages,
 * both bounded in bytes, messages also in age, and all queues together by one budget. What is over a
 * bound goes, oldest first, counted by its reason in the queue's ledger, RELAY_OUT or FILTER_OUT
 * (control: METRIC_RELAY_CONTROL_DROPPED).
 *
 * A few messages wait as they are, since most wait for a moment only. What comes behind them, and what
 * still waits when relay_queue_settle comes, pins no larger frame and none of the frame budget.
 *
 * Ownership: a ticket in the queue holds its reference to the parcel.
 * Thread:    one a queue; the budget any.
 */

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/attributes.h"
#include "base/metrics.h"
#include "router/relay_link.h"

/* Messages of all queues, relay's and filter's. A slow peer's are charged, those of others never wait. */
struct relay_budget {
    _Atomic size_t bytes;
    size_t bytes_max;
};

/* How a ledger names what a queue drops. */
struct relay_queue_reasons {
    enum metric stale;
    enum metric queue_full;
    enum metric outbound_budget;
};

extern const struct relay_queue_reasons relay_queue_reasons_of_relay;
extern const struct relay_queue_reasons relay_queue_reasons_of_filter;

struct relay_queue_limits {
    size_t message_bytes_max;
    size_t message_overhead; /* counted for each message besides its bytes */
    size_t control_bytes_max;
    uint64_t age_max_ns; /* since the parcel was made */
    const struct relay_queue_reasons *reasons;
    _Atomic size_t *held; /* messages in all queues of these limits */
};

struct relay_ticket_list {
    struct relay_ticket *first;
    struct relay_ticket *last;
    size_t bytes;
    size_t count;
};

struct relay_queue {
    const struct relay_queue_limits *limits;
    struct relay_budget *budget;
    struct relay_ticket_list control;
    struct relay_ticket_list messages;
    uint64_t dropped; /* of both kinds, since init */
};

void relay_queue_init(struct relay_queue *queue, const struct relay_queue_limits *BORROWED limits,
        struct relay_budget *BORROWED budget);

void relay_queue_push(
        struct relay_queue *queue, struct relay_ticket *CONSUMED ticket, uint64_t now_ns);

/* Before all others, for one that has to be sent once more; dropped when there is no room. */
void relay_queue_put_back(struct relay_queue *queue, struct relay_ticket *CONSUMED ticket);

/* Now and then: what waits pins little but its own bytes from then on. */
void relay_queue_settle(struct relay_queue *queue);

/* The next to be sent, never a stale one; NULL: none. */
MUST_USE struct relay_ticket *relay_queue_try_pop(struct relay_queue *queue, uint64_t now_ns);

/* A message that is no longer to be sent. */
bool relay_queue_is_stale(
        const struct relay_queue *queue, const struct relay_ticket *ticket, uint64_t now_ns);

/* Drops the messages that have become stale. */
void relay_queue_expire(struct relay_queue *queue, uint64_t now_ns);

/* Drops everything; reason: of the messages. */
void relay_queue_clear(struct relay_queue *queue, enum metric reason);

static inline bool relay_queue_is_empty(const struct relay_queue *queue)
{
    return queue->control.first == NULL && queue->messages.first == NULL;
}
