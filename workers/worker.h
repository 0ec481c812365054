/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * One thread of the process: it runs the hooks of a role in a loop, and everything that a thread
 * owes to the rest happens here and nowhere else: its name, its processors, its row of metrics, its
 * RCU registration, a quiescent state each turn, and being offline before it sleeps.
 *
 * Lifetime:  create, start, request_stop, join, destroy, in this order.
 * Thread:    create, start, join and destroy on the owner's; request_stop and the readings on any.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/attributes.h"
#include "base/cpu_set.h"
#include "base/metrics.h"
#include "base/status.h"
#include "queues/parking.h"
#include "workers/idle.h"

/*
 * What a role does. All hooks but turn may be NULL; all run on the worker's thread but wake.
 *
 *   start      before the first turn; an error ends the thread and is returned by worker_start
 *   turn       one batch of work; the number of units done, 0 when there was nothing to do.
 *              It must not block while RCU-online: see worker_block_begin
 *   has_work   asked between the last empty turn and going to sleep
 *   deadline   monotonic time at which turn wants to run again at the latest; UINT64_MAX: none
 *   wait       sleeps instead of the parking, until wake or timeout_ns; called offline
 *   wake       any thread; NULL: parking_wake(parking)
 *   stop       after the last turn
 *
 * On a stop request turn is called until it returns 0, so queues are drained; a role whose producers
 * still run never gets there, hence the order in which node/ stops its roles.
 */
struct worker_role {
    const char *name; /* at most 15 bytes, shown by the operating system */
    void *context;
    enum status (*start)(void *context);
    size_t (*turn)(void *context);
    bool (*has_work)(void *context);
    uint64_t (*deadline)(void *context);
    void (*wait)(void *context, uint64_t timeout_ns);
    void (*wake)(void *context);
    void (*stop)(void *context);
    struct parking *BORROWED
            parking; /* what it sleeps on; may be NULL when wait and wake are set */
};

struct worker_options {
    const struct cpu_set *cpus; /* NULL: anywhere */
    enum idle_strategy idle;
    struct metrics *BORROWED metrics;
};

struct worker;

MUST_USE enum status worker_create(
        struct worker **out, const struct worker_role *role, const struct worker_options *options);

/* Returns when the role's start hook has succeeded on the new thread, or with its error. */
MUST_USE enum status worker_start(struct worker *worker);
void worker_request_stop(struct worker *worker);
void worker_join(struct worker *worker);
void worker_destroy(struct worker **worker);

/*
 * The worker does nothing until that monotonic time, as if it were blocked in a hook: for tests and
 * flood --stall. 0 or a stop request ends it. Any thread.
 */
void worker_stall(struct worker *worker, uint64_t until_ns);

/* Nanoseconds spent in turns that had work, and since the start. */
void worker_times(const struct worker *worker, uint64_t *busy_ns, uint64_t *total_ns);
const char *BORROWED worker_name(const struct worker *worker);
bool worker_is_started(const struct worker *worker);

/*
 * Around anything in a hook that can block (disk, database, a callback of the application): between
 * them only counted references may be held, no RCU pointer. Thread: a worker's.
 */
void worker_block_begin(void);
void worker_block_end(void);
