/* SPDX-License-Identifier: MIT */
#include "archive/sqlite_engine.h"

#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"

enum {
    MAX_ROWS_PER_TRANSACTION = 8192,
    ROWS_BETWEEN_LOOKS = 8 /* at the clock */
};

struct pruned_row {
    int64_t timestamp_ns;
    int64_t segment;
    int64_t length;
    uint8_t hash[MESSAGE_HASH_BYTES];
};

/* How much is too much, counted down row by row; row_index is what a row takes of the index. */
struct excess {
    int64_t oldest_ns;
    int64_t count;
    int64_t bytes;
    int64_t size;
    int64_t row_index;
};

enum {
    DEAD_SHARE = 8 /* that part of a size bound is room for what is not given back yet */
};

static int64_t beyond(int64_t value, uint64_t bound)
{
    return bound >= INT64_MAX ? -1 : value - (int64_t)bound;
}

static struct excess excess_of(
        const struct archive_prune_limits *limits, const struct sqlite_extent *extent)
{
    int64_t used = extent->index - extent->free;
    uint64_t size_bound = limits->max_size_bytes - limits->max_size_bytes / DEAD_SHARE;
    return (struct excess){
            .oldest_ns = limits->oldest_ns,
            .count = beyond(extent->count, limits->max_count),
            .bytes = beyond(extent->live, limits->max_bytes),
            .size = beyond(extent->live + used, size_bound),
            .row_index = extent->count > 0 ? used / extent->count : 0,
    };
}

static bool must_go(const struct excess *excess, const struct pruned_row *row)
{
    return row->timestamp_ns < excess->oldest_ns || excess->count > 0 || excess->bytes > 0 ||
           excess->size > 0;
}

/* The oldest rows that are too many, at most max_rows, in order. */
static enum status find_rows(struct sqlite_archive *archive, struct excess excess,
        struct pruned_row rows[], size_t max_rows, size_t *found)
{
    sqlite3_stmt *oldest = NULL;
    enum status status =
            sqlite_statement(&archive->connection, SQLITE_STATEMENT_OLDEST_ROWS, &oldest);
    if (status != STATUS_OK) {
        return status;
    }
    sqlite3_bind_int64(oldest, 1, (int64_t)max_rows);
    bool has_row = true;
    for (*found = 0; *found < max_rows; ++*found) {
        struct pruned_row *row = &rows[*found];
        status = sqlite_step(&archive->connection, oldest, &has_row);
        if (!has_row) {
            return status;
        }
        row->timestamp_ns = sqlite3_column_int64(oldest, 0);
        row->segment = sqlite3_column_int64(oldest, 2);
        row->length = sqlite3_column_int64(oldest, 3);
        if (!must_go(&excess, row)) {
            break;
        }
        struct span hash = sqlite_column_span(oldest, 1);
        if (hash.length != MESSAGE_HASH_BYTES) {
            status = STATUS_DAMAGED;
            break;
        }
        memcpy(row->hash, hash.bytes, MESSAGE_HASH_BYTES);
        excess.count--;
        excess.bytes -= row->length;
        excess.size -= row->length + excess.row_index;
    }
    sqlite3_reset(oldest);
    return status;
}

enum status sqlite_shrink_segment(
        struct sqlite_archive *archive, int64_t segment, int64_t count, int64_t bytes)
{
    sqlite3_stmt *shrink = NULL;
    enum status status =
            sqlite_statement(&archive->connection, SQLITE_STATEMENT_SHRINK_SEGMENT, &shrink);
    if (status != STATUS_OK || count == 0) {
        return status;
    }
    sqlite3_bind_int64(shrink, 1, segment);
    sqlite3_bind_int64(shrink, 2, count);
    sqlite3_bind_int64(shrink, 3, bytes);
    return sqlite_run(&archive->connection, shrink);
}

static enum status delete_row(struct sqlite_archive *archive, const struct pruned_row *row)
{
    sqlite3_stmt *delete = NULL;
    enum status status =
            sqlite_statement(&archive->connection, SQLITE_STATEMENT_DELETE_MESSAGE, &delete);
    if (status != STATUS_OK) {
        return status;
    }
    sqlite3_bind_int64(delete, 1, row->timestamp_ns);
    sqlite_bind_span(delete, 2, span_of(row->hash, MESSAGE_HASH_BYTES));
    return sqlite_run(&archive->connection, delete);
}

bool sqlite_step_is_over(const struct sqlite_step *step, size_t done)
{
    if (done >= step->max_rows) {
        return true;
    }
    return done > 0 && done >= step->least_rows && done % ROWS_BETWEEN_LOOKS == 0 &&
           step->until_ns != UINT64_MAX && clock_monotonic_ns() >= step->until_ns;
}

/*
 * Neighbours mostly stand in the same segment, so its counts are changed once a run. *count: how many
 * there are, and then how many went.
 */
