/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The event role: hands accepted messages to the application, in order of receipt by lane, and carries
 * out tasks that others post for it. A callback that blocks stalls this role only: its ring fills up
 * and what finds no room is dropped, counted.
 */

#include <stddef.h>

#include "base/attributes.h"
#include "queues/envelope.h"
#include "queues/inbox.h"
#include "queues/progress.h"
#include "workers/ring_set.h"
#include "workers/worker.h"

/* The envelope is borrowed: take a reference to keep it. May block. */
typedef void event_callback(void *context, struct envelope *BORROWED envelope);

/* Something to be called on the event thread, which then owns the task. May block. */
struct event_task {
    struct inbox_link link;
    void (*carry_out)(struct event_task *CONSUMED task);
};

struct event_worker {
    struct ring_set rings;
    struct inbox *BORROWED tasks; /* of struct event_task; posted by event_worker_post */
    struct parking *BORROWED parking;
    struct progress *BORROWED progress;
    size_t progress_slot;
    event_callback *callback; /* NULL: nobody listens, delivered all the same */
    void *callback_context;
};

/* Any thread, until the worker is asked to stop. Never refuses: whoever posts has a cap of its own. */
void event_worker_post(struct event_worker *worker, struct event_task *CONSUMED task);

struct worker_role event_worker_role(struct event_worker *worker, const char *name);
