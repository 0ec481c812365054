/* SPDX-License-Identifier: MIT */
#include "router/dispatcher.h"

#include <string.h>

#include "base/metrics.h"
#include "hash/fast_key.h"

void dispatcher_init(struct dispatcher *dispatcher)
{
    memset(dispatcher, 0, sizeof(*dispatcher));
    atomic_init(&dispatcher->sync_gap.from_ns, INT64_MAX);
    atomic_init(&dispatcher->sync_gap.to_ns, INT64_MIN);
}

/* Refused or dropped: the stage is done with it. */
static void finish(struct dispatcher *dispatcher, size_t slot, enum metric reason)
{
    metrics_add(reason, 1);
    progress_add(dispatcher->progress, slot, 1);
}

static void push_or_drop(struct dispatcher *dispatcher, struct spmc_ring *ring, size_t slot,
        struct envelope *envelope, enum metric reason)
{
    if (!spmc_ring_try_push(ring, envelope)) {
        finish(dispatcher, slot, reason);
        envelope_unref(envelope);
    }
}

static void offer_archive(struct dispatcher *dispatcher, struct envelope *envelope)
{
    metrics_add(LEDGER_ARCHIVE_RECEIVED, 1);
    if (envelope->is_ephemeral || !envelope->is_timestamp_in_range) {
        enum metric reason = envelope->is_ephemeral ? LEDGER_ARCHIVE_EPHEMERAL
                                                    : LEDGER_ARCHIVE_TIMESTAMP_OUT_OF_RANGE;
        finish(dispatcher, dispatcher->slot_archive, reason);
        envelope_unref(envelope);
        return;
    }
    push_or_drop(dispatcher, dispatcher->archive, dispatcher->slot_archive, envelope,
            LEDGER_ARCHIVE_ARCHIVE_UNAVAILABLE);
}

/* GAP: the release store of to_ns -> the acquire exchange of to_ns in take_gap; from_ns is seen too. */
static void record_gap(struct dispatcher_gap *gap, int64_t timestamp_ns)
{
    /* relaxed: from_ns only ever falls between two takes, and to_ns below orders it */
    if (timestamp_ns < atomic_load_explicit(&gap->from_ns, memory_order_relaxed)) {
        atomic_store_explicit(&gap->from_ns, timestamp_ns, memory_order_relaxed);
    }
    if (timestamp_ns > atomic_load_explicit(&gap->to_ns, memory_order_relaxed)) {
        atomic_store_explicit(&gap->to_ns, timestamp_ns, memory_order_release); /* GAP */
    }
}

static void offer_sync(struct dispatcher *dispatcher, const struct envelope *envelope)
{
    metrics_add(LEDGER_SYNC_RECEIVED, 1);
    if (envelope->is_ephemeral || !envelope->is_timestamp_in_range) {
        enum metric reason =
                envelope->is_ephemeral ? LEDGER_SYNC_EPHEMERAL : LEDGER_SYNC_TIMESTAMP_OUT_OF_RANGE;
        finish(dispatcher, dispatcher->slot_sync, reason);
        return;
    }
    struct id_record record = {
            .timestamp_ns = envelope->timestamp_ns,
            .topic = envelope->topic,
            .content_topic_key = fast_key_of_bytes(envelope->content_topic),
    };
    memcpy(record.hash, envelope->hash, sizeof(record.hash));
    if (!id_ring_try_push(dispatcher->sync, &record)) {
        record_gap(&dispatcher->sync_gap, envelope->timestamp_ns);
        finish(dispatcher, dispatcher->slot_sync, LEDGER_SYNC_RING_FULL);
    }
}

/* What came in by sync or resume is not live: archive and sync set only. */
static bool is_live(const struct envelope *envelope)
{
    return envelope->origin != ORIGIN_SYNC && envelope->origin != ORIGIN_RESUME;
}