static enum status delete_rows(struct sqlite_archive *archive, const struct sqlite_step *step,
        const struct pruned_row rows[], size_t *count)
{
    enum status status = STATUS_OK;
    int64_t run_count = 0;
    int64_t run_bytes = 0;
    bool is_over = *count == 0;
    for (size_t i = 0; !is_over && status == STATUS_OK; i++) {
        status = delete_row(archive, &rows[i]);
        run_count++;
        run_bytes += rows[i].length;
        is_over = i + 1 == *count || sqlite_step_is_over(step, i + 1);
        *count = is_over ? i + 1 : *count;
        bool ends_run = is_over || rows[i + 1].segment != rows[i].segment;
        if (status == STATUS_OK && ends_run) {
            status = sqlite_shrink_segment(archive, rows[i].segment, run_count, run_bytes);
            run_count = 0;
            run_bytes = 0;
        }
    }
    return status;
}

static enum status delete_found(struct sqlite_archive *archive, const struct excess *excess,
        const struct sqlite_step *step, struct pruned_row rows[], size_t *removed)
{
    size_t found = 0;
    enum status status = sqlite_run_plain(&archive->connection, SQLITE_STATEMENT_BEGIN_WRITE);
    if (status == STATUS_OK) {
        status = find_rows(archive, *excess, rows, step->max_rows, &found);
    }
    if (status == STATUS_OK) {
        status = delete_rows(archive, step, rows, &found);
    }
    if (status == STATUS_OK) {
        status = sqlite_run_plain(&archive->connection, SQLITE_STATEMENT_COMMIT);
    }
    sqlite_roll_back(&archive->connection);
    *removed = status == STATUS_OK ? found : 0;
    return status;
}

/* Looks before it begins to write: mostly there is nothing to remove. */
static enum status remove_rows(struct sqlite_archive *archive, const struct excess *excess,
        const struct sqlite_step *step, size_t *removed)
{
    struct pruned_row first;
    size_t found = 0;
    *removed = 0;
    enum status status = find_rows(archive, *excess, &first, 1, &found);
    if (status != STATUS_OK || found == 0) {
        return status;
    }
    struct pruned_row *rows = memory_allocate(step->max_rows * sizeof(*rows));
    if (rows == NULL) {
        return STATUS_NO_MEMORY;
    }
    status = delete_found(archive, excess, step, rows, removed);
    memory_free(rows);
    return status;
}

static bool is_too_large(
        const struct sqlite_extent *extent, const struct archive_prune_limits *limits)
{
    return beyond(extent->segments + extent->index, limits->max_size_bytes) > 0;
}

static enum status prune_step(struct sqlite_archive *archive,
        const struct archive_prune_limits *limits, size_t max_rows,
        struct archive_prune_result *result)
{
    struct sqlite_step step = {
            .max_rows = max_rows < MAX_ROWS_PER_TRANSACTION ? max_rows : MAX_ROWS_PER_TRANSACTION,
            .least_rows = limits->least_rows,
            .until_ns = limits->until_ns};
    struct sqlite_extent extent;
    enum status status = sqlite_read_extent(archive, &extent);
    if (status == STATUS_OK) {
        struct excess excess = excess_of(limits, &extent);
        status = remove_rows(archive, &excess, &step, &result->removed);
    }
    archive->may_have_unused_content |= result->removed > 0;
    /* Unless all that was to go went, and there is time left. */
    result->has_more = result->removed > 0 && sqlite_step_is_over(&step, result->removed);
    if (status != STATUS_OK || result->has_more) {
        return status;
    }
    step.least_rows = 0;
    return sqlite_give_back(archive, &step, is_too_large(&extent, limits), &result->has_more);
}

/* The journal gives back what it took once it is in the index; a failure shows in the next step. */
static bool make_room(struct sqlite_archive *archive)
{
    if (!sqlite_reserve_give_up(&archive->reserve)) {
        return false;
    }
    log_write(LOG_WARN, "archive",
            "%s: the disk is full: nothing is stored until retention has made room again",
            archive->name);
    sqlite3_wal_checkpoint_v2(
            archive->connection.db, "main", SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL);
    return true;
}

enum status sqlite_archive_prune(struct archive *base, const struct archive_prune_limits *limits,
        size_t max_rows, struct archive_prune_result *result)
{
    struct sqlite_archive *archive = (struct sqlite_archive *)base;
    if (archive->target.is_read_only) {
        return STATUS_READ_ONLY;
    }
    if (max_rows == 0) {
        return STATUS_OK;
    }
    enum status status = prune_step(archive, limits, max_rows, result);
    if (status == STATUS_DISK_FULL && make_room(archive)) {
        size_t before = result->removed;
        *result = (struct archive_prune_result){0};
        status = prune_step(archive, limits, max_rows, result);
        result->removed += before;
    }
    return status;
}
