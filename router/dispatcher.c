/* SPDX-License-Identifier: MIT */
#include "router/dispatcher.h"

#include <string.h>

#include "base/metrics.h"
#include "hash/fast_key.h"

/*
 * Ordering:
 *
 *   GAP  release store that lets a gap go -> acquire compare-exchange that takes hold of it. Who holds
 *        it sees the times as the other one left them.
 */
enum gap_state {
    GAP_EMPTY,
    GAP_NOTED,
    GAP_HELD
};

void dispatcher_init(struct dispatcher *dispatcher)
{
    memset(dispatcher, 0, sizeof(*dispatcher));
    for (size_t i = 0; i < DISPATCHER_GAPS; i++) {
        atomic_init(&dispatcher->sync_gaps[i].state, GAP_EMPTY);
    }
}

/* Refused or dropped: the stage is done with it. */
static void finish(struct dispatcher *dispatcher, size_t slot, enum metric reason)
{
    metrics_add(reason, 1);
    progress_add(dispatcher->progress, slot, 1);
}

/* Where an envelope may go, and what is counted when it may not. */
struct outlet {
    struct spmc_ring *ring;
    struct stage_load *load;
    size_t slot;
    bool has_share; /* it may hold back its share of the budget only */
    enum metric ring_full;
    enum metric over_share;
};

/* Looks at the other lanes only when this one has its part of the share. One envelope always fits. */
static bool is_over_share(
        const struct dispatcher *dispatcher, const struct outlet *outlet, size_t bytes)
{
    size_t share = frame_budget_limit(dispatcher->budget) / DISPATCHER_SHARE;
    size_t own = stage_load_of_lane(outlet->load, dispatcher->lane);
    if (!outlet->has_share || own + bytes <= share / outlet->load->lane_count) {
        return false;
    }
    size_t held = stage_load_bytes(outlet->load);
    return held > 0 && held + bytes > share;
}

/* False when it was dropped. */
static bool push_or_drop(
        struct dispatcher *dispatcher, const struct outlet *outlet, struct envelope *envelope)
{
    enum metric reason = outlet->over_share;
    size_t bytes = stage_load_of(envelope);
    if (!is_over_share(dispatcher, outlet, bytes)) {
        /* Before the push: the worker may be done with it at once. */
        stage_load_add(outlet->load, dispatcher->lane, bytes);
        if (spmc_ring_try_push(outlet->ring, envelope)) {
            return true;
        }
        stage_load_remove(outlet->load, dispatcher->lane, bytes);
        reason = outlet->ring_full;
    }
    finish(dispatcher, outlet->slot, reason);
    envelope_unref(envelope);
    return false;
}

/* False when there was no room for it. */
static bool offer_archive(struct dispatcher *dispatcher, struct envelope *envelope)
{
    metrics_add(LEDGER_ARCHIVE_RECEIVED, 1);
    if (envelope->is_ephemeral || !envelope->is_timestamp_in_range) {
        enum metric reason = envelope->is_ephemeral ? LEDGER_ARCHIVE_EPHEMERAL
                                                    : LEDGER_ARCHIVE_TIMESTAMP_OUT_OF_RANGE;
        finish(dispatcher, dispatcher->slot_archive, reason);
        envelope_unref(envelope);
        return true;
    }
    struct outlet outlet = {.ring = dispatcher->archive,
            .load = dispatcher->archive_load,
            .slot = dispatcher->slot_archive,
            .has_share = dispatcher->spill == NULL,
            .ring_full = LEDGER_ARCHIVE_ARCHIVE_UNAVAILABLE,
            .over_share = LEDGER_ARCHIVE_ARCHIVE_UNAVAILABLE};
    return push_or_drop(dispatcher, &outlet, envelope);
}

static bool try_hold(struct dispatcher_gap *gap, int state)
{
    return atomic_compare_exchange_strong_explicit(
            &gap->state, &state, GAP_HELD, memory_order_acquire, memory_order_relaxed); /* GAP */
}

static void let_go(struct dispatcher_gap *gap, int state)
{
    atomic_store_explicit(&gap->state, state, memory_order_release); /* GAP */
}

