/* SPDX-License-Identifier: MIT */
#include "workers/sync_worker.h"

#include "base/metrics.h"

enum {
    BATCH = 256
};

static void insert(struct sync_worker *worker, const struct id_record *record)
{
    switch (sync_set_insert(worker->set, record)) {
    case SYNC_INSERTED:
        metrics_add(LEDGER_SYNC_DELIVERED, 1);
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

static size_t turn(void *context)
{
    struct sync_worker *worker = context;
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

static bool has_work(void *context)
{
    struct sync_worker *worker = context;
    for (size_t lane = 0; lane < worker->lane_count; lane++) {
        if (id_ring_depth_estimate(worker->rings[lane]) > 0) {
            return true;
        }
    }
    return false;
}

struct worker_role sync_worker_role(struct sync_worker *worker, const char *name)
{
    return (struct worker_role){
            .name = name,
            .context = worker,
            .turn = turn,
            .has_work = has_work,
            .parking = worker->parking,
    };
}
