/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The filter role: finds the subscribers of each accepted message in its table and hands each of them
 * the same envelope, once a message hash: bytes that differ and mean the same message are one message
 * to subscribers. It is the sole writer of its table: changes come as requests to its inbox.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/attributes.h"
#include "hash/seen_set.h"
#include "queues/envelope.h"
#include "queues/inbox.h"
#include "queues/progress.h"
#include "router/filter_link.h"
#include "router/subscriptions.h"
#include "workers/ring_set.h"
#include "workers/worker.h"

/* One message for one subscriber; must not block. The envelope is borrowed. */
typedef void filter_push(void *context, const struct subscriber_entry *subscriber,
        struct envelope *BORROWED envelope);

struct filter_worker {
    struct ring_set rings;
    struct inbox *BORROWED requests; /* its parking is the one of the rings */
    struct subscriptions *BORROWED subscriptions;
    struct progress *BORROWED progress;
    size_t progress_slot;
    filter_push *push; /* NULL: nobody in this process */
    void *push_context;
    struct filter_port port;          /* to subscribers elsewhere */
    struct seen_set *BORROWED pushed; /* message hashes, each pushed once; NULL: no such check */
    uint64_t next_expiry_ns;
    bool has_pushed; /* since the last flush */
};

struct worker_role filter_worker_role(struct filter_worker *worker, const char *name);
