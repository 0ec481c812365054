/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "archive/sqlite_engine.h"
#include "base/memory.h"

enum {
    STEPS_BETWEEN_DEADLINE_CHECKS = 4096, /* of SQLite's virtual machine */
    STAND_BACK_MAX = 2 /* times that one query begins again for the journal's sake */
};

/* Above every hash. */
static const char beyond_all_hashes[] =
        "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"
        "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"
        "\xff";

static struct sqlite_reader *reader_of(struct archive_reader *reader)
{
    return (struct sqlite_reader *)reader;
}

static struct sqlite_archive *archive_of(struct archive_reader *reader)
{
    return (struct sqlite_archive *)reader->archive;
}

enum status sqlite_archive_reader_open(struct archive_reader **out, struct archive *archive)
{
    struct sqlite_reader *reader = memory_allocate_zeroed(sizeof(*reader));
    if (reader == NULL) {
        return STATUS_NO_MEMORY;
    }
    reader->base.archive = archive;
    struct sqlite_target target = ((struct sqlite_archive *)archive)->target;
    target.is_read_only = true;
    enum status status = sqlite_connection_init(&reader->connection, &target);
    if (status == STATUS_OK) {
        status = sqlite_execute(&reader->connection, "PRAGMA query_only = ON");
    }
    if (status != STATUS_OK) {
        sqlite_archive_reader_close(&reader->base);
        return status;
    }
    *out = &reader->base;
    return STATUS_OK;
}

static void close_segment(struct sqlite_reader *reader)
{
    if (reader->segment != 0) {
        segments_close_reading(archive_of(&reader->base)->segments, reader->fd);
        reader->segment = 0;
    }
}

void sqlite_archive_reader_close(struct archive_reader *base)
{
    struct sqlite_reader *reader = reader_of(base);
    close_segment(reader);
    sqlite_connection_fini(&reader->connection);
    memory_free(reader->buffer);
    memory_free(reader);
}

/* What may end a scan before it is through. */
struct scan_watch {
    const struct archive_selection *selection;
    const struct sqlite_tending *tending; /* NULL: it does not stand back any more */
};

static int is_to_end(void *context)
{
    const struct scan_watch *watch = context;
    return selection_is_late(watch->selection) ||
           (watch->tending != NULL && sqlite_wants_quiet(watch->tending));
}

static struct page_row row_of(sqlite3_stmt *statement)
{
    struct page_row row = {
            .key.timestamp_ns = sqlite3_column_int64(statement, 0),
            .segment = sqlite3_column_int64(statement, 2),
            .offset = sqlite3_column_int64(statement, 3),
            .length = sqlite3_column_int64(statement, 4),
            .pubsub = sqlite3_column_int64(statement, 5),
            .content = sqlite3_column_int64(statement, 6),
    };
    struct span hash = sqlite_column_span(statement, 1);
    if (hash.length == ID_HASH_BYTES) {
        memcpy(row.key.hash, hash.bytes, ID_HASH_BYTES);
    }
    return row;
}

/* *found false when the hash is not there. */
static enum status find_row(
        struct sqlite_connection *connection, struct span hash, struct page_row *row, bool *found)
{
    sqlite3_stmt *find = NULL;
    *found = false;
    enum status status = sqlite_statement(connection, SQLITE_STATEMENT_FIND_BY_HASH, &find);
    if (status != STATUS_OK) {
        return status;
    }
    sqlite_bind_span(find, 1, hash);
    status = sqlite_step(connection, find, found);
    if (*found) {
        *row = row_of(find);
        sqlite3_reset(find);
    }
    return status;
}

static enum status select_by_hash(struct sqlite_connection *connection,
        const struct archive_selection *selection, struct page_builder *builder)
{
    const struct archive_query *query = selection->query;
    for (size_t i = 0; i < query->hash_count; i++) {
        struct page_row row;
        bool found = false;
        if (selection_is_late(selection)) {
            return STATUS_TIMED_OUT;
        }
        enum status status = find_row(connection, query->hashes[i], &row, &found);
        if (status == STATUS_OK && found && selection_has(selection, &row.key)) {
            status = page_builder_add(builder, &row);
        }
        if (status != STATUS_OK) {
            return status;
        }
    }
    return STATUS_OK;
}

