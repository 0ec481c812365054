/* SPDX-License-Identifier: MIT */
#include "archive/sqlite_engine.h"

#include "base/memory.h"

struct topic_statements {
    enum sqlite_statement find;
    enum sqlite_statement add;
};

static const struct topic_statements pubsub_statements = {
        SQLITE_STATEMENT_FIND_PUBSUB, SQLITE_STATEMENT_ADD_PUBSUB};
static const struct topic_statements content_statements = {
        SQLITE_STATEMENT_FIND_CONTENT, SQLITE_STATEMENT_ADD_CONTENT};

static enum status find_or_add_topic(struct sqlite_connection *connection,
        const struct topic_statements *statements, struct span name, int64_t *id)
{
    sqlite3_stmt *find = NULL;
    sqlite3_stmt *add = NULL;
    enum status status = sqlite_statement(connection, statements->find, &find);
    if (status != STATUS_OK) {
        return status;
    }
    sqlite_bind_span(find, 1, name);
    bool has_row = false;
    status = sqlite_step(connection, find, &has_row);
    if (has_row) {
        *id = sqlite3_column_int64(find, 0);
        sqlite3_reset(find);
        return STATUS_OK;
    }
    if (status == STATUS_OK) {
        status = sqlite_statement(connection, statements->add, &add);
    }
    if (status != STATUS_OK) {
        return status;
    }
    sqlite_bind_span(add, 1, name);
    status = sqlite_run(connection, add);
    *id = sqlite3_last_insert_rowid(connection->db);
    return status;
}

static enum status id_of_topic(struct sqlite_archive *archive, struct topic_cache *cache,
        const struct topic_statements *statements, struct span name, int64_t *id)
{
    *id = topic_cache_find(cache, name);
    if (*id != 0) {
        return STATUS_OK;
    }
    enum status status = find_or_add_topic(&archive->connection, statements, name, id);
    if (status == STATUS_OK) {
        topic_cache_add(cache, name, *id);
    }
    return status;
}

enum status sqlite_index_record(struct sqlite_archive *archive, struct sqlite_batch *batch,
        const struct archive_record *record, bool *is_new)
{
    int64_t pubsub = 0;
    int64_t content = 0;
    sqlite3_stmt *add = NULL;
    enum status status = id_of_topic(
            archive, &archive->pubsub_topics, &pubsub_statements, record->pubsub_topic, &pubsub);
    if (status == STATUS_OK) {
        status = id_of_topic(archive, &archive->content_topics, &content_statements,
                record->content_topic, &content);
    }
    if (status == STATUS_OK) {
        status = sqlite_statement(&archive->connection, SQLITE_STATEMENT_ADD_MESSAGE, &add);
    }
    if (status != STATUS_OK) {
        return status;
    }
    size_t size = record_size(record);
    sqlite3_bind_int64(add, 1, record->timestamp_ns);
    sqlite_bind_span(add, 2, span_of(record->hash, MESSAGE_HASH_BYTES));
    sqlite3_bind_int64(add, 3, batch->segment);
    sqlite3_bind_int64(add, 4, (int64_t)batch->offset);
    sqlite3_bind_int64(add, 5, (int64_t)size);
    sqlite3_bind_int64(add, 6, pubsub);
    sqlite3_bind_int64(add, 7, content);
    status = sqlite_run(&archive->connection, add);
    *is_new = status == STATUS_OK && sqlite3_changes(archive->connection.db) > 0;
    if (*is_new) {
        batch->offset += size;
        batch->bytes += (int64_t)size;
        batch->stored++;
    }
    return status;
}

enum status sqlite_save_batch(struct sqlite_archive *archive, const struct sqlite_batch *batch)
{
    sqlite3_stmt *save = NULL;
    enum status status =
            sqlite_statement(&archive->connection, SQLITE_STATEMENT_SAVE_SEGMENT, &save);
    if (status != STATUS_OK) {
        return status;
    }
    sqlite3_bind_int64(save, 1, batch->segment);
    sqlite3_bind_int64(save, 2, (int64_t)batch->offset);
    sqlite3_bind_int64(save, 3, (int64_t)batch->stored);
    sqlite3_bind_int64(save, 4, batch->bytes);
    return sqlite_run(&archive->connection, save);
}

