/* SPDX-License-Identifier: MIT */
#include "archive/reference_database.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "archive/record.h"
#include "archive/sqlite_engine.h"
#include "base/memory.h"
#include "codec/waku_message.h"
#include "hash/message_hash.h"

enum {
    NEWEST_SCHEMA = 10
};

struct reference_database {
    struct sqlite_connection connection;
    sqlite3_stmt *rows;
    uint8_t *buffer; /* of the message made last */
    size_t capacity;
    char *path;         /* NULL: SQLite sees to it that one moment is read */
    struct stat before; /* of the file, when it was opened as one that nobody writes */
};

static bool has_column(struct reference_database *database, const char *name)
{
    char sql[160];
    int64_t count = 0;
    snprintf(sql, sizeof(sql),
            "SELECT count(*) FROM pragma_table_info('message') WHERE lower(name) = '%s'", name);
    return sqlite_read_number(&database->connection, sql, &count) == STATUS_OK && count > 0;
}

static enum status check(struct reference_database *database)
{
    int64_t version = 0;
    if (!sqlite_has_reference_table(&database->connection)) {
        return STATUS_NOT_A_DATABASE;
    }
    enum status status = sqlite_read_number(&database->connection, "PRAGMA user_version", &version);
    return status == STATUS_OK && version > NEWEST_SCHEMA ? STATUS_NEWER_SCHEMA : status;
}

static enum status prepare(struct reference_database *database)
{
    char sql[256];
    snprintf(sql, sizeof(sql),
            "SELECT pubsubTopic, contentTopic, payload, version, timestamp, %s, %s FROM message"
            " ORDER BY timestamp",
            has_column(database, "meta") ? "meta" : "NULL",
            has_column(database, "messagehash") ? "messageHash" : "NULL");
    int result = sqlite3_prepare_v2(database->connection.db, sql, -1, &database->rows, NULL);
    return sqlite_status_of(&database->connection, result);
}

static bool is_same_time(struct timespec a, struct timespec b)
{
    return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec;
}

/* A file without a journal is read without locks; STATUS_BUSY when somebody has written it meanwhile. */
static enum status check_unchanged(const struct reference_database *database)
{
    struct stat now;
    if (database->path == NULL) {
        return STATUS_OK;
    }
    if (stat(database->path, &now) < 0) {
        return file_status_of(errno);
    }
    struct sqlite_target target;
    sqlite_foreign_target(&target, database->path, NULL);
    bool is_same = target.is_immutable && now.st_size == database->before.st_size &&
                   is_same_time(now.st_mtim, database->before.st_mtim);
    return is_same ? STATUS_OK : STATUS_BUSY;
}

static enum status note_file(struct reference_database *database, const char *path)
{
    database->path = strdup(path);
    if (database->path == NULL) {
        return STATUS_NO_MEMORY;
    }
    return stat(path, &database->before) < 0 ? file_status_of(errno) : STATUS_OK;
}

enum status reference_database_open(struct reference_database **out, const char *path)
{
    struct sqlite_target target;
    if (access(path, R_OK) != 0) {
        return file_status_of(errno);
    }
    struct reference_database *database = memory_allocate_zeroed(sizeof(*database));
    if (database == NULL) {
        return STATUS_NO_MEMORY;
    }
    sqlite_foreign_target(&target, path, NULL);
    enum status status = target.is_immutable ? note_file(database, path) : STATUS_OK;
    if (status == STATUS_OK) {
        status = sqlite_connection_init(&database->connection, &target);
    }
    if (status == STATUS_OK) {
        status = check(database);
    }
    if (status == STATUS_OK) {
        status = prepare(database);
    }
    if (status != STATUS_OK) {
        reference_database_close(&database);
        return status;
    }
    *out = database;
    return STATUS_OK;
}

void reference_database_close(struct reference_database **pointer)
{
    struct reference_database *database = *pointer;
    if (database == NULL) {
        return;
    }
    sqlite3_finalize(database->rows);
    sqlite_connection_fini(&database->connection);
    memory_free(database->buffer);
    free(database->path);
    memory_free(database);
    *pointer = NULL;
}

static enum status make_message(struct reference_database *database,
        const struct waku_message_view *fields, struct span *message,
        struct waku_message_view *view)
{
    size_t size = waku_message_size(fields);
    if (database->capacity < size) {
        uint8_t *grown = memory_resize(database->buffer, size);
        if (grown == NULL) {
            return STATUS_NO_MEMORY;
        }
        database->buffer = grown;
        database->capacity = size;
    }
    size_t written = waku_message_encode_view(database->buffer, database->capacity, fields, view);
    *message = span_of(database->buffer, written);
    return written == size ? STATUS_OK : STATUS_BAD_FIELD;
}

static enum status make_row(struct reference_database *database, struct reference_row *row)
{
    sqlite3_stmt *rows = database->rows;
    struct waku_message_view view;
    struct waku_message_view fields = {.content_topic = sqlite_column_span(rows, 1),
            .payload = sqlite_column_span(rows, 2),
            .version = (uint32_t)sqlite3_column_int64(rows, 3),
            .timestamp_ns = sqlite3_column_int64(rows, 4),
            .meta = sqlite_column_span(rows, 5),
            .has_payload = true,
            .has_content_topic = true};
    struct archive_record *record = &row->record;
    fields.has_timestamp = fields.timestamp_ns != 0;
    *record = (struct archive_record){.pubsub_topic = sqlite_column_span(rows, 0),
            .timestamp_ns = fields.timestamp_ns,
            .received_ns = fields.timestamp_ns,
            .origin = ORIGIN_RESUME};
    if (record->pubsub_topic.length == 0 || fields.content_topic.length == 0) {
        return STATUS_BAD_FIELD;
    }
    enum status status = make_message(database, &fields, &record->message, &view);
    if (status != STATUS_OK) {
        return status;
    }
    if (record_check(record) != STATUS_OK) {
        return STATUS_BAD_FIELD;
    }
    record->content_topic = view.content_topic;
    struct message_hash_input input = {.pubsub_topic = record->pubsub_topic,
            .payload = view.payload,
            .content_topic = view.content_topic,
            .meta = view.meta,
            .timestamp_ns = view.timestamp_ns};
    message_hash(record->hash, &input);
    struct span stored = sqlite_column_span(rows, 6);
    row->had_other_hash =
            stored.length > 0 && !span_equal(stored, span_of(record->hash, sizeof(record->hash)));
    return STATUS_OK;
}

enum status reference_database_next(
        struct reference_database *database, struct reference_row *row, bool *has_row)
{
    int result = sqlite3_step(database->rows);
    *has_row = result == SQLITE_ROW;
    if (*has_row) {
        return make_row(database, row);
    }
    /* Also instead of the damage that half of a foreign write looks like. */
    enum status changed = check_unchanged(database);
    return changed != STATUS_OK ? changed : sqlite_status_of(&database->connection, result);
}
