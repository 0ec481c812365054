/* SPDX-License-Identifier: MIT */
#include "workers/archive_worker.h"

#include "archive/tender.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/metrics.h"
#include "router/dispatcher.h"

enum {
    RETRY_FIRST_MS = 50,
    RETRY_LAST_MS = 2000,
    SPILL_BATCH = 64,     /* envelopes the spill thread takes at once */
    FILL_STEP = 8,        /* envelopes between two looks at the bytes of the batch */
    BATCH_BUDGET_PART = 4 /* of the memory budget, in one batch at most */
};

static void publish_extent(struct archive_stage *stage, const struct archive_totals *totals)
{
    /* relaxed: readings, each right by itself */
    atomic_store_explicit(&stage->extent.count, totals->count, memory_order_relaxed);
    atomic_store_explicit(&stage->extent.size_bytes, totals->size_bytes, memory_order_relaxed);
    atomic_store_explicit(&stage->extent.oldest_ns, totals->oldest_ns, memory_order_relaxed);
    atomic_store_explicit(&stage->extent.newest_ns, totals->newest_ns, memory_order_relaxed);
}

enum status archive_stage_init(struct archive_stage *stage)
{
    if (pthread_mutex_init(&stage->spill_lock, NULL) != 0) {
        return STATUS_NO_MEMORY;
    }
    if (stage->batch_max > ARCHIVE_BATCH_MAX) {
        stage->batch_max = ARCHIVE_BATCH_MAX;
    }
    stage->batch_count = 0;
    stage->retry_at_ns = 0;
    stage->retry_delay_ns = 0;
    stage->is_spilling = false;
    stage->batch_bytes = 0;
    stage->inherited = stage->spill != NULL ? spill_count(stage->spill) : 0;
    atomic_init(&stage->health, STATUS_OK);
    atomic_init(&stage->failing_since_ns, 0);
    atomic_init(&stage->batch_held, 0);
    atomic_init(&stage->spill_held, stage->inherited);
    retention_init(&stage->retention, stage->archive, &stage->retention_policy, retention_now());
    stage->extent_due_ns = 0;
    publish_extent(stage, &(struct archive_totals){0});
    return STATUS_OK;
}

void archive_stage_fini(struct archive_stage *stage)
{
    pthread_mutex_destroy(&stage->spill_lock);
}

size_t archive_stage_held(const struct archive_stage *stage)
{
    /* relaxed: each is right by itself; together they are exact once the threads are idle */
    return ring_set_depth(&stage->archive_rings) +
           atomic_load_explicit(&stage->batch_held, memory_order_relaxed) +
           atomic_load_explicit(&stage->spill_held, memory_order_relaxed);
}

size_t archive_stage_spilled(const struct archive_stage *stage)
{
    /* relaxed: a reading */
    return atomic_load_explicit(&stage->spill_held, memory_order_relaxed);
}

enum status archive_stage_health(const struct archive_stage *stage, uint64_t *since_ns)
{
    /* relaxed: readings */
    *since_ns = atomic_load_explicit(&stage->failing_since_ns, memory_order_relaxed);
    return (enum status)atomic_load_explicit(&stage->health, memory_order_relaxed);
}

struct archive_totals archive_stage_extent(const struct archive_stage *stage)
{
    /* relaxed: as above */
    return (struct archive_totals){
            .count = atomic_load_explicit(&stage->extent.count, memory_order_relaxed),
            .size_bytes = atomic_load_explicit(&stage->extent.size_bytes, memory_order_relaxed),
            .oldest_ns = atomic_load_explicit(&stage->extent.oldest_ns, memory_order_relaxed),
            .newest_ns = atomic_load_explicit(&stage->extent.newest_ns, memory_order_relaxed),
    };
}

static void set_held(atomic_size_t *held, size_t count)
{
    /* relaxed: a reading for others */
    atomic_store_explicit(held, count, memory_order_relaxed);
}