/* *id 0 when no message has that topic. */
static enum status find_topic(struct sqlite_connection *connection, enum sqlite_statement statement,
        struct span name, int64_t *id)
{
    sqlite3_stmt *find = NULL;
    *id = 0;
    enum status status = sqlite_statement(connection, statement, &find);
    if (status != STATUS_OK) {
        return status;
    }
    sqlite_bind_span(find, 1, name);
    bool has_row = false;
    status = sqlite_step(connection, find, &has_row);
    if (has_row) {
        *id = sqlite3_column_int64(find, 0);
        sqlite3_reset(find);
    }
    return status;
}

static void bind_range(
        sqlite3_stmt *scan, const struct archive_selection *selection, int64_t pubsub)
{
    struct span upper_hash = selection->is_upper_open
                                     ? span_of(beyond_all_hashes, sizeof(beyond_all_hashes))
                                     : span_of(selection->upper.hash, ID_HASH_BYTES);
    sqlite3_bind_int64(scan, 1, selection->lower.timestamp_ns);
    sqlite_bind_span(scan, 2, span_of(selection->lower.hash, ID_HASH_BYTES));
    sqlite3_bind_int64(
            scan, 3, selection->is_upper_open ? INT64_MAX : selection->upper.timestamp_ns);
    sqlite_bind_span(scan, 4, upper_hash);
    if (pubsub == 0) {
        sqlite3_bind_null(scan, 5);
    } else {
        sqlite3_bind_int64(scan, 5, pubsub);
    }
    sqlite3_bind_int64(scan, 6, (int64_t)selection->limit + 1);
}

/* content 0: any. */
static enum status scan_range(struct sqlite_connection *connection,
        const struct archive_selection *selection, struct page_builder *builder, int64_t pubsub,
        int64_t content)
{
    bool is_backward = selection->query->is_backward;
    enum sqlite_statement id =
            is_backward ? SQLITE_STATEMENT_PAGE_BACKWARD : SQLITE_STATEMENT_PAGE_FORWARD;
    if (content != 0) {
        id = is_backward ? SQLITE_STATEMENT_CONTENT_BACKWARD : SQLITE_STATEMENT_CONTENT_FORWARD;
    }
    sqlite3_stmt *scan = NULL;
    enum status status = sqlite_statement(connection, id, &scan);
    if (status != STATUS_OK) {
        return status;
    }
    bind_range(scan, selection, pubsub);
    if (content != 0) {
        sqlite3_bind_int64(scan, 7, content);
    }
    bool has_row = true;
    while (has_row) {
        status = sqlite_step(connection, scan, &has_row);
        if (!has_row) {
            return status;
        }
        struct page_row row = row_of(scan);
        status = page_builder_add(builder, &row);
        if (status != STATUS_OK) {
            sqlite3_reset(scan);
            return status;
        }
    }
    return STATUS_OK;
}

static enum status select_by_filter(struct sqlite_connection *connection,
        const struct archive_selection *selection, struct page_builder *builder)
{
    const struct archive_query *query = selection->query;
    int64_t pubsub = 0;
    enum status status = STATUS_OK;
    if (query->pubsub_topic.length > 0) {
        status = find_topic(connection, SQLITE_STATEMENT_FIND_PUBSUB, query->pubsub_topic, &pubsub);
        if (status != STATUS_OK || pubsub == 0) {
            return status;
        }
    }
    if (query->content_topic_count == 0) {
        return scan_range(connection, selection, builder, pubsub, 0);
    }
    for (size_t i = 0; i < query->content_topic_count && status == STATUS_OK; i++) {
        int64_t content = 0;
        if (selection_is_late(selection)) {
            return STATUS_TIMED_OUT;
        }
        status = find_topic(
                connection, SQLITE_STATEMENT_FIND_CONTENT, query->content_topics[i], &content);
        if (status == STATUS_OK && content != 0) {
            status = scan_range(connection, selection, builder, pubsub, content);
        }
    }
    return status;
}

