/* SPDX-License-Identifier: MIT */
#include "archive/verify.h"

#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "archive/backup.h"
#include "archive/sqlite_engine.h"
#include "base/memory.h"
#include "codec/waku_message.h"
#include "hash/message_hash.h"

struct verify {
    struct sqlite_archive *archive;
    struct sqlite_connection *connection;
    archive_finding *finding;
    void *context;
    struct archive_verify_result *result;
};

/* What the index says of a segment, and what was found of it. */
struct tally {
    int64_t id;
    uint64_t indexed;
    int64_t count;
    int64_t bytes;
    int64_t found_count;
    int64_t found_bytes;
};

__attribute__((format(printf, 3, 4))) static void report(
        struct verify *verify, bool is_problem, const char *format, ...)
{
    char text[400];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    verify->result->problems += is_problem;
    verify->finding(verify->context, is_problem, text);
}

static void check_record(
        struct verify *verify, const struct tally *tally, const struct archive_record *record)
{
    struct waku_message_view view;
    uint8_t hash[SHA256_BYTES];
    if (waku_message_decode(&view, record->message) != STATUS_OK) {
        report(verify, true, "segment %" PRId64 ": a message does not decode", tally->id);
        return;
    }
    struct message_hash_input input = {.pubsub_topic = record->pubsub_topic,
            .payload = view.payload,
            .content_topic = view.content_topic,
            .meta = view.meta,
            .timestamp_ns = view.timestamp_ns};
    message_hash(hash, &input);
    if (memcmp(hash, record->hash, sizeof(hash)) != 0) {
        report(verify, true, "segment %" PRId64 ": a message has another hash than its record says",
                tally->id);
    }
    if (view.timestamp_ns != record->timestamp_ns ||
            !span_equal(view.content_topic, record->content_topic)) {
        report(verify, true,
                "segment %" PRId64 ": a record names another time or topic than its message",
                tally->id);
    }
}

/* Whether the index has the record there, or has it elsewhere or no more. */
static enum status compare_row(struct verify *verify, struct tally *tally,
        const struct archive_record *record, uint64_t offset)
{
    sqlite3_stmt *find = NULL;
    bool has_row = false;
    enum status status = sqlite_statement(verify->connection, SQLITE_STATEMENT_VERIFY_ROW, &find);
    if (status != STATUS_OK) {
        return status;
    }
    sqlite_bind_span(find, 1, span_of(record->hash, MESSAGE_HASH_BYTES));
    status = sqlite_step(verify->connection, find, &has_row);
    if (status != STATUS_OK) {
        return status;
    }
    bool is_here = has_row && sqlite3_column_int64(find, 1) == tally->id &&
                   (uint64_t)sqlite3_column_int64(find, 2) == offset;
    if (!is_here) {
        verify->result->dead++;
    } else {
        tally->found_count++;
        tally->found_bytes += sqlite3_column_int64(find, 3);
        verify->result->messages++;
        if (sqlite3_column_int64(find, 0) != record->timestamp_ns ||
                (size_t)sqlite3_column_int64(find, 3) != record_size(record) ||
                !span_equal(sqlite_column_span(find, 4), record->pubsub_topic) ||
                !span_equal(sqlite_column_span(find, 5), record->content_topic)) {
            report(verify, true,
                    "segment %" PRId64 ", byte %" PRIu64
                    ": the index names another time, length or topic",
                    tally->id, offset);
        }
    }
    sqlite3_reset(find);
    return STATUS_OK;
}

static enum status walk_segment(struct verify *verify, struct tally *tally)
{
    struct segment_walk walk;
    enum status status = segment_walk_init(&walk, verify->archive->segments, tally->id, 0);
    while (status == STATUS_OK && walk.offset < tally->indexed) {
        struct archive_record record;
        uint64_t offset = walk.offset;
        status = segment_walk_next(&walk, &record);
        if (status == STATUS_OK) {
            verify->result->bytes += record_size(&record);
            check_record(verify, tally, &record);
            status = compare_row(verify, tally, &record, offset);
        } else if (status == STATUS_DAMAGED || status == STATUS_NOT_FOUND) {
            report(verify, true,
                    "segment %" PRId64 ": no whole record at byte %" PRIu64 " of %" PRIu64,
                    tally->id, offset, tally->indexed);
            segment_walk_fini(&walk);
            return STATUS_OK;
        }
    }
    segment_walk_fini(&walk);
    if (status == STATUS_NOT_FOUND) {
        report(verify, true, "segment %" PRId64 " is missing", tally->id);
        return STATUS_OK;
    }
    return status;
}

/* *is_there false: retention has dropped it since the list was made. */
static enum status read_tally(struct verify *verify, struct tally *tally, bool *is_there)
{
    sqlite3_stmt *find = NULL;
    enum status status =
            sqlite_statement(verify->connection, SQLITE_STATEMENT_SEGMENT_TALLY, &find);
    if (status != STATUS_OK) {
        return status;
    }
    sqlite3_bind_int64(find, 1, tally->id);
    status = sqlite_step(verify->connection, find, is_there);
    if (*is_there) {
        tally->indexed = (uint64_t)sqlite3_column_int64(find, 0);
        tally->count = sqlite3_column_int64(find, 1);
        tally->bytes = sqlite3_column_int64(find, 2);
        sqlite3_reset(find);
    }
    return status;
}

