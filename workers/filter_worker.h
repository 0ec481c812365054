/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The filter role: finds the subscribers of each accepted message in its table and hands each of them
 * the same envelope. It is the sole writer of its table: changes come as requests to its inbox.
 */

#include <stddef.h>
#include <stdint.h>

#include "base/attributes.h"
#include "queues/envelope.h"
#include "queues/inbox.h"
#include "queues/progress.h"
#include "router/subscriptions.h"
#include "workers/ring_set.h"
#include "workers/worker.h"

/* One message for one subscriber; must not block. The envelope is borrowed. */
typedef void filter_push(void *context, const struct subscriber_entry *subscriber,
        struct envelope *BORROWED envelope);

/* A change of the table, made on the filter thread, which then owns the request again. */
struct filter_request {
    struct inbox_link link;
    void (*carry_out)(struct filter_request *request, struct subscriptions *subscriptions);
};

struct filter_worker {
    struct ring_set rings;
    struct inbox *BORROWED requests; /* its parking is the one of the rings */
    struct subscriptions *BORROWED subscriptions;
    struct progress *BORROWED progress;
    size_t progress_slot;
    filter_push *push;
    void *push_context;
    uint64_t next_expiry_ns;
};

struct worker_role filter_worker_role(struct filter_worker *worker, const char *name);