static void report_failure(struct archive_stage *stage, enum status status)
{
    static struct log_limit limit;
    uint64_t delay = stage->retry_delay_ns * 2;
    uint64_t first = (uint64_t)RETRY_FIRST_MS * NANOSECONDS_PER_MILLISECOND;
    uint64_t last = (uint64_t)RETRY_LAST_MS * NANOSECONDS_PER_MILLISECOND;
    delay = delay < first ? first : delay > last ? last : delay;
    uint64_t now = clock_monotonic_ns();
    if (stage->retry_delay_ns == 0) {
        atomic_store_explicit(&stage->failing_since_ns, now, memory_order_relaxed);
    }
    stage->retry_delay_ns = delay;
    stage->retry_at_ns = now + delay;
    atomic_store_explicit(&stage->health, (int)status, memory_order_relaxed);
    metrics_add(METRIC_ARCHIVE_FAILURES, 1);
    log_write_limited(&limit, LOG_ERROR, "archive", "the batch was refused: %s; it is tried again",
            status_text(status));
    /* Who waits for the archive looks at its health. */
    progress_alert(stage->progress);
}

/* expected: how many of them a producer of this process may wait for. */
static void report_success(
        struct archive_stage *stage, const struct archive_put_result *result, size_t expected)
{
    if (stage->retry_delay_ns != 0) {
        log_write(LOG_NOTICE, "archive", "archiving again");
    }
    stage->retry_delay_ns = 0;
    stage->retry_at_ns = 0;
    atomic_store_explicit(&stage->health, STATUS_OK, memory_order_relaxed);
    atomic_store_explicit(&stage->failing_since_ns, 0, memory_order_relaxed);
    metrics_add(METRIC_ARCHIVE_BATCHES, 1);
    metrics_add(LEDGER_ARCHIVE_DELIVERED, result->stored);
    metrics_add(LEDGER_ARCHIVE_DUPLICATE, result->duplicates);
    progress_add(stage->progress, stage->archive_slot, expected);
    progress_wake(stage->progress);
}

static void acknowledge(const struct archive_stage *stage, const uint8_t *hash)
{
    if (stage->acknowledge != NULL) {
        stage->acknowledge(stage->acknowledge_context, hash);
    }
}

/* Gives the batch in hand to the engine; on failure it stays in hand. */
static bool put_batch(struct archive_stage *stage)
{
    struct archive_put_result result;
    worker_block_begin();
    size_t count = stage->batch_count;
    enum status status = archive_put(stage->archive, stage->batch, count, &result);
    for (size_t i = 0; status == STATUS_OK && i < count; i++) {
        acknowledge(stage, stage->batch[i]->hash);
    }
    worker_block_end();
    if (status != STATUS_OK) {
        report_failure(stage, status);
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        ring_set_release(&stage->archive_rings, stage->batch[i]);
    }
    stage->batch_count = 0;
    stage->batch_bytes = 0;
    set_held(&stage->batch_held, 0);
    report_success(stage, &result, count);
    return true;
}

/* What waits for a blocked engine can no longer be spilled, so it is bounded in bytes too. */
static size_t fill_batch(struct archive_stage *stage)
{
    size_t before = stage->batch_count;
    size_t limit = frame_budget_limit(stage->budget) / BATCH_BUDGET_PART;
    size_t taken = 1;
    while (taken > 0 && stage->batch_bytes < limit) {
        struct envelope **next = stage->batch + stage->batch_count;
        size_t room = stage->batch_max - stage->batch_count;
        taken = ring_set_drain(&stage->archive_rings, next, room < FILL_STEP ? room : FILL_STEP);
        for (size_t i = 0; i < taken; i++) {
            stage->batch_bytes += stage_load_of(next[i]);
        }
        stage->batch_count += taken;
    }
    set_held(&stage->batch_held, stage->batch_count);
    return stage->batch_count - before;
}

/* Of the oldest count spilled records, those that came from this process; the others are forgotten. */
static size_t take_expected(struct archive_stage *stage, size_t count)
{
    size_t inherited = stage->inherited < count ? stage->inherited : count;
    stage->inherited -= inherited;
    return count - inherited;
}

/* What cannot be read back is lost; the ledger says so. */
static void abandon_spilled(struct archive_stage *stage)
{
    size_t lost = spill_abandon(stage->spill);
    set_held(&stage->spill_held, spill_count(stage->spill));
    metrics_add(LEDGER_ARCHIVE_ARCHIVE_UNAVAILABLE, lost);
    progress_add(stage->progress, stage->archive_slot, take_expected(stage, lost));
    log_write(LOG_ERROR, "archive", "the spill file is damaged: %zu messages are lost", lost);
}

