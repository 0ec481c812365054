/* SPDX-License-Identifier: MIT */
#include "workers/query_worker.h"

#include "base/clock.h"
#include "base/duration.h"

static enum status start(void *context)
{
    struct query_worker *worker = context;
    return archive_reader_open(&worker->reader, worker->archive);
}

static void stop(void *context)
{
    struct query_worker *worker = context;
    archive_reader_close(&worker->reader);
}

static size_t turn(void *context)
{
    struct query_worker *worker = context;
    struct archive_job *job = archive_jobs_try_take(worker->jobs, worker->index);
    if (job == NULL) {
        return 0;
    }
    uint64_t began = clock_monotonic_ns();
    worker_block_begin();
    job->run(job, worker->reader);
    worker_block_end();
    archive_jobs_done(worker->jobs, worker->index);
    duration_observe(METRIC_ARCHIVE_QUERY_LE_5MS, clock_monotonic_ns() - began, 1);
    return 1;
}

static bool has_work(void *context)
{
    struct query_worker *worker = context;
    return archive_jobs_has_work(worker->jobs, worker->index);
}

struct worker_role query_worker_role(struct query_worker *worker, const char *name)
{
    return (struct worker_role){
            .name = name,
            .context = worker,
            .start = start,
            .turn = turn,
            .has_work = has_work,
            .stop = stop,
            .parking = archive_jobs_parking(worker->jobs, worker->index),
    };
}
