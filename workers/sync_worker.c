/* SPDX-License-Identifier: MIT */
#include "workers/sync_worker.h"

#include <string.h>

#include "base/clock.h"
#include "base/metrics.h"

enum {
    BATCH = 256,
    BATCH_JOBS = 16
};

/* A transfer brought what no peer was known to have for us, nor was asked whether it has. */
static bool is_unasked(const struct sync_worker *worker, const struct id_record *record)
{
    const struct sync_wanted *wanted = sync_set_wanted(worker->set);
    struct id_key key = {.timestamp_ns = record->timestamp_ns};
    if (wanted == NULL || !record->is_transferred) {
        return false;
    }
    memcpy(key.hash, record->hash, sizeof(key.hash));
    return !sync_wanted_contains(wanted, &key) && !sync_wanted_is_asked(wanted, key.timestamp_ns);
}

static void insert(struct sync_worker *worker, const struct id_record *record)
{
    bool is_stray = is_unasked(worker, record);
    switch (sync_set_insert(worker->set, record)) {
    case SYNC_INSERTED:
        metrics_add(LEDGER_SYNC_DELIVERED, 1);
        metrics_add(METRIC_SYNC_UNASKED, is_stray);
        return;
    case SYNC_DUPLICATE:
        metrics_add(LEDGER_SYNC_DUPLICATE, 1);
        return;
    case SYNC_TOO_OLD:
        metrics_add(LEDGER_SYNC_TOO_OLD, 1);
        return;
    case SYNC_NO_MEMORY:
        metrics_add(LEDGER_SYNC_NO_MEMORY, 1);
        return;
    }
}

static void note_gaps(struct sync_worker *worker)
{
    for (size_t lane = 0; lane < worker->lane_count; lane++) {
        int64_t from_ns;
        int64_t to_ns;
        while (dispatcher_take_gap(worker->dispatchers[lane], &from_ns, &to_ns)) {
            sync_set_mark_incomplete(worker->set, from_ns, to_ns);
        }
    }
}

static void wait_for_whole_set(struct sync_worker *worker, struct sync_job *job)
{
    if (worker->waiting == NULL) {
        worker->last_waiting = &worker->waiting;
        worker->patience_end_ns = clock_monotonic_ns() +
                                  (uint64_t)SYNC_FILL_PATIENCE_MS * NANOSECONDS_PER_MILLISECOND;
    }
    job->next = NULL;
    *worker->last_waiting = job;
    worker->last_waiting = &job->next;
}

static bool must_wait(const struct sync_worker *worker)
{
    return worker->fill != NULL && sync_fill_is_filling(worker->fill);
}

static size_t run_waiting(struct sync_worker *worker)
{
    size_t count = 0;
    if (worker->waiting == NULL ||
            (must_wait(worker) && clock_monotonic_ns() < worker->patience_end_ns)) {
        return 0;
    }
    while (worker->waiting != NULL) {
        struct sync_job *job = worker->waiting;
        worker->waiting = job->next;
        job->run(job, worker->set);
        count++;
    }
    return count;
}

static size_t run_jobs(struct sync_worker *worker)
{
    size_t count = 0;
    struct sync_job *job = NULL;
    if (worker->jobs == NULL) {
        return 0;
    }
    while (count < BATCH_JOBS && (job = sync_job_of(inbox_try_pop(worker->jobs))) != NULL) {
        if (job->needs_whole_set && must_wait(worker)) {
            wait_for_whole_set(worker, job);
        } else {
            job->run(job, worker->set);
        }
        count++;
    }
    return count + run_waiting(worker);
}

static size_t take_ids(struct sync_worker *worker)
{
    size_t count = 0;
    for (size_t lane = 0; lane < worker->lane_count; lane++) {
        struct id_record record;
        size_t limit = count + BATCH;
        while (count < limit && id_ring_try_pop(worker->rings[lane], &record)) {
            insert(worker, &record);
            count++;
        }
    }
    /* Also without ids: the last ones may have been lost. */
    note_gaps(worker);
    if (count > 0) {
        progress_add(worker->progress, worker->progress_slot, count);
        progress_wake(worker->progress);
    }
    return count;
}

/* Where nobody syncs, the set is no larger than where somebody does. */
static size_t prune_when_due(struct sync_worker *worker)
{
    uint64_t now_ns = clock_monotonic_ns();
    if (worker->keep_ns == 0 || worker->fill != NULL || now_ns < worker->next_prune_ns) {
        return 0;
    }
    int64_t wall_ns = clock_wall_ns();
    int64_t before_ns = wall_ns > worker->keep_ns ? wall_ns - worker->keep_ns : 0;
    if (sync_set_covered_from(worker->set) > wall_ns) {
        sync_set_uncover(worker->set, before_ns); /* the clock was ahead */
    }
    size_t pruned = sync_set_prune(worker->set, before_ns, SYNC_PRUNE_STEP_IDS);
    metrics_add(METRIC_SYNC_PRUNED, pruned);
    worker->next_prune_ns =
            pruned == SYNC_PRUNE_STEP_IDS ? 0 : now_ns + (uint64_t)NANOSECONDS_PER_SECOND;
    return pruned;
}

/* Ids that were to come from a peer and did not. */
static size_t tend_wanted(struct sync_worker *worker)
{
    struct sync_wanted *wanted = sync_set_wanted(worker->set);
    if (wanted == NULL) {
        return 0;
    }
    return sync_wanted_tend(wanted, clock_monotonic_ns() / NANOSECONDS_PER_MILLISECOND);
}

static size_t turn(void *context)
{
    struct sync_worker *worker = context;
    size_t done = take_ids(worker);
    if (worker->fill != NULL) {
        done += sync_fill_turn(worker->fill, worker->set);
    }
    done += prune_when_due(worker);
    done += tend_wanted(worker);
    done += run_jobs(worker);
    /* relaxed: a reading */
    atomic_store_explicit(&worker->set_count, sync_set_count(worker->set), memory_order_relaxed);
    return done;
}

static bool has_work(void *context)
{
    struct sync_worker *worker = context;
    for (size_t lane = 0; lane < worker->lane_count; lane++) {
        if (id_ring_depth_estimate(worker->rings[lane]) > 0) {
            return true;
        }
    }
    return worker->jobs != NULL && !inbox_is_empty(worker->jobs);
}

static uint64_t deadline(void *context)
{
    struct sync_worker *worker = context;
    uint64_t next_ns = worker->keep_ns > 0 ? worker->next_prune_ns : UINT64_MAX;
    if (worker->fill != NULL) {
        next_ns = sync_fill_deadline(worker->fill);
    }
    bool is_first = worker->waiting != NULL && worker->patience_end_ns < next_ns;
    return is_first ? worker->patience_end_ns : next_ns;
}

struct worker_role sync_worker_role(struct sync_worker *worker, const char *name)
{
    return (struct worker_role){
            .name = name,
            .context = worker,
            .turn = turn,
            .has_work = has_work,
            .deadline = deadline,
            .parking = worker->parking,
    };
}
