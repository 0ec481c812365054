/* SPDX-License-Identifier: MIT */
#include "workers/event_worker.h"

#include "base/metrics.h"

enum {
    BATCH = 64
};

static size_t turn(void *context)
{
    struct event_worker *worker = context;
    struct envelope *envelopes[BATCH];
    size_t count = ring_set_drain(&worker->rings, envelopes, BATCH);
    if (count == 0) {
        return 0;
    }
    worker_block_begin();
    for (size_t i = 0; i < count; i++) {
        if (worker->callback != NULL) {
            worker->callback(worker->callback_context, envelopes[i]);
        }
        envelope_unref(envelopes[i]);
        metrics_add(LEDGER_EVENT_DELIVERED, 1);
        progress_add(worker->progress, worker->progress_slot, 1);
    }
    worker_block_end();
    progress_wake(worker->progress);
    return count;
}

static bool has_work(void *context)
{
    struct event_worker *worker = context;
    return !ring_set_is_empty(&worker->rings);
}

struct worker_role event_worker_role(struct event_worker *worker, const char *name)
{
    return (struct worker_role){
            .name = name,
            .context = worker,
            .turn = turn,
            .has_work = has_work,
            .parking = worker->parking,
    };
}