/* Under the lock; the records stay good while the spill thread appends others behind them. */
static enum status peek_spilled(struct archive_stage *stage, size_t *count)
{
    pthread_mutex_lock(&stage->spill_lock);
    enum status status =
            spill_peek(stage->spill, stage->spilled, SPILLED_BATCH_MAX, SPILLED_BATCH_BYTES, count);
    if (status == STATUS_DAMAGED) {
        abandon_spilled(stage);
    }
    pthread_mutex_unlock(&stage->spill_lock);
    return status;
}

static void discard_spilled(struct archive_stage *stage, size_t count)
{
    struct spill_hole hole;
    pthread_mutex_lock(&stage->spill_lock);
    spill_discard(stage->spill, count);
    bool has_hole = spill_take_hole(stage->spill, &hole);
    set_held(&stage->spill_held, spill_count(stage->spill));
    pthread_mutex_unlock(&stage->spill_lock);
    if (has_hole) {
        spill_punch(stage->spill, &hole);
    }
}

/* What failed has nothing left to be tried again: a damaged spill file that was given up. */
static void end_failure(struct archive_stage *stage)
{
    if (stage->retry_at_ns != 0) {
        stage->retry_at_ns = 0;
        stage->retry_delay_ns = 0;
        atomic_store_explicit(&stage->health, STATUS_OK, memory_order_relaxed);
    }
}

/* Gives the oldest spilled records to the engine; they leave the file only when it has them. */
static size_t put_spilled(struct archive_stage *stage)
{
    struct archive_put_result result;
    size_t count = 0;
    /* relaxed: a count that comes a little later is found in the next turn */
    if (stage->spill == NULL ||
            atomic_load_explicit(&stage->spill_held, memory_order_relaxed) == 0) {
        end_failure(stage);
        return 0;
    }
    worker_block_begin();
    enum status status = peek_spilled(stage, &count);
    if (status == STATUS_OK && count > 0) {
        status = archive_put_records(stage->archive, stage->spilled, count, &result);
    }
    if (status == STATUS_OK && count > 0) {
        for (size_t i = 0; i < count; i++) {
            acknowledge(stage, stage->spilled[i].hash);
        }
        discard_spilled(stage, count);
    }
    worker_block_end();
    if (status != STATUS_OK) {
        report_failure(stage, status);
        return 0;
    }
    if (count > 0) {
        report_success(stage, &result, take_expected(stage, count));
    }
    return count;
}

static void refresh_extent(struct archive_stage *stage, bool is_now)
{
    struct archive_totals totals;
    uint64_t now = clock_monotonic_ns();
    if (!is_now && now < stage->extent_due_ns) {
        stage->is_extent_stale = true; /* a turn to come sees to it */
        return;
    }
    stage->is_extent_stale = false;
    stage->extent_due_ns = now + ARCHIVE_EXTENT_MS * (uint64_t)NANOSECONDS_PER_MILLISECOND;
    if (archive_totals(stage->archive, &totals) == STATUS_OK) {
        publish_extent(stage, &totals);
    }
}

static void retain(struct archive_stage *stage, bool are_inserts_waiting)
{
    static struct log_limit limit;
    size_t removed = 0;
    if (clock_monotonic_ns() < retention_due_ns(&stage->retention)) {
        return;
    }
    worker_block_begin();
    enum status status = retention_step(&stage->retention, are_inserts_waiting, &removed);
    if (removed > 0) {
        refresh_extent(stage, false);
    }
    worker_block_end();
    metrics_add(METRIC_ARCHIVE_PRUNED, removed);
    if (status != STATUS_OK) {
        metrics_add(METRIC_ARCHIVE_PRUNE_FAILURES, 1);
        log_write_limited(&limit, LOG_ERROR, "archive", "old messages could not be removed: %s",
                status_text(status));
    }
}

static enum status archive_start(void *context)
{
    struct archive_stage *stage = context;
    metrics_add(LEDGER_ARCHIVE_RECEIVED, stage->inherited);
    worker_block_begin();
    refresh_extent(stage, true);
    worker_block_end();
    return STATUS_OK;
}

