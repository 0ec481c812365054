/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Requests that another thread works on: where they came from, how many there are for each
 * connection and in all, and the way back to their io thread.
 *
 * Lifetime:  exchange_jobs outlive the switch and all jobs.
 * Thread:    add, abandon and remove on the connection's io thread; post and is_cancelled on the one
 *            that works on it; count on any.
 */

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/attributes.h"
#include "base/status.h"
#include "net/protocols/exchange.h"
#include "net/transport/io_loop.h"

enum {
    EXCHANGE_JOBS_LOOPS_MAX = 256
};

struct exchange_jobs {
    size_t connection_max; /* jobs of one connection; constant */
    size_t max;            /* of all; constant */
    atomic_size_t count;
    struct exchange_job *first[EXCHANGE_JOBS_LOOPS_MAX]; /* each belongs to its io thread */
};

/* First member of a job. */
struct exchange_job {
    struct io_task task;
    struct exchange_jobs *jobs;
    struct io_loop *loop;
    struct exchange *exchange; /* NULL: the peer is gone; belongs to the io thread */
    uint64_t connection;
    atomic_bool is_cancelled;
    struct exchange_job *next;
    struct exchange_job *previous;
};

/*
 * Makes job the exchange's context. STATUS_LIMIT_REACHED: the connection has as many as it may have;
 * STATUS_BUSY: there are as many as there may be. The job is then no job.
 */
MUST_USE enum status exchange_jobs_add(
        struct exchange_jobs *jobs, struct exchange_job *job, struct exchange *exchange);

/* What a server's `abandoned` has to do. */
void exchange_job_abandon(struct exchange *exchange);

/* Whether nobody waits for it any more. */
bool exchange_job_is_cancelled(struct exchange_job *job);

/* Has run called on the io thread, which then owns the job. */
void exchange_job_post(
        struct exchange_job *CONSUMED job, void (*run)(struct io_task *CONSUMED task));

/* It counts no longer. The memory is the caller's. */
void exchange_job_remove(struct exchange_job *job);

size_t exchange_jobs_count(struct exchange_jobs *jobs);

static inline struct exchange_job *exchange_job_of(struct io_task *task)
{
    return (struct exchange_job *)((char *)task - offsetof(struct exchange_job, task));
}