static void record_gap(struct dispatcher *dispatcher, int64_t timestamp_ns)
{
    /* Ends because the sync worker holds one gap at most, and each time another one only by taking it. */
    for (size_t i = 0;; i = (i + 1) % DISPATCHER_GAPS) {
        struct dispatcher_gap *gap = &dispatcher->sync_gaps[i];
        if (try_hold(gap, GAP_NOTED)) {
            gap->from_ns = timestamp_ns < gap->from_ns ? timestamp_ns : gap->from_ns;
            gap->to_ns = timestamp_ns > gap->to_ns ? timestamp_ns : gap->to_ns;
        } else if (try_hold(gap, GAP_EMPTY)) {
            gap->from_ns = timestamp_ns;
            gap->to_ns = timestamp_ns;
        } else {
            continue;
        }
        let_go(gap, GAP_NOTED);
        return;
    }
}

/* is_lost: the archive had no room for it, so it is not there to be given to others. */
static void offer_sync(struct dispatcher *dispatcher, const struct envelope *envelope, bool is_lost)
{
    metrics_add(LEDGER_SYNC_RECEIVED, 1);
    if (envelope->is_ephemeral || !envelope->is_timestamp_in_range) {
        enum metric reason =
                envelope->is_ephemeral ? LEDGER_SYNC_EPHEMERAL : LEDGER_SYNC_TIMESTAMP_OUT_OF_RANGE;
        finish(dispatcher, dispatcher->slot_sync, reason);
        return;
    }
    if (is_lost) {
        finish(dispatcher, dispatcher->slot_sync, LEDGER_SYNC_NOT_ARCHIVED);
        return;
    }
    struct id_record record = {
            .timestamp_ns = envelope->timestamp_ns,
            .topic = envelope->topic,
            .content_topic_key = fast_key_of_bytes(envelope->content_topic),
            .is_transferred = envelope->origin == ORIGIN_SYNC,
    };
    memcpy(record.hash, envelope->hash, sizeof(record.hash));
    if (!id_ring_try_push(dispatcher->sync, &record)) {
        record_gap(dispatcher, envelope->timestamp_ns);
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
        struct outlet outlet = {.ring = dispatcher->filters[i],
                .load = dispatcher->filter_loads[i],
                .slot = dispatcher->slot_filters[i],
                .has_share = true,
                .ring_full = LEDGER_FILTER_RING_FULL,
                .over_share = LEDGER_FILTER_OVER_SHARE};
        (void)push_or_drop(dispatcher, &outlet, envelope);
    }
    if (dispatcher->event != NULL) {
        metrics_add(LEDGER_EVENT_RECEIVED, 1);
        struct outlet outlet = {.ring = dispatcher->event,
                .load = dispatcher->event_load,
                .slot = dispatcher->slot_event,
                .has_share = true,
                .ring_full = LEDGER_EVENT_RING_FULL,
                .over_share = LEDGER_EVENT_OVER_SHARE};
        (void)push_or_drop(dispatcher, &outlet, envelope);
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
    bool is_lost = dispatcher->archive != NULL && !offer_archive(dispatcher, envelope);
    if (dispatcher->sync != NULL) {
        offer_sync(dispatcher, envelope, is_lost);
    }
    if (live) {
        offer_live_stages(dispatcher, envelope);
    } else {
        skip_live_stages(dispatcher);
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

bool dispatcher_is_archive_full(struct dispatcher *dispatcher, size_t count)
{
    if (dispatcher->archive == NULL || spmc_ring_depth_estimate(dispatcher->archive) + count <
                                               spmc_ring_capacity(dispatcher->archive)) {
        return false;
    }
    if (dispatcher->spill != NULL) {
        parking_wake(dispatcher->spill);
    }
    return true;
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
    for (size_t i = 0; i < DISPATCHER_GAPS; i++) {
        struct dispatcher_gap *gap = &dispatcher->sync_gaps[i];
        /* relaxed: a look that spares the lane's line; what is noted later is found by a later call */
        if (atomic_load_explicit(&gap->state, memory_order_relaxed) == GAP_NOTED &&
                try_hold(gap, GAP_NOTED)) {
            *from_ns = gap->from_ns;
            *to_ns = gap->to_ns;
            let_go(gap, GAP_EMPTY);
            return true;
        }
    }
    return false;
}