static void offer_live_stages(struct dispatcher *dispatcher, struct envelope *envelope)
{
    for (size_t i = 0; i < dispatcher->filter_count; i++) {
        metrics_add(LEDGER_FILTER_RECEIVED, 1);
        push_or_drop(dispatcher, dispatcher->filters[i], dispatcher->slot_filters[i], envelope,
                LEDGER_FILTER_RING_FULL);
    }
    if (dispatcher->event != NULL) {
        metrics_add(LEDGER_EVENT_RECEIVED, 1);
        push_or_drop(dispatcher, dispatcher->event, dispatcher->slot_event, envelope,
                LEDGER_EVENT_RING_FULL);
    }
}

/* For a closed-loop producer a stage that is not offered a message is done with it. */
static void skip_live_stages(struct dispatcher *dispatcher)
{
    for (size_t i = 0; i < dispatcher->filter_count; i++) {
        progress_add(dispatcher->progress, dispatcher->slot_filters[i], 1);
    }
    if (dispatcher->event != NULL) {
        progress_add(dispatcher->progress, dispatcher->slot_event, 1);
    }
}

void dispatcher_publish(struct dispatcher *dispatcher, struct envelope *envelope)
{
    bool live = is_live(envelope);
    unsigned references = dispatcher->archive != NULL ? 1 : 0;
    references += live ? (unsigned)dispatcher->filter_count + (dispatcher->event != NULL) : 0;
    if (references > 0) {
        envelope_ref_many(envelope, references);
    }
    if (dispatcher->sync != NULL) {
        offer_sync(dispatcher, envelope);
    }
    if (live) {
        offer_live_stages(dispatcher, envelope);
    } else {
        skip_live_stages(dispatcher);
    }
    if (dispatcher->archive != NULL) {
        offer_archive(dispatcher, envelope);
    }
    envelope_unref(envelope);
    dispatcher->has_pushed = true;
}

static void wake_spill_when_needed(struct dispatcher *dispatcher)
{
    if (dispatcher->spill == NULL || dispatcher->archive == NULL) {
        return;
    }
    size_t depth = spmc_ring_depth_estimate(dispatcher->archive);
    if (dispatcher_is_archive_behind(depth, spmc_ring_capacity(dispatcher->archive),
                dispatcher->budget, DISPATCHER_BEHIND_FROM)) {
        parking_wake(dispatcher->spill);
    }
}

void dispatcher_flush(struct dispatcher *dispatcher)
{
    if (!dispatcher->has_pushed) {
        return;
    }
    dispatcher->has_pushed = false;
    if (dispatcher->archive != NULL) {
        spmc_ring_wake(dispatcher->archive);
        wake_spill_when_needed(dispatcher);
    }
    for (size_t i = 0; i < dispatcher->filter_count; i++) {
        spmc_ring_wake(dispatcher->filters[i]);
    }
    if (dispatcher->sync != NULL) {
        id_ring_wake(dispatcher->sync);
    }
    if (dispatcher->event != NULL) {
        spmc_ring_wake(dispatcher->event);
    }
}

bool dispatcher_take_gap(struct dispatcher *dispatcher, int64_t *from_ns, int64_t *to_ns)
{
    struct dispatcher_gap *gap = &dispatcher->sync_gap;
    *to_ns = atomic_exchange_explicit(&gap->to_ns, INT64_MIN, memory_order_acquire); /* GAP */
    /* relaxed: see below */
    *from_ns = atomic_exchange_explicit(&gap->from_ns, INT64_MAX, memory_order_relaxed);
    if (*from_ns == INT64_MAX && *to_ns == INT64_MIN) {
        return false;
    }
    /* The lane was between its two stores: the end that is there stands for both, and the other one
     * comes with the next call in the same way. */
    if (*from_ns > *to_ns) {
        int64_t there = *to_ns == INT64_MIN ? *from_ns : *to_ns;
        *from_ns = there;
        *to_ns = there;
    }
    return true;
}