static enum status select_rows(struct sqlite_connection *connection,
        struct archive_selection *selection, struct page_builder *builder)
{
    const struct archive_query *query = selection->query;
    if (query->has_cursor) {
        struct page_row row;
        bool found = false;
        enum status status = find_row(connection, query->cursor, &row, &found);
        if (status != STATUS_OK) {
            return status;
        }
        if (!found) {
            return STATUS_BAD_CURSOR;
        }
        selection_start_behind(selection, &row.key);
    }
    return query->hash_count > 0 ? select_by_hash(connection, selection, builder)
                                 : select_by_filter(connection, selection, builder);
}

static enum status select_at_one_moment(struct sqlite_connection *connection,
        struct archive_selection *selection, struct page_builder *builder, struct scan_watch *watch)
{
    sqlite3_progress_handler(connection->db, STEPS_BETWEEN_DEADLINE_CHECKS, is_to_end, watch);
    enum status status = sqlite_run_plain(connection, SQLITE_STATEMENT_BEGIN_READ);
    if (status == STATUS_OK) {
        status = select_rows(connection, selection, builder);
    }
    sqlite3_progress_handler(connection->db, 0, NULL, NULL);
    sqlite_roll_back(connection);
    return status;
}

enum status sqlite_archive_select(struct archive_reader *base, struct archive_selection *selection,
        struct page_builder *builder)
{
    struct sqlite_tending *tending = &archive_of(base)->tending;
    for (unsigned round = 0;; round++) {
        while (sqlite_wants_quiet(tending) && !selection_is_late(selection)) {
            sqlite_stand_back(tending);
        }
        if (selection_is_late(selection)) {
            return STATUS_TIMED_OUT;
        }
        struct scan_watch watch = {
                .selection = selection, .tending = round < STAND_BACK_MAX ? tending : NULL};
        enum status status =
                select_at_one_moment(&reader_of(base)->connection, selection, builder, &watch);
        if (status != STATUS_TIMED_OUT || selection_is_late(selection)) {
            return status;
        }
        page_builder_clear(builder);
    }
}

static enum status open_segment(struct sqlite_reader *reader, int64_t segment)
{
    if (reader->segment == segment) {
        return STATUS_OK;
    }
    close_segment(reader);
    enum status status =
            segments_open_reading(archive_of(&reader->base)->segments, segment, &reader->fd);
    reader->segment = status == STATUS_OK ? segment : 0;
    return status;
}

/* Opens the row's file; looks the row up again when retention has moved it meanwhile. */
static enum status open_row(struct sqlite_reader *reader, struct page_row *row)
{
    enum status status = open_segment(reader, row->segment);
    if (status != STATUS_NOT_FOUND) {
        return status;
    }
    struct span hash = span_of(row->key.hash, ID_HASH_BYTES);
    struct page_row moved;
    bool found = false;
    status = find_row(&reader->connection, hash, &moved, &found);
    if (status != STATUS_OK || !found || moved.segment == row->segment) {
        return status == STATUS_OK ? STATUS_NOT_FOUND : status;
    }
    *row = moved;
    return open_segment(reader, row->segment);
}

static enum status read_record(
        struct sqlite_reader *reader, const struct page_row *row, struct archive_record *record)
{
    if (row->length < RECORD_HEADER_BYTES || row->offset < 0) {
        return STATUS_DAMAGED;
    }
    size_t length = (size_t)row->length;
    if (reader->capacity < length) {
        uint8_t *grown = memory_resize(reader->buffer, length);
        if (grown == NULL) {
            return STATUS_NO_MEMORY;
        }
        reader->buffer = grown;
        reader->capacity = length;
    }
    struct iovec to = {reader->buffer, length};
    enum status status = segments_read(
            archive_of(&reader->base)->segments, reader->fd, to, (uint64_t)row->offset);
    if (status == STATUS_OK) {
        status = record_decode(record, span_of(reader->buffer, length));
    }
    if (status == STATUS_NOT_FOUND ||
            (status == STATUS_OK && memcmp(record->hash, row->key.hash, MESSAGE_HASH_BYTES) != 0)) {
        status = STATUS_DAMAGED;
    }
    return status;
}

