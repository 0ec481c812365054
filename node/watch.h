/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The watch: a thread of the node that looks at it once a second, keeps its health with the time since
 * when, logs what changes, and tells whoever listens.
 *
 * Lifetime:  init before the node's threads are made; fini after they have ended.
 * Thread:    watch_health on any; set_listener before the thread starts.
 */

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/attributes.h"
#include "node/health.h"
#include "node/reading.h"
#include "queues/parking.h"
#include "workers/worker.h"

enum {
    WATCH_PERIOD_MS = 1000
};

/* On the watch's thread, once a period: what was read, and which parts changed just now. */
struct watch_tick {
    const struct node_reading *reading;
    const struct node_reading *before; /* of the period before; all zero at first */
    const struct node_health *health;
    bool has_changed[HEALTH_PARTS];
};
typedef void watch_listener(void *context, const struct watch_tick *tick);

struct watch {
    struct parking parking;
    struct node *BORROWED node;
    uint64_t next_ns;
    struct node_reading *reading; /* the watch's own, as is the one before it */
    struct node_reading *before;
    uint64_t dropped_before[HEALTH_PARTS]; /* of the last period */
    uint64_t dropped_at_ns[HEALTH_PARTS];  /* monotonic; 0: never */
    bool has_lock;
    pthread_mutex_t lock; /* of health */
    struct node_health health;
    watch_listener *listener;
    void *listener_context;
};

MUST_USE enum status watch_init(struct watch *watch, struct node *BORROWED node);
void watch_fini(struct watch *watch);

struct worker_role watch_role(struct watch *watch, const char *name);

/* Judges a reading; watch_role does so once a period. Thread: the watch's, or a test's. */
void watch_judge(struct watch *watch, const struct node_reading *reading, bool *has_changed);