void archive_stage_end_by(struct archive_stage *stage, uint64_t end_ns)
{
    /* relaxed: a time, which orders nothing */
    atomic_store_explicit(&stage->end_ns, end_ns, memory_order_relaxed);
}

static bool is_ending(const struct archive_stage *stage)
{
    /* relaxed: as above. Without a spill file the engine gets all the time it needs. */
    return stage->spill != NULL && atomic_load_explicit(&stage->end_ns, memory_order_relaxed) != 0;
}

/* What is left then is for archive_stop: an engine that fails or is slow does not hold up the end. */
static bool has_to_end(const struct archive_stage *stage)
{
    return is_ending(stage) &&
           (stage->retry_at_ns != 0 || clock_monotonic_ns() >= atomic_load_explicit(&stage->end_ns,
                                                                       memory_order_relaxed));
}

static size_t store(struct archive_stage *stage)
{
    if (has_to_end(stage)) {
        return 0;
    }
    size_t taken = fill_batch(stage);
    if (stage->batch_count > 0) {
        return put_batch(stage) ? (taken > 0 ? taken : 1) : 0;
    }
    /* What was spilled is safe where it is. */
    return is_ending(stage) ? 0 : put_spilled(stage);
}

static size_t archive_turn(void *context)
{
    struct archive_stage *stage = context;
    bool is_paused = stage->retry_at_ns != 0 && clock_monotonic_ns() < stage->retry_at_ns;
    size_t stored = is_paused ? 0 : store(stage);
    if (stored > 0) {
        stage->is_extent_stale = true;
        retention_note_batch(&stage->retention, stored, clock_monotonic_ns());
    }
    if (stage->is_extent_stale) {
        worker_block_begin();
        refresh_extent(stage, false);
        worker_block_end();
    }
    /* No work in the sense of a turn: a stop waits for what is stored, not for what is removed. */
    retain(stage, !is_paused && archive_stage_held(stage) > 0);
    if (stage->tend_parking != NULL && archive_wants_tending(stage->archive)) {
        parking_wake(stage->tend_parking);
    }
    return stored;
}

static bool archive_has_work(void *context)
{
    struct archive_stage *stage = context;
    uint64_t now = clock_monotonic_ns();
    if (now >= retention_due_ns(&stage->retention)) {
        return true;
    }
    return stage->retry_at_ns != 0 ? now >= stage->retry_at_ns : archive_stage_held(stage) > 0;
}

static uint64_t archive_deadline(void *context)
{
    struct archive_stage *stage = context;
    uint64_t retention = retention_due_ns(&stage->retention);
    uint64_t retry = stage->retry_at_ns != 0 ? stage->retry_at_ns : UINT64_MAX;
    uint64_t extent = stage->is_extent_stale ? stage->extent_due_ns : UINT64_MAX;
    uint64_t next = retry < retention ? retry : retention;
    return extent < next ? extent : next;
}

static void drop(struct archive_stage *stage, struct envelope *envelope)
{
    metrics_add(LEDGER_ARCHIVE_ARCHIVE_UNAVAILABLE, 1);
    if (stage->lost != NULL) {
        stage->lost(stage->lost_context, envelope);
    }
    ring_set_release(&stage->archive_rings, envelope);
}

static enum status push_all(
        struct archive_stage *stage, struct envelope **envelopes, size_t count, size_t *pushed)
{
    enum status status = STATUS_OK;
    *pushed = 0;
    pthread_mutex_lock(&stage->spill_lock);
    while (status == STATUS_OK && *pushed < count) {
        struct archive_record record = archive_record_of(envelopes[*pushed]);
        status = spill_push(stage->spill, &record);
        *pushed += status == STATUS_OK;
    }
    set_held(&stage->spill_held, spill_count(stage->spill));
    pthread_mutex_unlock(&stage->spill_lock);
    return status;
}

