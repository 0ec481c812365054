/* SPDX-License-Identifier: MIT */
#include "workers/tend_worker.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/metrics.h"

static const char module[] = "archive";

static enum status start(void *context)
{
    struct tend_worker *worker = context;
    worker_block_begin();
    enum status status = archive_tender_open(&worker->tender, worker->archive);
    worker_block_end();
    if (status != STATUS_OK) {
        worker->tender = NULL;
        log_write(LOG_WARN, module, "no tender: %s; storing waits for the disk more often",
                status_text(status));
    }
    return STATUS_OK;
}

static void stop(void *context)
{
    struct tend_worker *worker = context;
    worker_block_begin();
    archive_tender_close(&worker->tender);
    worker_block_end();
}

static bool has_work(void *context)
{
    struct tend_worker *worker = context;
    return archive_tender_due_ns(worker->tender) <= clock_monotonic_ns();
}

static size_t turn(void *context)
{
    static struct log_limit limit;
    struct tend_worker *worker = context;
    if (!has_work(worker)) {
        return 0;
    }
    worker_block_begin();
    enum status status = archive_tend(worker->tender);
    worker_block_end();
    if (status != STATUS_OK) {
        metrics_add(METRIC_ARCHIVE_TEND_FAILURES, 1);
        log_write_limited(&limit, LOG_ERROR, module,
                "the index's journal could not be taken in, or a file not be removed: %s",
                status_text(status));
    }
    /* No work in the sense of a turn: a stop does not wait for it. */
    return 0;
}

static uint64_t deadline(void *context)
{
    struct tend_worker *worker = context;
    return archive_tender_due_ns(worker->tender);
}

struct worker_role tend_worker_role(struct tend_worker *worker, const char *name)
{
    return (struct worker_role){
            .name = name,
            .context = worker,
            .start = start,
            .turn = turn,
            .has_work = has_work,
            .deadline = deadline,
            .stop = stop,
            .parking = worker->parking,
    };
}