enum status sqlite_reserve_batch(struct sqlite_archive *archive, size_t count)
{
    if (archive->batch_capacity >= count) {
        return STATUS_OK;
    }
    uint8_t *headers = memory_resize(archive->headers, count * RECORD_HEADER_BYTES);
    if (headers == NULL) {
        return STATUS_NO_MEMORY;
    }
    archive->headers = headers;
    struct iovec *parts = memory_resize(archive->parts, 3 * count * sizeof(*parts));
    if (parts == NULL) {
        return STATUS_NO_MEMORY;
    }
    archive->parts = parts;
    archive->batch_capacity = count;
    return STATUS_OK;
}

void sqlite_stage_record(
        struct sqlite_archive *archive, size_t i, const struct archive_record *record)
{
    uint8_t *header = archive->headers + i * RECORD_HEADER_BYTES;
    struct iovec *parts = archive->parts + 3 * i;
    struct span topic = record->pubsub_topic;
    struct span message = record->message;
    record_encode_header(header, record);
    parts[0] = (struct iovec){header, RECORD_HEADER_BYTES};
    parts[1] = (struct iovec){(void *)topic.bytes, topic.length};
    parts[2] = (struct iovec){(void *)message.bytes, message.length};
}

void sqlite_give_up(struct sqlite_archive *archive)
{
    sqlite_roll_back(&archive->connection);
    segments_undo(archive->segments);
    topic_cache_clear(&archive->pubsub_topics);
    topic_cache_clear(&archive->content_topics);
}

/* Between begin and commit: the rows first, since they say which messages are new. */
static enum status put_rows(struct sqlite_archive *archive, const struct archive_record records[],
        size_t count, struct sqlite_batch *batch)
{
    enum status status = STATUS_OK;
    for (size_t i = 0; i < count && status == STATUS_OK; i++) {
        bool is_new = false;
        status = record_check(&records[i]);
        if (status == STATUS_OK) {
            status = sqlite_index_record(archive, batch, &records[i], &is_new);
        }
        if (is_new) {
            sqlite_stage_record(archive, batch->stored - 1, &records[i]);
        }
    }
    if (status != STATUS_OK || batch->stored == 0) {
        return status;
    }
    status = sqlite_save_batch(archive, batch);
    if (status != STATUS_OK) {
        return status;
    }
    return segments_write(archive->segments, archive->parts, 3 * batch->stored);
}

enum status sqlite_archive_put(struct archive *base, const struct archive_record records[],
        size_t count, struct archive_put_result *result)
{
    struct sqlite_archive *archive = (struct sqlite_archive *)base;
    if (archive->target.is_read_only) {
        return STATUS_READ_ONLY;
    }
    struct sqlite_batch batch = {0};
    enum status status = sqlite_reserve_hold(&archive->reserve);
    if (status == STATUS_OK) {
        status = sqlite_reserve_batch(archive, count);
    }
    if (status == STATUS_OK) {
        status = segments_begin(archive->segments, &batch.segment, &batch.offset);
    }
    if (status != STATUS_OK) {
        return status;
    }
    status = sqlite_run_plain(&archive->connection, SQLITE_STATEMENT_BEGIN_WRITE);
    if (status == STATUS_OK) {
        status = put_rows(archive, records, count, &batch);
    }
    if (status == STATUS_OK) {
        status = sqlite_run_plain(&archive->connection, SQLITE_STATEMENT_COMMIT);
    }
    if (status != STATUS_OK) {
        sqlite_give_up(archive);
        if (status == STATUS_DAMAGED) {
            sqlite_note_damage(archive);
        }
        return status;
    }
    result->stored = batch.stored;
    result->duplicates = count - batch.stored;
    return STATUS_OK;
}
