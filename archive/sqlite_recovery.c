/* SPDX-License-Identifier: MIT */
#include <inttypes.h>

#include "archive/sqlite_engine.h"
#include "base/log.h"
#include "base/memory.h"

static const char module[] = "archive";

enum {
    RECORDS_PER_TRANSACTION = 256
};

/* *extent: how far the segment is indexed; *is_known false when the index has never seen it. */
static enum status read_extent(
        struct sqlite_archive *archive, int64_t segment, uint64_t *extent, bool *is_known)
{
    sqlite3_stmt *find = NULL;
    *extent = 0;
    *is_known = false;
    enum status status =
            sqlite_statement(&archive->connection, SQLITE_STATEMENT_SEGMENT_EXTENT, &find);
    if (status != STATUS_OK) {
        return status;
    }
    sqlite3_bind_int64(find, 1, segment);
    status = sqlite_step(&archive->connection, find, is_known);
    if (*is_known) {
        *extent = (uint64_t)sqlite3_column_int64(find, 0);
        sqlite3_reset(find);
    }
    return status;
}

static enum status read_last_segment(struct sqlite_archive *archive, int64_t *last)
{
    sqlite3_stmt *find = NULL;
    enum status status =
            sqlite_statement(&archive->connection, SQLITE_STATEMENT_LAST_SEGMENT, &find);
    if (status != STATUS_OK) {
        return status;
    }
    bool has_row = false;
    status = sqlite_step(&archive->connection, find, &has_row);
    if (has_row) {
        *last = sqlite3_column_int64(find, 0);
        sqlite3_reset(find);
    }
    return status;
}

/* Indexes up to a transaction's worth of records; *is_at_end when there was no further one. */
static enum status replay_some(
        struct sqlite_archive *archive, struct segment_walk *walk, int64_t segment, bool *is_at_end)
{
    struct sqlite_batch batch = {.segment = segment};
    for (size_t i = 0; i < RECORDS_PER_TRANSACTION; i++) {
        struct archive_record record;
        bool is_new = false;
        batch.offset = walk->offset;
        enum status status = segment_walk_next(walk, &record);
        *is_at_end = status == STATUS_NOT_FOUND || status == STATUS_DAMAGED;
        if (status == STATUS_DAMAGED) {
            log_write(LOG_WARN, module,
                    "%s: segment %" PRId64 " has no whole record at byte %" PRIu64
                    ", what follows is given up",
                    archive->name, segment, walk->offset);
        }
        if (*is_at_end) {
            break;
        }
        if (status == STATUS_OK) {
            status = sqlite_index_record(archive, &batch, &record, &is_new);
        }
        if (status != STATUS_OK) {
            return status;
        }
    }
    batch.offset = walk->offset;
    return sqlite_save_batch(archive, &batch);
}

static enum status replay(
        struct sqlite_archive *archive, int64_t segment, uint64_t from, uint64_t *good)
{
    struct segment_walk walk;
    enum status status = segments_sync(archive->segments, segment);
    if (status != STATUS_OK) {
        return status;
    }
    status = segment_walk_init(&walk, archive->segments, segment, from);
    bool is_at_end = false;
    while (status == STATUS_OK && !is_at_end) {
        status = sqlite_run_plain(&archive->connection, SQLITE_STATEMENT_BEGIN_WRITE);
        if (status == STATUS_OK) {
            status = replay_some(archive, &walk, segment, &is_at_end);
        }
        if (status == STATUS_OK) {
            status = sqlite_run_plain(&archive->connection, SQLITE_STATEMENT_COMMIT);
        }
    }
    sqlite_roll_back(&archive->connection);
    *good = walk.offset;
    segment_walk_fini(&walk);
    if (status == STATUS_OK && *good > from) {
        log_write(LOG_NOTICE, module,
                "%s: read segment %" PRId64 " again from byte %" PRIu64 " to %" PRIu64,
                archive->name, segment, from, *good);
    }
    return status;
}

/* The file with the highest id comes last: it is the one that goes on. */
static enum status recover_file(
        struct sqlite_archive *archive, int64_t segment, int64_t last_known, bool is_newest)
{
    uint64_t extent = 0;
    bool is_known = false;
    enum status status = read_extent(archive, segment, &extent, &is_known);
    if (status != STATUS_OK) {
        return status;
    }
    if (!is_known && segment < last_known) {
        /* Its last messages were pruned, and the power went before the file did. */
        return segments_remove(archive->segments, segment);
    }
    uint64_t good = extent;
    if (segment >= last_known) {
        status = replay(archive, segment, extent, &good);
    }
    if (status == STATUS_OK && is_newest) {
        status = segments_continue(archive->segments, segment, good);
    }
    return status;
}

static bool has_id(const int64_t ids[], size_t count, int64_t id)
{
    for (size_t i = 0; i < count; i++) {
        if (ids[i] == id) {
            return true;
        }
    }
    return false;
}

static enum status forget_segment(struct sqlite_archive *archive, int64_t segment)
{
    sqlite3_stmt *forget = NULL;
    log_write(LOG_ERROR, module, "%s: segment %" PRId64 " is missing, its messages are lost",
            archive->name, segment);
    enum status status =
            sqlite_statement(&archive->connection, SQLITE_STATEMENT_FORGET_SEGMENT, &forget);
    if (status != STATUS_OK) {
        return status;
    }
    sqlite3_bind_int64(forget, 1, segment);
    status = sqlite_run(&archive->connection, forget);
    struct sqlite_doomed missing = {.segment = segment};
    return status == STATUS_OK ? sqlite_drop_segment(archive, &missing) : status;
}

/* Ids in the index that have no file; *missing 0: none. */
static enum status find_missing(
        struct sqlite_archive *archive, const int64_t ids[], size_t count, int64_t *missing)
{
    sqlite3_stmt *list = NULL;
    *missing = 0;
    enum status status =
            sqlite_statement(&archive->connection, SQLITE_STATEMENT_LIST_SEGMENTS, &list);
    bool has_row = status == STATUS_OK;
    while (has_row) {
        status = sqlite_step(&archive->connection, list, &has_row);
        if (has_row && !has_id(ids, count, sqlite3_column_int64(list, 0))) {
            *missing = sqlite3_column_int64(list, 0);
            sqlite3_reset(list);
            break;
        }
    }
    return status;
}

static enum status forget_missing(struct sqlite_archive *archive, const int64_t ids[], size_t count)
{
    int64_t missing = 0;
    enum status status = find_missing(archive, ids, count, &missing);
    while (status == STATUS_OK && missing != 0) {
        status = forget_segment(archive, missing);
        if (status == STATUS_OK) {
            status = find_missing(archive, ids, count, &missing);
        }
    }
    return status;
}

enum status sqlite_recover(struct sqlite_archive *archive)
{
    int64_t *ids = NULL;
    size_t count = 0;
    int64_t last_known = 0;
    enum status status = segments_list(archive->segments, &ids, &count);
    if (status == STATUS_OK) {
        status = read_last_segment(archive, &last_known);
    }
    if (status == STATUS_OK) {
        status = forget_missing(archive, ids, count);
    }
    for (size_t i = 0; i < count && status == STATUS_OK; i++) {
        status = recover_file(archive, ids[i], last_known, i + 1 == count);
    }
    memory_free(ids);
    return status;
}
