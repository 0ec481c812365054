/* SPDX-License-Identifier: MIT */
#include "workers/event_worker.h"

#include "base/metrics.h"

enum {
    BATCH = 64
};

static size_t carry_out_tasks(struct event_worker *worker)
{
    size_t count = 0;
    struct inbox_link *link;
    while (count < BATCH && (link = inbox_try_pop(worker->tasks)) != NULL) {
        struct event_task *task =
                (struct event_task *)((char *)link - offsetof(struct event_task, link));
        worker_block_begin();
        task->carry_out(task);
        worker_block_end();
        count++;
    }
    return count;
}

static size_t deliver(struct event_worker *worker)
{
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
        ring_set_release(&worker->rings, envelopes[i]);
        metrics_add(LEDGER_EVENT_DELIVERED, 1);
        progress_add(worker->progress, worker->progress_slot, 1);
    }
    worker_block_end();
    progress_wake(worker->progress);
    return count;
}

static size_t turn(void *context)
{
    struct event_worker *worker = context;
    return deliver(worker) + carry_out_tasks(worker);
}

static bool has_work(void *context)
{
    struct event_worker *worker = context;
    return !ring_set_is_empty(&worker->rings) || !inbox_is_empty(worker->tasks);
}

void event_worker_post(struct event_worker *worker, struct event_task *task)
{
    inbox_push(worker->tasks, &task->link);
    parking_wake(worker->parking);
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
