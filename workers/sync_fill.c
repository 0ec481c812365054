/* SPDX-License-Identifier: MIT */
#include "workers/sync_fill.h"

#include <assert.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/metrics.h"
#include "hash/fast_key.h"
#include "router/sync_job.h"

enum {
    TICK_NS = NANOSECONDS_PER_SECOND,
    QUERY_PATIENCE_S = 10
};

/*
 * Ordering:
 *
 *   REQUESTED  release store of is_requested -> acquire exchange: what was joined before is known then.
 *   ASKED  release store of is_asking = false after the last look at the archive -> acquire load in
 *          quiesce.
 */
struct sync_fill {
    struct sync_fill_options options;
    struct archive_job archive_job;
    struct sync_job sync_job;
    atomic_bool is_requested;
    atomic_bool is_stopping;
    atomic_bool is_asking; /* a job is under way */

    /* sync thread; of the job under way also the query thread, while it has it */
    uint64_t next_turn_ns;
    uint64_t retry_at_ns;
    bool is_whole; /* the gap that is being filled is the whole range */
    bool has_begun;
    struct sync_gap gap; /* what is left of it */
    bool has_cursor;     /* go on behind it */
    uint8_t cursor[MESSAGE_HASH_BYTES];
    bool is_last;
    enum status status;
    size_t count;
    struct id_record records[SYNC_FILL_STEP_IDS];
};

enum status sync_fill_create(struct sync_fill **out, const struct sync_fill_options *options)
{
    struct sync_fill *fill = memory_allocate_zeroed(sizeof(*fill));
    if (fill == NULL) {
        return STATUS_NO_MEMORY;
    }
    fill->options = *options;
    atomic_init(&fill->is_requested, false);
    atomic_init(&fill->is_stopping, false);
    atomic_init(&fill->is_asking, false);
    *out = fill;
    return STATUS_OK;
}

void sync_fill_destroy(struct sync_fill **fill)
{
    assert(*fill == NULL || !atomic_load_explicit(&(*fill)->is_asking, memory_order_acquire));
    memory_free(*fill);
    *fill = NULL;
}

void sync_fill_request(struct sync_fill *fill)
{
    atomic_store_explicit(&fill->is_requested, true, memory_order_release); /* REQUESTED */
    inbox_wake(fill->options.sync_jobs);
}

static bool is_stopping(const struct sync_fill *fill)
{
    /* seq_cst: either the asker sees it, or quiesce sees that something is asked */
    return atomic_load(&fill->is_stopping);
}

void sync_fill_quiesce(struct sync_fill *fill)
{
    struct timespec slice = {.tv_nsec = NANOSECONDS_PER_MILLISECOND};
    atomic_store(&fill->is_stopping, true);
    inbox_wake(fill->options.sync_jobs);
    while (atomic_load(&fill->is_asking)) {
        nanosleep(&slice, NULL);
    }
}

/* query thread */

static enum status take_row(void *context, const struct archive_row *row)
{
    struct sync_fill *fill = context;
    const struct topic *topic =
            topic_registry_find_interned(fill->options.topics, row->pubsub_topic);
    fill->gap.from_ns = row->timestamp_ns;
    if (topic == NULL) {
        return STATUS_OK; /* of a shard that the node is not in any more */
    }
    struct id_record *record = &fill->records[fill->count++];
    record->timestamp_ns = row->timestamp_ns;
    record->topic = topic;
    record->content_topic_key = fast_key_of_bytes(row->content_topic);
    memcpy(record->hash, row->hash.bytes, sizeof(record->hash));
    return STATUS_OK;
}

static void read_step(struct archive_job *job, struct archive_reader *reader)
{
    struct sync_fill *fill =
            (struct sync_fill *)((char *)job - offsetof(struct sync_fill, archive_job));
    struct archive_query query = {.time_start_ns = fill->gap.from_ns,
            .time_end_ns = fill->gap.to_ns,
            .has_time_start = true,
            .has_time_end = true,
            .has_cursor = fill->has_cursor,
            .cursor = span_of(fill->cursor, sizeof(fill->cursor)),
            .limit = SYNC_FILL_STEP_IDS,
            .max_limit = SYNC_FILL_STEP_IDS,
            .deadline_ns =
                    clock_monotonic_ns() + (uint64_t)QUERY_PATIENCE_S * NANOSECONDS_PER_SECOND,
            .include_topics = true};
    struct archive_page page = {0};
    fill->count = 0;
    fill->status = archive_query(reader, &query, take_row, fill, &page);
    fill->is_last = fill->status == STATUS_OK && !page.has_cursor;
    /* The message at the cursor may be gone by the next step: its time alone is a start, too. */
    fill->has_cursor = fill->status == STATUS_OK && page.has_cursor;
    memcpy(fill->cursor, page.cursor, sizeof(fill->cursor));
    inbox_push(fill->options.sync_jobs, &fill->sync_job.link);
    inbox_wake(fill->options.sync_jobs);
}

/* sync thread */

static void end_asking(struct sync_fill *fill)
{
    atomic_store_explicit(&fill->is_asking, false, memory_order_release); /* ASKED */
}

static void give_up(struct sync_fill *fill, struct sync_set *set)
{
    static struct log_limit limit;
    sync_set_mark_incomplete(set, fill->gap.from_ns, fill->gap.to_ns);
    fill->retry_at_ns = clock_monotonic_ns() + TICK_NS;
    fill->has_begun = false;
    if (!is_stopping(fill)) {
        log_write_limited(&limit, LOG_WARN, "sync", "the archive could not be read: %s",
                status_text(fill->status));
    }
    end_asking(fill);
}

