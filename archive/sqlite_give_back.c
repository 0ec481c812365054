/* SPDX-License-Identifier: MIT */
#include <stdio.h>

#include "archive/sqlite_engine.h"

enum {
    PAGES_AT_ONCE = 16, /* in one transaction */
    TOPICS_AT_ONCE = 256
};

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

enum status sqlite_remove_doomed(
        struct sqlite_archive *archive, struct sqlite_connection *connection)
{
    /* After a power cut no row may point into a file that is gone. */
    enum status status = archive->target.is_memory ? STATUS_OK : sqlite_sync_journal(connection);
    if (status == STATUS_OK) {
        status = segments_removal_begin(archive->segments);
    }
    if (status != STATUS_OK) {
        return status;
    }
    struct sqlite_doomed doomed = sqlite_last_doomed(&archive->tending);
    while (status == STATUS_OK && doomed.segment != 0) {
        status = segments_remove(archive->segments, doomed.segment);
        if (status == STATUS_OK) {
            sqlite_forget_doomed(&archive->tending, &doomed);
            doomed = sqlite_last_doomed(&archive->tending);
        }
    }
    segments_removal_end(archive->segments);
    return status;
}

/* Those that a backup has kept, if there is no tender to see to them. */
static enum status remove_kept(struct sqlite_archive *archive)
{
    /* relaxed: a tender that comes or goes meanwhile changes who does it only */
    if (atomic_load_explicit(&archive->tending.is_there, memory_order_relaxed) ||
            sqlite_last_doomed(&archive->tending).segment == 0) {
        return STATUS_OK;
    }
    enum status status = sqlite_remove_doomed(archive, &archive->connection);
    return status == STATUS_BUSY ? STATUS_OK : status;
}

enum status sqlite_drop_segment(struct sqlite_archive *archive, const struct sqlite_doomed *segment)
{
    enum status status = drop_row_of_segment(archive, segment->segment);
    if (status == STATUS_OK) {
        /* What cannot be noted for want of memory stays until the next start. */
        status = sqlite_doom_segment(&archive->tending, segment);
    }
    return status == STATUS_OK ? remove_kept(archive) : status;
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
    struct sqlite_doomed segment = {sqlite3_column_int64(empty, 0), sqlite3_column_int64(empty, 1)};
    sqlite3_reset(empty);
    status = sqlite_drop_segment(archive, &segment);
    *is_done = status == STATUS_OK;
    return status;
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
static enum status shrink_index(struct sqlite_archive *archive, const struct sqlite_step *step,
        bool is_pressed, bool *is_done)
{
    struct sqlite_extent extent;
    *is_done = false;
    enum status status = sqlite_read_extent(archive, &extent);
    int64_t least = is_pressed ? 1 : extent.index / 4;
    if (status != STATUS_OK || extent.free == 0 || extent.free < least) {
        return status;
    }
    *is_done = true;
    char sql[64];
    snprintf(sql, sizeof(sql), "PRAGMA incremental_vacuum(%d)", PAGES_AT_ONCE);
    size_t pages = 0;
    do {
        status = sqlite_execute(&archive->connection, sql);
        pages += PAGES_AT_ONCE;
    } while (status == STATUS_OK && !sqlite_step_is_over(step, pages));
    return status;
}

enum status sqlite_give_back(struct sqlite_archive *archive, const struct sqlite_step *step,
        bool is_pressed, bool *has_more)
{
    enum status status = drop_empty_segment(archive, has_more);
    if (status == STATUS_OK && !*has_more) {
        status = remove_kept(archive);
    }
    if (status == STATUS_OK && !*has_more) {
        status = sqlite_compact(archive, step, is_pressed, has_more);
    }
    if (status == STATUS_OK && !*has_more && archive->may_have_unused_content) {
        size_t count = step->max_rows < TOPICS_AT_ONCE ? step->max_rows : TOPICS_AT_ONCE;
        status = trim_content_topics(archive, count);
        *has_more = true;
    }
    if (status == STATUS_OK && !*has_more) {
        status = shrink_index(archive, step, is_pressed, has_more);
    }
    return status;
}