/* Writes them to the spill file; what it has no room for is dropped. Returns how many were dropped. */
static size_t spill_envelopes(
        struct archive_stage *stage, struct envelope **envelopes, size_t count)
{
    static struct log_limit limit;
    size_t pushed;
    worker_block_begin();
    enum status status = push_all(stage, envelopes, count, &pushed);
    worker_block_end();
    if (status != STATUS_OK) {
        log_write_limited(&limit, LOG_ERROR, "archive", "the spill file takes no more: %s",
                status_text(status));
    }
    metrics_add(METRIC_ARCHIVE_SPILLED, pushed);
    for (size_t i = 0; i < count; i++) {
        if (i < pushed) {
            ring_set_release(&stage->archive_rings, envelopes[i]);
        } else {
            drop(stage, envelopes[i]);
        }
    }
    return count - pushed;
}

/* Returns how many were dropped. */
static size_t spill_or_drop(struct archive_stage *stage, struct envelope **envelopes, size_t count)
{
    if (stage->spill != NULL) {
        return spill_envelopes(stage, envelopes, count);
    }
    for (size_t i = 0; i < count; i++) {
        drop(stage, envelopes[i]);
    }
    return count;
}

/* The engine has not taken these before the end: what has a spill file is stored at the next start. */
static void archive_stop(void *context)
{
    struct archive_stage *stage = context;
    while (stage->batch_count > 0 || fill_batch(stage) > 0) {
        size_t count = stage->batch_count < SPILL_BATCH ? stage->batch_count : SPILL_BATCH;
        struct envelope **last = stage->batch + stage->batch_count - count;
        size_t dropped = spill_or_drop(stage, last, count);
        stage->batch_count -= count;
        stage->batch_bytes = stage->batch_count == 0 ? 0 : stage->batch_bytes;
        progress_add(stage->progress, stage->archive_slot, dropped);
    }
    set_held(&stage->batch_held, 0);
    if (stage->spill != NULL) {
        worker_block_begin();
        if (spill_sync(stage->spill) != STATUS_OK) {
            log_write(LOG_ERROR, "archive", "the spill file could not be synced");
        }
        worker_block_end();
    }
    progress_wake(stage->progress);
}

/* The deepest: one busy lane is dropped from while the others' rings are empty. */
static size_t deepest_ring(const struct ring_set *set)
{
    size_t deepest = 0;
    for (size_t i = 0; i < set->count; i++) {
        size_t depth = spmc_ring_depth_estimate(set->rings[i]);
        deepest = depth > deepest ? depth : deepest;
    }
    return deepest;
}

/* Hysteresis: from more than half full until a quarter. */
static bool should_spill(struct archive_stage *stage)
{
    size_t depth = deepest_ring(&stage->spill_rings);
    size_t divisor = stage->is_spilling ? DISPATCHER_BEHIND_UNTIL : DISPATCHER_BEHIND_FROM;
    stage->is_spilling =
            dispatcher_is_archive_behind(depth, stage->ring_capacity, stage->budget, divisor);
    return stage->is_spilling;
}

static size_t spill_turn(void *context)
{
    struct archive_stage *stage = context;
    struct envelope *envelopes[SPILL_BATCH];
    if (!should_spill(stage)) {
        return 0;
    }
    size_t count = ring_set_drain(&stage->spill_rings, envelopes, SPILL_BATCH);
    size_t dropped = count > 0 ? spill_envelopes(stage, envelopes, count) : 0;
    if (dropped > 0) {
        progress_add(stage->progress, stage->spill_slot, dropped);
    }
    progress_wake(stage->progress);
    /* The archive thread may have seen an empty ring and no spilled record yet. */
    parking_wake(stage->archive_parking);
    return count;
}

static bool spill_has_work(void *context)
{
    struct archive_stage *stage = context;
    return should_spill(stage);
}

struct worker_role archive_stage_archive_role(struct archive_stage *stage, const char *name)
{
    return (struct worker_role){
            .name = name,
            .context = stage,
            .start = archive_start,
            .turn = archive_turn,
            .has_work = archive_has_work,
            .deadline = archive_deadline,
            .stop = archive_stop,
            .parking = stage->archive_parking,
    };
}

struct worker_role archive_stage_spill_role(struct archive_stage *stage, const char *name)
{
    return (struct worker_role){
            .name = name,
            .context = stage,
            .turn = spill_turn,
            .has_work = spill_has_work,
            .parking = stage->spill_parking,
    };
}
