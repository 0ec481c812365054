/* SPDX-License-Identifier: MIT */
#include "workers/filter_worker.h"

#include "base/clock.h"
#include "base/metrics.h"

enum {
    BATCH = 64,
    EXPIRE_AT_ONCE = 64
};

static void deliver(struct filter_worker *worker, struct envelope *envelope)
{
    const struct subscriber_list *list = subscriptions_find_list(
            worker->subscriptions, envelope->topic->name, envelope->content_topic);
    for (size_t i = 0; list != NULL && i < list->count; i++) {
        worker->push(worker->push_context, &list->entries[i], envelope);
    }
    if (list != NULL) {
        metrics_add(METRIC_FILTER_PUSHES, list->count);
    }
}

static size_t carry_out_requests(struct filter_worker *worker)
{
    size_t count = 0;
    struct inbox_link *link;
    while (count < BATCH && (link = inbox_try_pop(worker->requests)) != NULL) {
        struct filter_request *request =
                (struct filter_request *)((char *)link - offsetof(struct filter_request, link));
        request->carry_out(request, worker->subscriptions);
        count++;
    }
    return count;
}

static size_t expire_when_due(struct filter_worker *worker)
{
    uint64_t now = clock_monotonic_ns();
    if (now < worker->next_expiry_ns) {
        return 0;
    }
    size_t dropped = subscriptions_expire(worker->subscriptions, now, EXPIRE_AT_ONCE);
    if (dropped < EXPIRE_AT_ONCE) {
        worker->next_expiry_ns = now + NANOSECONDS_PER_SECOND;
    }
    return dropped;
}

static size_t turn(void *context)
{
    struct filter_worker *worker = context;
    struct envelope *envelopes[BATCH];
    size_t requests = carry_out_requests(worker);
    size_t expired = expire_when_due(worker);
    size_t count = ring_set_drain(&worker->rings, envelopes, BATCH);
    for (size_t i = 0; i < count; i++) {
        deliver(worker, envelopes[i]);
        ring_set_release(&worker->rings, envelopes[i]);
    }
    if (count > 0) {
        metrics_add(LEDGER_FILTER_DELIVERED, count);
        progress_add(worker->progress, worker->progress_slot, count);
        progress_wake(worker->progress);
    }
    return count + requests + expired;
}

static bool has_work(void *context)
{
    struct filter_worker *worker = context;
    return !ring_set_is_empty(&worker->rings) || !inbox_is_empty(worker->requests);
}

static uint64_t deadline(void *context)
{
    struct filter_worker *worker = context;
    return subscriptions_peer_count(worker->subscriptions) > 0 ? worker->next_expiry_ns
                                                               : UINT64_MAX;
}

struct worker_role filter_worker_role(struct filter_worker *worker, const char *name)
{
    return (struct worker_role){
            .name = name,
            .context = worker,
            .turn = turn,
            .has_work = has_work,
            .deadline = deadline,
            .parking = inbox_parking(worker->requests),
    };
}
