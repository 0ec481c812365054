/* SPDX-License-Identifier: MIT */
#include "archive/sqlite_engine.h"

#include <stdio.h>
#include <string.h>

#include "base/memory.h"

enum {
    MAX_ROWS_PER_TRANSACTION = 4096
};

struct pruned_row {
    int64_t timestamp_ns;
    int64_t segment;
    int64_t length;
    uint8_t hash[MESSAGE_HASH_BYTES];
};

static enum status read_totals(struct sqlite_archive *archive, int64_t *count, int64_t *bytes)
{
    sqlite3_stmt *totals = NULL;
    enum status status = sqlite_statement(&archive->connection, SQLITE_STATEMENT_TOTALS, &totals);
    if (status != STATUS_OK) {
        return status;
    }
    bool has_row = false;
    status = sqlite_step(&archive->connection, totals, &has_row);
    if (has_row) {
        *count = sqlite3_column_int64(totals, 0);
        *bytes = sqlite3_column_int64(totals, 1);
        sqlite3_reset(totals);
    }
    return status;
}

/* The oldest rows that the limits exclude, at most max_rows, in order. */
static enum status find_rows(struct sqlite_archive *archive,
        const struct archive_prune_limits *limits, struct pruned_row rows[], size_t max_rows,
        size_t *found)
{
    int64_t count = 0;
    int64_t bytes = 0;
    sqlite3_stmt *oldest = NULL;
    enum status status = read_totals(archive, &count, &bytes);
    if (status == STATUS_OK) {
        status = sqlite_statement(&archive->connection, SQLITE_STATEMENT_OLDEST_ROWS, &oldest);
    }
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
        if (row->timestamp_ns >= limits->oldest_ns && (uint64_t)count <= limits->max_count &&
                (uint64_t)bytes <= limits->max_bytes) {
            break;
        }
        struct span hash = sqlite_column_span(oldest, 1);
        if (hash.length != MESSAGE_HASH_BYTES) {
            status = STATUS_DAMAGED;
            break;
        }
        memcpy(row->hash, hash.bytes, MESSAGE_HASH_BYTES);
        count--;
        bytes -= row->length;
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

/* Neighbours mostly stand in the same segment, so its counts are changed once a run. */
static enum status delete_rows(
        struct sqlite_archive *archive, const struct pruned_row rows[], size_t count)
{
    enum status status = STATUS_OK;
    int64_t run_count = 0;
    int64_t run_bytes = 0;
    for (size_t i = 0; i < count && status == STATUS_OK; i++) {
        status = delete_row(archive, &rows[i]);
        run_count++;
        run_bytes += rows[i].length;
        bool ends_run = i + 1 == count || rows[i + 1].segment != rows[i].segment;
        if (status == STATUS_OK && ends_run) {
            status = sqlite_shrink_segment(archive, rows[i].segment, run_count, run_bytes);
            run_count = 0;
            run_bytes = 0;
        }
    }
    return status;
}

static enum status remove_rows(struct sqlite_archive *archive,
        const struct archive_prune_limits *limits, size_t max_rows, size_t *removed)
{
    struct pruned_row *rows = memory_allocate(max_rows * sizeof(*rows));
    if (rows == NULL) {
        return STATUS_NO_MEMORY;
    }
    size_t found = 0;
    enum status status = sqlite_run_plain(&archive->connection, SQLITE_STATEMENT_BEGIN_WRITE);
    if (status == STATUS_OK) {
        status = find_rows(archive, limits, rows, max_rows, &found);
    }
    if (status == STATUS_OK) {
        status = delete_rows(archive, rows, found);
    }
    if (status == STATUS_OK) {
        status = sqlite_run_plain(&archive->connection, SQLITE_STATEMENT_COMMIT);
    }
    sqlite_roll_back(&archive->connection);
    memory_free(rows);
    *removed = status == STATUS_OK ? found : 0;
    return status;
}

static enum status drop_row_of_segment(struct sqlite_archive *archive, int64_t segment)
{
    sqlite3_stmt *drop = NULL;
    enum status status =
            sqlite_statement(&archive->connection, SQLITE_STATEMENT_DROP_SEGMENT, &drop);
    if (status != STATUS_OK) {
        return status;
    }
    sqlite3_bind_int64(drop, 1, segment);
    return sqlite_run(&archive->connection, drop);
}

enum status sqlite_drop_segment(struct sqlite_archive *archive, int64_t segment)
{
    /* A synced commit: after a power cut no row may point into a file that is gone. */
    enum status status = sqlite_execute(&archive->connection, "PRAGMA synchronous = FULL");
    if (status == STATUS_OK) {
        status = drop_row_of_segment(archive, segment);
    }
    enum status back = sqlite_execute(&archive->connection, "PRAGMA synchronous = NORMAL");
    status = status == STATUS_OK ? back : status;
    return status == STATUS_OK ? segments_remove(archive->segments, segment) : status;
}

static enum status drop_empty_segments(struct sqlite_archive *archive)
{
    for (;;) {
        sqlite3_stmt *empty = NULL;
        enum status status =
                sqlite_statement(&archive->connection, SQLITE_STATEMENT_EMPTY_SEGMENT, &empty);
        if (status != STATUS_OK) {
            return status;
        }
        sqlite3_bind_int64(empty, 1, segments_current(archive->segments));
        bool has_row = false;
        status = sqlite_step(&archive->connection, empty, &has_row);
        if (!has_row) {
            return status;
        }
        int64_t segment = sqlite3_column_int64(empty, 0);
        sqlite3_reset(empty);
        status = sqlite_drop_segment(archive, segment);
        if (status != STATUS_OK) {
            return status;
        }
    }
}

/* The id that ends the next step of count content topics; INT64_MAX when fewer are left. */
static enum status end_of_trim(struct sqlite_archive *archive, size_t count, int64_t *end)
{
    sqlite3_stmt *next = NULL;
    *end = INT64_MAX;
    enum status status =
            sqlite_statement(&archive->connection, SQLITE_STATEMENT_NEXT_CONTENT, &next);
    if (status != STATUS_OK) {
        return status;
    }
    sqlite3_bind_int64(next, 1, archive->trimmed_content);
    sqlite3_bind_int64(next, 2, (int64_t)count - 1);
    bool has_row = false;
    status = sqlite_step(&archive->connection, next, &has_row);
    if (has_row) {
        *end = sqlite3_column_int64(next, 0);
        sqlite3_reset(next);
    }
    return status;
}

/* Names of content topics without messages go, count of them looked at in turn. */
static enum status trim_content_topics(struct sqlite_archive *archive, size_t count)
{
    int64_t end = 0;
    sqlite3_stmt *trim = NULL;
    enum status status = end_of_trim(archive, count, &end);
    if (status == STATUS_OK) {
        status = sqlite_statement(&archive->connection, SQLITE_STATEMENT_TRIM_CONTENT, &trim);
    }
    if (status != STATUS_OK) {
        return status;
    }
    sqlite3_bind_int64(trim, 1, archive->trimmed_content);
    sqlite3_bind_int64(trim, 2, end);
    status = sqlite_run(&archive->connection, trim);
    if (status == STATUS_OK) {
        archive->trimmed_content = end == INT64_MAX ? 0 : end;
        topic_cache_clear(&archive->content_topics);
    }
    return status;
}

/* Free pages of the index go back to the file system once they are a quarter of it. */
static enum status shrink_index(struct sqlite_archive *archive, size_t max_pages)
{
    int64_t pages = 0;
    int64_t free_pages = 0;
    enum status status = sqlite_read_number(&archive->connection, "PRAGMA page_count", &pages);
    if (status == STATUS_OK) {
        status = sqlite_read_number(&archive->connection, "PRAGMA freelist_count", &free_pages);
    }
    if (status != STATUS_OK || free_pages < pages / 4) {
        return status;
    }
    char sql[64];
    snprintf(sql, sizeof(sql), "PRAGMA incremental_vacuum(%zu)", max_pages);
    return sqlite_execute(&archive->connection, sql);
}

enum status sqlite_archive_prune(struct archive *base, const struct archive_prune_limits *limits,
        size_t max_rows, size_t *removed)
{
    struct sqlite_archive *archive = (struct sqlite_archive *)base;
    if (archive->target.is_read_only) {
        return STATUS_READ_ONLY;
    }
    if (max_rows == 0) {
        return STATUS_OK;
    }
    enum status status = STATUS_OK;
    size_t step = 0;
    size_t gone = 0;
    do {
        size_t room = max_rows - *removed;
        step = room < MAX_ROWS_PER_TRANSACTION ? room : MAX_ROWS_PER_TRANSACTION;
        status = remove_rows(archive, limits, step, &gone);
        *removed += gone;
    } while (status == STATUS_OK && gone == step && *removed < max_rows);
    if (status == STATUS_OK) {
        status = drop_empty_segments(archive);
    }
    if (status == STATUS_OK) {
        status = trim_content_topics(archive, max_rows);
    }
    if (status == STATUS_OK && *removed < max_rows) {
        status = sqlite_compact(archive, max_rows - *removed);
    }
    return status == STATUS_OK ? shrink_index(archive, max_rows) : status;
}
