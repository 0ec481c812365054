/* SPDX-License-Identifier: MIT */
#include <stdio.h>

#include "archive/sqlite_engine.h"

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
    enum status status = segments_removal_begin(archive->segments);
    if (status != STATUS_OK) {
        return status;
    }
    /* A synced commit: after a power cut no row may point into a file that is gone. */
    status = sqlite_execute(&archive->connection, "PRAGMA synchronous = FULL");
    if (status == STATUS_OK) {
        status = drop_row_of_segment(archive, segment);
    }
    enum status back = sqlite_execute(&archive->connection, "PRAGMA synchronous = NORMAL");
    status = status == STATUS_OK ? back : status;
    status = status == STATUS_OK ? segments_remove(archive->segments, segment) : status;
    segments_removal_end(archive->segments);
    return status;
}

/* One of them; *is_done false when there was none. */
static enum status drop_empty_segment(struct sqlite_archive *archive, bool *is_done)
{
    sqlite3_stmt *empty = NULL;
    *is_done = false;
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
    *is_done = status == STATUS_OK;
    return status == STATUS_BUSY ? STATUS_OK : status;
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
        archive->may_have_unused_content = end != INT64_MAX;
        topic_cache_clear(&archive->content_topics);
    }
    return status;
}

/* Free pages go back to the file system once they are a quarter of the index. */
static enum status shrink_index(
        struct sqlite_archive *archive, size_t max_pages, bool is_pressed, bool *is_done)
{
    struct sqlite_extent extent;
    *is_done = false;
    enum status status = sqlite_read_extent(archive, &extent);
    int64_t least = is_pressed ? 1 : extent.index / 4;
    if (status != STATUS_OK || extent.free == 0 || extent.free < least) {
        return status;
    }
    char sql[64];
    snprintf(sql, sizeof(sql), "PRAGMA incremental_vacuum(%zu)", max_pages);
    *is_done = true;
    return sqlite_execute(&archive->connection, sql);
}

enum status sqlite_give_back(
        struct sqlite_archive *archive, size_t max_rows, bool is_pressed, bool *has_more)
{
    enum status status = drop_empty_segment(archive, has_more);
    if (status == STATUS_OK && !*has_more) {
        status = sqlite_compact(archive, max_rows, is_pressed, has_more);
    }
    if (status == STATUS_OK && !*has_more && archive->may_have_unused_content) {
        status = trim_content_topics(archive, max_rows);
        *has_more = true;
    }
    if (status == STATUS_OK && !*has_more) {
        status = shrink_index(archive, max_rows, is_pressed, has_more);
    }
    return status;
}