static void ask(struct sync_fill *fill);

static void take_step(struct sync_job *job, struct sync_set *set)
{
    struct sync_fill *fill =
            (struct sync_fill *)((char *)job - offsetof(struct sync_fill, sync_job));
    size_t inserted = 0;
    for (size_t i = 0; i < fill->count; i++) {
        inserted += sync_set_insert(set, &fill->records[i]) == SYNC_INSERTED;
    }
    metrics_add(METRIC_SYNC_FILLED, inserted);
    bool is_readable = fill->status == STATUS_OK || fill->status == STATUS_BAD_CURSOR;
    if (fill->is_last) {
        fill->has_begun = false;
        end_asking(fill);
    } else if (is_readable && !is_stopping(fill)) {
        ask(fill); /* behind the cursor, or from its time on when that message is gone */
    } else {
        give_up(fill, set);
    }
}

/* seq_cst: see is_stopping */
static void ask(struct sync_fill *fill)
{
    atomic_store(&fill->is_asking, true);
    fill->archive_job.run = read_step;
    fill->archive_job.origin = ARCHIVE_JOB_OWN;
    fill->sync_job.run = take_step;
    archive_jobs_post(fill->options.query_jobs, &fill->archive_job);
}

/* What is marked while it is being filled is looked for again: it may have come behind our reading. */
static void begin(struct sync_fill *fill, struct sync_set *set, struct sync_gap gap, bool is_whole)
{
    sync_set_mark_complete(set, gap.from_ns, gap.to_ns);
    fill->gap = gap;
    fill->has_cursor = false;
    fill->is_whole = is_whole;
    fill->has_begun = true;
    atomic_store(&fill->is_asking, true);
    if (is_stopping(fill)) {
        fill->status = STATUS_CLOSED;
        give_up(fill, set);
        return;
    }
    ask(fill);
}

/* The first gap that is old enough; false when there is none. */
static bool find_gap(const struct sync_fill *fill, const struct sync_set *set, int64_t now_ns,
        struct sync_gap *out)
{
    for (size_t i = 0; i < sync_set_gap_count(set); i++) {
        *out = sync_set_gap_at(set, i);
        if (out->to_ns <= now_ns - fill->options.jitter_ns) {
            return true;
        }
    }
    return false;
}

static int64_t begin_of(const struct sync_fill *fill, int64_t now_ns)
{
    int64_t start_ns =
            now_ns - fill->options.range_ns - SYNC_JITTERS_KEPT * fill->options.jitter_ns;
    return start_ns > 0 ? start_ns : 0;
}

/* At most one thing is asked of the archive at a time. */
static void fill_when_due(struct sync_fill *fill, struct sync_set *set, int64_t now_ns)
{
    struct sync_gap gap;
    bool is_behind = fill->options.is_archive_behind != NULL &&
                     fill->options.is_archive_behind(fill->options.context);
    if (atomic_exchange_explicit(
                &fill->is_requested, false, memory_order_acquire)) { /* REQUESTED */
        gap = (struct sync_gap){begin_of(fill, now_ns), now_ns + fill->options.tolerance_ns};
        begin(fill, set, gap, true);
        if (is_behind) {
            /* What has not reached the archive yet is looked for when it has. */
            sync_set_mark_incomplete(set, gap.from_ns, now_ns);
        }
    } else if (!is_behind && find_gap(fill, set, now_ns, &gap)) {
        begin(fill, set, gap, false);
    }
}

static size_t prune_when_due(struct sync_fill *fill, struct sync_set *set, int64_t now_ns)
{
    int64_t start_ns = begin_of(fill, now_ns);
    if (sync_set_covered_from(set) > now_ns + fill->options.tolerance_ns) {
        sync_set_uncover(set, start_ns); /* the clock was ahead, or is behind now */
    }
    size_t pruned = sync_set_prune(set, start_ns, SYNC_PRUNE_STEP_IDS);
    metrics_add(METRIC_SYNC_PRUNED, pruned);
    return pruned;
}

size_t sync_fill_turn(struct sync_fill *fill, struct sync_set *set)
{
    uint64_t now_monotonic_ns = clock_monotonic_ns();
    bool is_requested = atomic_load_explicit(&fill->is_requested, memory_order_relaxed);
    if (is_stopping(fill) || (now_monotonic_ns < fill->next_turn_ns && !is_requested)) {
        return 0;
    }
    int64_t now_ns = clock_wall_ns();
    size_t pruned = prune_when_due(fill, set, now_ns);
    if (!fill->has_begun && now_monotonic_ns >= fill->retry_at_ns) {
        fill_when_due(fill, set, now_ns);
    }
    /* More of the same in the next turn, with the rings between. */
    fill->next_turn_ns = pruned == SYNC_PRUNE_STEP_IDS ? 0 : now_monotonic_ns + TICK_NS;
    return pruned;
}

bool sync_fill_is_filling(const struct sync_fill *fill)
{
    return !is_stopping(fill) &&
           ((fill->has_begun && fill->is_whole) ||
                   atomic_load_explicit(&fill->is_requested, memory_order_relaxed));
}

uint64_t sync_fill_deadline(const struct sync_fill *fill)
{
    return is_stopping(fill) ? UINT64_MAX : fill->next_turn_ns;
}
