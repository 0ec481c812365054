/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * How io threads and filter threads speak about subscribers without knowing each other: requests go
 * to the filter thread that serves the peer, messages for subscribers come back by the port.
 */

#include <stddef.h>
#include <stdint.h>

#include "base/attributes.h"
#include "queues/envelope.h"
#include "queues/inbox.h"
#include "router/subscriptions.h"

enum {
    FILTER_THREADS_MAX = 16
};

/* Something to be done with a table, on the filter thread that owns it, which then owns the request. */
struct filter_request {
    struct inbox_link link;
    void (*carry_out)(struct filter_request *request, struct subscriptions *subscriptions);
};

/* The filter threads' inboxes; a subscriber is served by the one at its id modulo count. */
struct filter_link {
    struct inbox *threads[FILTER_THREADS_MAX];
    size_t count;
};

/* Posts and wakes. Thread: any. */
static inline void filter_link_post(
        const struct filter_link *filter_link, uint64_t id, struct filter_request *CONSUMED request)
{
    struct inbox *inbox = filter_link->threads[id % filter_link->count];
    inbox_push(inbox, &request->link);
    inbox_wake(inbox);
}

/*
 * Where a filter thread hands over a message for those on list; must not block. flush comes once a
 * turn, when there was something. Both are NULL where nobody takes them.
 */
struct filter_port {
    void (*push)(
            void *context, const struct subscriber_list *list, struct envelope *BORROWED envelope);
    void (*flush)(void *context);
    void *context;
};