/*
 * Whether a record that cannot be read was removed or moved since its row was found: the files of such
 * segments become shorter piece by piece.
 */
static enum status explain_unreadable(struct sqlite_reader *reader, const struct page_row *row)
{
    struct page_row now;
    bool found = false;
    enum status status =
            find_row(&reader->connection, span_of(row->key.hash, ID_HASH_BYTES), &now, &found);
    if (status != STATUS_OK) {
        return status;
    }
    bool is_there = found && now.segment == row->segment && now.offset == row->offset;
    return is_there ? STATUS_DAMAGED : STATUS_NOT_FOUND;
}

/* The name is good until the statement is used again. */
static enum status find_name(struct sqlite_connection *connection, enum sqlite_statement statement,
        int64_t id, struct span *name)
{
    sqlite3_stmt *find = NULL;
    bool has_row = false;
    enum status status = sqlite_statement(connection, statement, &find);
    if (status == STATUS_OK) {
        sqlite3_bind_int64(find, 1, id);
        status = sqlite_step(connection, find, &has_row);
    }
    if (status == STATUS_OK) {
        *name = has_row ? sqlite_column_span(find, 0) : span_of(NULL, 0);
        status = has_row ? STATUS_OK : STATUS_NOT_FOUND;
    }
    return status;
}

static enum status show_topics(
        struct sqlite_reader *reader, const struct page_row *found, struct archive_row *row)
{
    struct sqlite_connection *connection = &reader->connection;
    enum status status =
            find_name(connection, SQLITE_STATEMENT_NAME_PUBSUB, found->pubsub, &row->pubsub_topic);
    return status == STATUS_OK ? find_name(connection, SQLITE_STATEMENT_NAME_CONTENT,
                                         found->content, &row->content_topic)
                               : status;
}

/* They would hold the snapshot that they read from. */
static void release_names(struct sqlite_connection *connection)
{
    sqlite3_reset(connection->statements[SQLITE_STATEMENT_NAME_PUBSUB]);
    sqlite3_reset(connection->statements[SQLITE_STATEMENT_NAME_CONTENT]);
}

/* STATUS_NOT_FOUND when the message is gone. */
static enum status show(struct sqlite_reader *reader, struct page_row *found,
        const struct archive_query *query, struct archive_row *row)
{
    *row = (struct archive_row){
            .hash = span_of(found->key.hash, MESSAGE_HASH_BYTES),
            .timestamp_ns = found->key.timestamp_ns,
    };
    enum status status = query->include_topics ? show_topics(reader, found, row) : STATUS_OK;
    if (status != STATUS_OK || !query->include_data) {
        return status;
    }
    struct archive_record record;
    status = open_row(reader, found);
    if (status == STATUS_OK) {
        status = read_record(reader, found, &record);
        status = status == STATUS_DAMAGED ? explain_unreadable(reader, found) : status;
    }
    if (status == STATUS_OK) {
        row->pubsub_topic = record.pubsub_topic;
        row->message = record.message;
    }
    return status;
}

enum status sqlite_archive_deliver(struct archive_reader *base, const struct archive_query *query,
        struct page_builder *builder, archive_sink *sink, void *context)
{
    struct sqlite_reader *reader = reader_of(base);
    enum status status = STATUS_OK;
    for (size_t i = 0; i < builder->count && status == STATUS_OK; i++) {
        struct archive_row row;
        status = show(reader, &builder->rows[i], query, &row);
        if (status == STATUS_NOT_FOUND) {
            /* Once rows were shown, the page cannot be begun again. */
            builder->is_stale = i == 0;
            status = i == 0 ? STATUS_OK : STATUS_BUSY;
            break;
        }
        if (status == STATUS_OK) {
            status = sink(context, &row);
        }
    }
    release_names(&reader->connection);
    close_segment(reader);
    return status;
}
