/* SPDX-License-Identifier: MIT */
#include "net/protocols/exchange_jobs.h"

#include "net/switch/connection.h"
#include "net/switch/stream.h"

static struct exchange_job **list_of(struct exchange_jobs *jobs, const struct io_loop *loop)
{
    return &jobs->first[io_loop_index(loop) % EXCHANGE_JOBS_LOOPS_MAX];
}

enum status exchange_jobs_add(
        struct exchange_jobs *jobs, struct exchange_job *job, struct exchange *exchange)
{
    struct connection *connection = stream_connection(exchange_stream(exchange));
    struct exchange_job **list = list_of(jobs, connection_loop(connection));
    size_t of_connection = 0;
    job->jobs = jobs;
    job->loop = connection_loop(connection);
    job->connection = connection_id(connection);
    for (const struct exchange_job *other = *list; other != NULL; other = other->next) {
        of_connection += other->connection == job->connection;
    }
    if (of_connection >= jobs->connection_max) {
        return STATUS_LIMIT_REACHED;
    }
    /* relaxed: nothing is read on the strength of the number */
    if (atomic_fetch_add_explicit(&jobs->count, 1, memory_order_relaxed) >= jobs->max) {
        atomic_fetch_sub_explicit(&jobs->count, 1, memory_order_relaxed);
        return STATUS_BUSY;
    }
    job->exchange = exchange;
    job->previous = NULL;
    job->next = *list;
    if (job->next != NULL) {
        job->next->previous = job;
    }
    *list = job;
    atomic_init(&job->is_cancelled, false);
    exchange_set_context(exchange, job);
    return STATUS_OK;
}

void exchange_job_abandon(struct exchange *exchange)
{
    struct exchange_job *job = exchange_context(exchange);
    if (job != NULL) {
        job->exchange = NULL;
        /* relaxed: it only saves work */
        atomic_store_explicit(&job->is_cancelled, true, memory_order_relaxed);
    }
}

bool exchange_job_is_cancelled(struct exchange_job *job)
{
    /* relaxed: as above */
    return atomic_load_explicit(&job->is_cancelled, memory_order_relaxed);
}

void exchange_job_post(struct exchange_job *job, void (*run)(struct io_task *task))
{
    job->task.run = run;
    io_loop_post(job->loop, &job->task);
}

void exchange_job_remove(struct exchange_job *job)
{
    struct exchange_jobs *jobs = job->jobs;
    if (job->next != NULL) {
        job->next->previous = job->previous;
    }
    if (job->previous != NULL) {
        job->previous->next = job->next;
    } else {
        *list_of(jobs, job->loop) = job->next;
    }
    /* relaxed: whoever waits for none reads nothing else of them */
    atomic_fetch_sub_explicit(&jobs->count, 1, memory_order_relaxed);
}

size_t exchange_jobs_count(struct exchange_jobs *jobs)
{
    /* relaxed: as above */
    return atomic_load_explicit(&jobs->count, memory_order_relaxed);
}
