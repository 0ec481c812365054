/* SPDX-License-Identifier: MIT */
#include "workers/filter_worker.h"

#include <string.h>

#include "base/clock.h"
#include "base/duration.h"
#include "base/metrics.h"

enum {
    BATCH = 64,
    EXPIRE_AT_ONCE = 64
};

/* The hash is uniform, so its beginning is as good a key as any; it is looked at only to find more. */
static uint64_t key_of(const struct envelope *envelope)
{
    uint64_t key;
    memcpy(&key, envelope->hash, sizeof(key));
    return key;
}

/* Notes the message; without memory for that it is pushed all the same. */
static bool is_copy(struct filter_worker *worker, const struct envelope *envelope)
{
    struct seen_set *pushed = worker->pushed;
    uint64_t key = key_of(envelope);
    if (pushed == NULL) {
        return false;
    }
    if (seen_set_find_fast(pushed, 0, key) != NULL &&
            seen_set_contains(pushed, 0, envelope->hash)) {
        seen_set_renew(pushed, 0, key);
        metrics_add(METRIC_FILTER_COPIES, 1);
        return true;
    }
    (void)!seen_set_insert(pushed, 0, envelope->hash, key, clock_monotonic_ns());
    return false;
}

static void deliver(struct filter_worker *worker, struct envelope *envelope)
{
    const struct subscriber_list *list = subscriptions_find_list(
            worker->subscriptions, envelope->topic->name, envelope->content_topic);
    if (list == NULL || list->count == 0 || is_copy(worker, envelope)) {
        return;
    }
    for (size_t i = 0; worker->push != NULL && i < list->count; i++) {
        worker->push(worker->push_context, &list->entries[i], envelope);
    }
    if (worker->port.push != NULL) {
        worker->port.push(worker->port.context, list, envelope);
        worker->has_pushed = true;
    }
    metrics_add(METRIC_FILTER_PUSHES, list->count);
}

static void flush(struct filter_worker *worker)
{
    if (worker->has_pushed) {
        worker->has_pushed = false;
        worker->port.flush(worker->port.context);
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
    bool has_more = worker->pushed != NULL && seen_set_expire(worker->pushed, now);
    if (dropped < EXPIRE_AT_ONCE && !has_more) {
        worker->next_expiry_ns = now + NANOSECONDS_PER_SECOND;
    }
    return dropped + has_more;
}

static size_t turn(void *context)
{
    struct filter_worker *worker = context;
    struct envelope *envelopes[BATCH];
    size_t requests = carry_out_requests(worker);
    size_t expired = expire_when_due(worker);
    size_t count = ring_set_drain(&worker->rings, envelopes, BATCH);
    uint64_t began = count > 0 ? clock_monotonic_ns() : 0;
    for (size_t i = 0; i < count; i++) {
        deliver(worker, envelopes[i]);
        ring_set_release(&worker->rings, envelopes[i]);
    }
    flush(worker);
    if (count > 0) {
        uint64_t each = (clock_monotonic_ns() - began) / count;
        duration_observe(METRIC_FILTER_HANDLE_LE_5MS, each, count);
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
    bool has_pushed = worker->pushed != NULL && seen_set_count(worker->pushed) > 0;
    return subscriptions_peer_count(worker->subscriptions) > 0 || has_pushed
                   ? worker->next_expiry_ns
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
