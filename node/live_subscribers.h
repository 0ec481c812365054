/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The filter subscribers with the longest backlog, for the live page. The filter threads are asked and
 * nobody waits for them: each looks at a few subscribers at a time, and when it has seen all of its own
 * the list is replaced.
 *
 * Lifetime:  fini after the filter threads have ended.
 * Thread:    ask and json on the watch's.
 */

#include <jansson.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "net/identity/peer_id.h"
#include "router/filter_link.h"

enum {
    LIVE_SUBSCRIBERS_SHOWN = 10,
    LIVE_SUBSCRIBERS_STEP = 64 /* looked at by a filter thread at a time */
};

struct live_subscriber {
    struct peer_id peer;
    bool is_connected;
    uint64_t waiting;
    uint64_t waiting_bytes;
    uint64_t sent;
    uint64_t dropped;
};

struct live_subscriber_list {
    size_t count;
    struct live_subscriber rows[LIVE_SUBSCRIBERS_SHOWN]; /* longest backlog first */
};

/* One filter thread's part; the thread's own while is_asked. */
struct live_survey {
    struct filter_request request; /* first */
    struct live_subscribers *owner;
    atomic_bool is_asked; /* ASKED: release store -> acquire load, both ways */
    uint64_t next_id;
    struct live_subscriber_list now;
};

struct live_subscribers {
    pthread_mutex_t lock; /* of lists */
    struct live_subscriber_list lists[FILTER_THREADS_MAX];
    struct live_survey surveys[FILTER_THREADS_MAX];
};

void live_subscribers_init(struct live_subscribers *subscribers);
void live_subscribers_fini(struct live_subscribers *subscribers);

/* Has every filter thread that has answered look on. */
void live_subscribers_ask(
        struct live_subscribers *subscribers, const struct filter_link *filter_link);

/* [{"peer","connected","waiting","waitingBytes","sent","dropped"}]; NULL: no memory. */
json_t *live_subscribers_json(struct live_subscribers *subscribers);