/* A read transaction for each, so that a node's journal does not grow for as long as all of it takes. */
static enum status check_segment(struct verify *verify, int64_t id)
{
    struct tally tally = {.id = id};
    bool is_there = false;
    enum status status = sqlite_run_plain(verify->connection, SQLITE_STATEMENT_BEGIN_READ);
    if (status == STATUS_OK) {
        status = read_tally(verify, &tally, &is_there);
    }
    if (status == STATUS_OK && is_there) {
        verify->result->segments++;
        status = walk_segment(verify, &tally);
        if (status == STATUS_OK &&
                (tally.found_count != tally.count || tally.found_bytes != tally.bytes)) {
            report(verify, true,
                    "segment %" PRId64 ": the index counts %" PRId64 " messages of %" PRId64
                    " bytes, %" PRId64 " of %" PRId64 " are there",
                    id, tally.count, tally.bytes, tally.found_count, tally.found_bytes);
        }
    }
    sqlite_roll_back(verify->connection);
    return status;
}

/* What SQLite says of the index. */
static enum status check_pages(struct verify *verify)
{
    sqlite3_stmt *check = NULL;
    struct sqlite_connection *connection = verify->connection;
    int result = sqlite3_prepare_v2(connection->db, "PRAGMA integrity_check(20)", -1, &check, NULL);
    while (result == SQLITE_OK || result == SQLITE_ROW) {
        result = sqlite3_step(check);
        const char *text =
                result == SQLITE_ROW ? (const char *)sqlite3_column_text(check, 0) : NULL;
        if (text != NULL && strcmp(text, "ok") != 0) {
            report(verify, true, "index: %s", text);
        }
    }
    sqlite3_finalize(check);
    return sqlite_status_of(connection, result);
}

/* Also whether its rows are as many as its segments count. */
static enum status check_index(struct verify *verify)
{
    int64_t difference = 0;
    enum status status = check_pages(verify);
    if (status == STATUS_OK) {
        status = sqlite_read_number(verify->connection,
                "SELECT (SELECT count(*) FROM message) - (SELECT total(count) FROM segment)",
                &difference);
    }
    if (status == STATUS_OK && difference != 0) {
        report(verify, true, "index: it has %" PRId64 " rows more than its segments count",
                difference);
    }
    if (status == STATUS_DAMAGED) {
        report(verify, true,
                "index: it is damaged; a node makes it anew from the segments at its start");
        return STATUS_OK;
    }
    return status;
}

static bool is_indexed(struct verify *verify, int64_t id, bool *failed)
{
    struct tally tally = {.id = id};
    bool is_there = false;
    *failed = read_tally(verify, &tally, &is_there) != STATUS_OK;
    return is_there;
}

static enum status check_files(struct verify *verify)
{
    int64_t *ids = NULL;
    size_t count = 0;
    enum status status = segments_list(verify->archive->segments, &ids, &count);
    for (size_t i = 0; i < count && status == STATUS_OK; i++) {
        bool failed = false;
        if (is_indexed(verify, ids[i], &failed)) {
            status = check_segment(verify, ids[i]);
        } else if (!failed) {
            report(verify, false,
                    "segment %" PRId64
                    " is not in the index: the next start of a node reads or removes it",
                    ids[i]);
        }
    }
    memory_free(ids);
    return status;
}

/* Segments of the index that have no file. */
static enum status check_missing(struct verify *verify)
{
    char path[PATH_MAX];
    sqlite3_stmt *list = NULL;
    enum status status = sqlite_statement(verify->connection, SQLITE_STATEMENT_LIST_EXTENTS, &list);
    bool has_row = status == STATUS_OK;
    while (has_row) {
        status = sqlite_step(verify->connection, list, &has_row);
        if (!has_row) {
            break;
        }
        char name[64];
        segment_file_name(name, sizeof(name), sqlite3_column_int64(list, 0));
        snprintf(
                path, sizeof(path), "%s" SQLITE_SEGMENTS_SUFFIX "/%s", verify->archive->name, name);
        if (access(path, R_OK) != 0) {
            report(verify, true,
                    "segment %s: its %" PRId64 " messages are lost: the file is missing", name,
                    (int64_t)sqlite3_column_int64(list, 2));
        }
    }
    return status;
}

static enum status verify_all(struct verify *verify)
{
    enum status status = check_index(verify);
    if (status == STATUS_OK) {
        status = check_missing(verify);
    }
    return status == STATUS_OK ? check_files(verify) : status;
}

enum status archive_verify(const char *address, archive_finding *finding, void *context,
        struct archive_verify_result *result, struct archive_error *error)
{
    static const struct archive_options read_only = {.is_read_only = true};
    char folder[PATH_MAX];
    const char *path = archive_path_of(address);
    struct archive *archive = NULL;
    int lock = -1;
    *result = (struct archive_verify_result){0};
    if (path == NULL) {
        snprintf(error->text, sizeof(error->text), "'%.400s': not sqlite://PATH", address);
        return STATUS_BAD_ARGUMENT;
    }
    snprintf(folder, sizeof(folder), "%s" SQLITE_SEGMENTS_SUFFIX, path);
    enum status status = segments_hold(&lock, folder);
    if (status == STATUS_OK || status == STATUS_READ_ONLY || status == STATUS_NOT_FOUND) {
        status = archive_open(&archive, address, &read_only, error);
    }
    if (status == STATUS_OK) {
        struct sqlite_archive *sqlite = (struct sqlite_archive *)archive;
        struct verify verify = {.archive = sqlite,
                .connection = &sqlite->connection,
                .finding = finding,
                .context = context,
                .result = result};
        status = verify_all(&verify);
        snprintf(error->text, sizeof(error->text), "verify %.900s: %s", path, status_text(status));
    }
    archive_close(&archive);
    if (lock >= 0) {
        close(lock);
    }
    return status;
}
