/* SPDX-License-Identifier: MIT */
#include "archive/sqlite_engine.h"

#include <string.h>

#include "base/memory.h"

enum {
    MAX_MOVED_BYTES = 2 << 20 /* in one transaction */
};

struct move {
    struct sqlite_archive *archive;
    struct segment_walk walk;
    struct sqlite_batch batch; /* where to */
    uint8_t *bytes;            /* the records being moved */
    size_t length;
    size_t capacity;
    bool is_at_end;
};

/* The next sparse segment behind the one that was emptied last, or the one with most dead bytes. */
static enum status choose_segment(struct sqlite_archive *archive, bool is_pressed)
{
    sqlite3_stmt *sparse = NULL;
    enum status status = sqlite_statement(&archive->connection,
            is_pressed ? SQLITE_STATEMENT_WORST_SEGMENT : SQLITE_STATEMENT_SPARSE_SEGMENT, &sparse);
    if (status != STATUS_OK) {
        return status;
    }
    sqlite3_bind_int64(sparse, 1, archive->moving_segment);
    sqlite3_bind_int64(sparse, 2, segments_current(archive->segments));
    status = sqlite_step(&archive->connection, sparse, &archive->is_moving);
    archive->moving_segment = 0;
    archive->moving_offset = 0;
    if (archive->is_moving) {
        archive->moving_segment = sqlite3_column_int64(sparse, 0);
        sqlite3_reset(sparse);
    }
    return status;
}

static enum status keep_bytes(struct move *move, struct span bytes)
{
    if (move->capacity - move->length < bytes.length) {
        size_t capacity = 2 * (move->length + bytes.length);
        uint8_t *grown = memory_resize(move->bytes, capacity);
        if (grown == NULL) {
            return STATUS_NO_MEMORY;
        }
        move->bytes = grown;
        move->capacity = capacity;
    }
    memcpy(move->bytes + move->length, bytes.bytes, bytes.length);
    move->length += bytes.length;
    return STATUS_OK;
}

/* Gives the message its new place, if it is wanted and its place is the old one. */
static enum status move_record(
        struct move *move, const struct archive_record *record, uint64_t old_offset)
{
    struct sqlite_archive *archive = move->archive;
    sqlite3_stmt *update = NULL;
    enum status status =
            sqlite_statement(&archive->connection, SQLITE_STATEMENT_MOVE_MESSAGE, &update);
    if (status != STATUS_OK) {
        return status;
    }
    sqlite3_bind_int64(update, 1, record->timestamp_ns);
    sqlite_bind_span(update, 2, span_of(record->hash, MESSAGE_HASH_BYTES));
    sqlite3_bind_int64(update, 3, archive->moving_segment);
    sqlite3_bind_int64(update, 4, (int64_t)old_offset);
    sqlite3_bind_int64(update, 5, move->batch.segment);
    sqlite3_bind_int64(update, 6, (int64_t)move->batch.offset);
    status = sqlite_run(&archive->connection, update);
    if (status != STATUS_OK || sqlite3_changes(archive->connection.db) == 0) {
        return status;
    }
    size_t size = record_size(record);
    move->batch.offset += size;
    move->batch.bytes += (int64_t)size;
    move->batch.stored++;
    return keep_bytes(move, span_of(move->walk.buffer, size));
}

static enum status move_records(struct move *move, const struct sqlite_step *step)
{
    for (size_t i = 0; !sqlite_step_is_over(step, i) && move->length < MAX_MOVED_BYTES; i++) {
        struct archive_record record;
        uint64_t offset = move->walk.offset;
        enum status status = segment_walk_next(&move->walk, &record);
        move->is_at_end = status == STATUS_NOT_FOUND || status == STATUS_DAMAGED;
        if (move->is_at_end) {
            return STATUS_OK;
        }
        if (status == STATUS_OK) {
            status = move_record(move, &record, offset);
        }
        if (status != STATUS_OK) {
            return status;
        }
    }
    return STATUS_OK;
}

static enum status write_moved(struct move *move)
{
    struct sqlite_archive *archive = move->archive;
    if (move->batch.stored == 0) {
        return STATUS_OK;
    }
    enum status status = sqlite_save_batch(archive, &move->batch);
    if (status == STATUS_OK) {
        status = sqlite_shrink_segment(
                archive, archive->moving_segment, (int64_t)move->batch.stored, move->batch.bytes);
    }
    if (status != STATUS_OK) {
        return status;
    }
    struct iovec all = {move->bytes, move->length};
    return segments_write(archive->segments, &all, 1);
}

static enum status run_move(struct move *move, const struct sqlite_step *step)
{
    struct sqlite_archive *archive = move->archive;
    enum status status =
            segments_begin(archive->segments, &move->batch.segment, &move->batch.offset);
    if (status != STATUS_OK) {
        return status;
    }
    status = sqlite_run_plain(&archive->connection, SQLITE_STATEMENT_BEGIN_WRITE);
    if (status == STATUS_OK) {
        status = move_records(move, step);
    }
    if (status == STATUS_OK) {
        status = write_moved(move);
    }
    if (status == STATUS_OK) {
        status = sqlite_run_plain(&archive->connection, SQLITE_STATEMENT_COMMIT);
    }
    if (status != STATUS_OK) {
        sqlite_give_up(archive);
    }
    return status;
}

enum status sqlite_compact(struct sqlite_archive *archive, const struct sqlite_step *step,
        bool is_pressed, bool *has_more)
{
    *has_more = false;
    if (!archive->is_moving) {
        enum status status = choose_segment(archive, is_pressed);
        if (status != STATUS_OK || !archive->is_moving) {
            return status;
        }
    }
    struct move move = {.archive = archive};
    enum status status = segment_walk_init(
            &move.walk, archive->segments, archive->moving_segment, archive->moving_offset);
    if (status == STATUS_OK) {
        status = run_move(&move, step);
    }
    if (status == STATUS_OK) {
        archive->moving_offset = move.walk.offset;
    }
    /* Also when the file is gone: the next call looks for another. */
    archive->is_moving = status == STATUS_OK && !move.is_at_end;
    /* The worst segment may be the worst again, if it cannot be read: then there is an end. */
    *has_more = archive->is_moving || !is_pressed || move.batch.stored > 0;
    segment_walk_fini(&move.walk);
    memory_free(move.bytes);
    return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}
