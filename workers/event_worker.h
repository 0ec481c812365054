/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The event role: hands accepted messages to the application, in order of receipt by lane. A callback
 * that blocks stalls this role only: its ring fills up and what finds no room is dropped, counted.
 */

#include <stddef.h>

#include "base/attributes.h"
#include "queues/envelope.h"
#include "queues/progress.h"
#include "workers/ring_set.h"
#include "workers/worker.h"

/* The envelope is borrowed: take a reference to keep it. May block. */
typedef void event_callback(void *context, struct envelope *BORROWED envelope);

struct event_worker {
    struct ring_set rings;
    struct parking *BORROWED parking;
    struct progress *BORROWED progress;
    size_t progress_slot;
    event_callback *callback; /* NULL: nobody listens, delivered all the same */
    void *callback_context;
};

struct worker_role event_worker_role(struct event_worker *worker, const char *name);
