/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "archive/sqlite_engine.h"
#include "base/log.h"
#include "base/memory.h"

enum {
    APPLICATION_ID = 0x536c7541, /* tells our files from other SQLite files */
    SCHEMA_VERSION = 1
};

/* application_id and user_version go with the tables in one transaction. */
static const char schema[] =
        "BEGIN IMMEDIATE;"
        "PRAGMA application_id = 1399616833;"
        "PRAGMA user_version = 1;"
        "CREATE TABLE pubsub_topic (id INTEGER PRIMARY KEY, name BLOB NOT NULL UNIQUE);"
        "CREATE TABLE content_topic (id INTEGER PRIMARY KEY, name BLOB NOT NULL UNIQUE);"
        "CREATE TABLE segment (id INTEGER PRIMARY KEY, indexed INTEGER NOT NULL,"
        " count INTEGER NOT NULL, bytes INTEGER NOT NULL);"
        "CREATE TABLE message (timestamp INTEGER NOT NULL, hash BLOB NOT NULL,"
        " segment INTEGER NOT NULL, offset INTEGER NOT NULL, length INTEGER NOT NULL,"
        " pubsub INTEGER NOT NULL, content INTEGER NOT NULL,"
        " PRIMARY KEY (timestamp, hash)) WITHOUT ROWID;"
        "CREATE UNIQUE INDEX message_hash ON message (hash);"
        "CREATE INDEX message_content ON message (content, timestamp, hash);"
        "COMMIT";

/* When the journal is taken in: sqlite_journal.c. */
static const char journal_settings[] = "PRAGMA synchronous = NORMAL;"
                                       "PRAGMA journal_size_limit = 67108864;"
                                       "PRAGMA cache_size = -16384";

enum status sqlite_check_schema(struct sqlite_connection *connection, bool *is_new)
{
    int64_t application_id = 0;
    int64_t version = 0;
    int64_t objects = 0;
    enum status status = sqlite_read_number(connection, "PRAGMA application_id", &application_id);
    if (status == STATUS_OK) {
        status = sqlite_read_number(connection, "PRAGMA user_version", &version);
    }
    if (status == STATUS_OK) {
        status = sqlite_read_number(connection, "SELECT count(*) FROM sqlite_schema", &objects);
    }
    if (status != STATUS_OK) {
        return status;
    }
    *is_new = application_id == 0 && version == 0 && objects == 0;
    if (!*is_new && application_id != APPLICATION_ID) {
        return STATUS_NOT_A_DATABASE;
    }
    return version > SCHEMA_VERSION ? STATUS_NEWER_SCHEMA : STATUS_OK;
}

static enum status set_up_index(struct sqlite_archive *archive)
{
    struct sqlite_connection *connection = &archive->connection;
    bool is_new = false;
    enum status status = sqlite_check_schema(connection, &is_new);
    if (status != STATUS_OK) {
        return status;
    }
    if (archive->target.is_read_only) {
        return is_new ? STATUS_NOT_A_DATABASE : STATUS_OK;
    }
    if (sqlite3_db_readonly(connection->db, "main") == 1) {
        return STATUS_READ_ONLY;
    }
    if (is_new) {
        status = sqlite_execute(connection, "PRAGMA auto_vacuum = INCREMENTAL");
    }
    if (status == STATUS_OK) {
        status = sqlite_execute(connection, archive->target.is_memory
                                                    ? "PRAGMA journal_mode = MEMORY"
                                                    : "PRAGMA journal_mode = WAL");
    }
    if (status == STATUS_OK) {
        status = sqlite_execute(connection, journal_settings);
    }
    if (status == STATUS_OK) {
        sqlite3_wal_hook(connection->db, sqlite_note_commit, archive);
    }
    return status == STATUS_OK && is_new ? sqlite_execute(connection, schema) : status;
}

static enum status set_up_segments(
        struct sqlite_archive *archive, const struct archive_options *options)
{
    struct segments_options segments = {.files = options->files,
            .segment_bytes = options->segment_bytes,
            .is_read_only = options->is_read_only};
    char folder[PATH_MAX];
    if (!archive->target.is_memory) {
        int length =
                snprintf(folder, sizeof(folder), "%s%s", archive->name, SQLITE_SEGMENTS_SUFFIX);
        if (length < 0 || (size_t)length >= sizeof(folder)) {
            return STATUS_BAD_ARGUMENT;
        }
        segments.folder = folder;
    }
    enum status status = segments_open(&archive->segments, &segments);
    /* A foreign way to the disk (options->files) has a disk of its own. */
    if (status == STATUS_OK && !options->is_read_only && options->files == NULL) {
        sqlite_reserve_init(&archive->reserve, segments.folder);
    }
    return status;
}

static void sqlite_close(struct archive *base)
{
    struct sqlite_archive *archive = (struct sqlite_archive *)base;
    if (archive->segments != NULL && sqlite_last_doomed(&archive->tending).segment != 0 &&
            sqlite_remove_doomed(archive, &archive->connection) != STATUS_OK) {
        log_write(LOG_NOTICE, "archive",
                "%s: segment files that are done with stay until the next start", archive->name);
    }
    sqlite_connection_fini(&archive->connection);
    segments_close(&archive->segments);
    sqlite_reserve_fini(&archive->reserve);
    sqlite_tending_fini(&archive->tending);
    memory_free(archive->headers);
    memory_free(archive->parts);
    free(archive->name);
    memory_free(archive);
}

static enum status read_time(struct sqlite_archive *archive, enum sqlite_statement id, int64_t *out)
{
    sqlite3_stmt *find = NULL;
    enum status status = sqlite_statement(&archive->connection, id, &find);
    if (status != STATUS_OK) {
        return status;
    }
    bool has_row = false;
    status = sqlite_step(&archive->connection, find, &has_row);
    if (has_row) {
        *out = sqlite3_column_int64(find, 0);
        sqlite3_reset(find);
    }
    return status;
}

enum status sqlite_read_extent(struct sqlite_archive *archive, struct sqlite_extent *out)
{
    struct sqlite_connection *connection = &archive->connection;
    int64_t page_size = 0;
    sqlite3_stmt *totals = NULL;
    *out = (struct sqlite_extent){0};
    enum status status = sqlite_read_number(connection, "PRAGMA page_count", &out->index);
    if (status == STATUS_OK) {
        status = sqlite_read_number(connection, "PRAGMA freelist_count", &out->free);
    }
    if (status == STATUS_OK) {
        status = sqlite_read_number(connection, "PRAGMA page_size", &page_size);
    }
    if (status == STATUS_OK) {
        status = sqlite_statement(connection, SQLITE_STATEMENT_TOTALS, &totals);
    }
    out->index *= page_size;
    out->free *= page_size;
    bool has_row = false;
    if (status == STATUS_OK) {
        status = sqlite_step(connection, totals, &has_row);
    }
    if (has_row) {
        out->count = sqlite3_column_int64(totals, 0);
        out->live = sqlite3_column_int64(totals, 1);
        out->segments = sqlite3_column_int64(totals, 2);
        sqlite3_reset(totals);
    }
    /* relaxed: a reading */
    out->doomed = atomic_load_explicit(&archive->tending.doomed_bytes, memory_order_relaxed);
    return status;
}

static enum status sqlite_totals(struct archive *base, struct archive_totals *out)
{
    struct sqlite_archive *archive = (struct sqlite_archive *)base;
    struct sqlite_extent extent;
    enum status status = sqlite_read_extent(archive, &extent);
    if (status == STATUS_OK) {
        out->count = (uint64_t)extent.count;
        out->message_bytes = (uint64_t)extent.live;
        out->size_bytes = (uint64_t)(extent.segments + extent.index + extent.doomed);
        status = read_time(archive, SQLITE_STATEMENT_OLDEST, &out->oldest_ns);
    }
    return status == STATUS_OK ? read_time(archive, SQLITE_STATEMENT_NEWEST, &out->newest_ns)
                               : status;
}

static const struct archive_engine sqlite_engine = {
        .name = "sqlite",
        .close = sqlite_close,
        .put = sqlite_archive_put,
        .totals = sqlite_totals,
        .prune = sqlite_archive_prune,
        .tender_open = sqlite_tender_open,
        .tender_close = sqlite_tender_close,
        .wants_tending = sqlite_archive_wants_tending,
        .tender_due_ns = sqlite_tender_due_ns,
        .tend = sqlite_tend,
        .reader_open = sqlite_archive_reader_open,
        .reader_close = sqlite_archive_reader_close,
        .select = sqlite_archive_select,
        .deliver = sqlite_archive_deliver,
};

/* A database in memory that the readers' connections share; no two have the same name. */
static char *name_in_memory(void)
{
    static atomic_uint next;
    char name[64];
    /* relaxed: only distinctness matters */
    unsigned number = atomic_fetch_add_explicit(&next, 1, memory_order_relaxed);
    snprintf(name, sizeof(name), "file:/sluice-archive-%u?vfs=memdb", number);
    return strdup(name);
}

/*
 * Asked beforehand, since SQLite opens a file that it may not write for reading, and then fails at one
 * of its side files with that file's error.
 */
static enum status check_writable(const char *path)
{
    char folder[PATH_MAX];
    const char *slash = strrchr(path, '/');
    size_t length = slash == NULL ? 0 : (size_t)(slash - path) + 1;
    if (length >= sizeof(folder) - 1) {
        return STATUS_BAD_ARGUMENT;
    }
    memcpy(folder, path, length);
    memcpy(folder + length, ".", 2);
    if (faccessat(AT_FDCWD, folder, W_OK | X_OK, AT_EACCESS) < 0) {
        return file_status_of(errno);
    }
    if (faccessat(AT_FDCWD, path, R_OK | W_OK, AT_EACCESS) < 0 && errno != ENOENT) {
        return file_status_of(errno);
    }
    return STATUS_OK;
}

static enum status open_parts(
        struct sqlite_archive *archive, const char *path, const struct archive_options *options)
{
    bool is_memory = strcmp(path, ":memory:") == 0;
    archive->name = is_memory ? name_in_memory() : strdup(path);
    if (archive->name == NULL) {
        return STATUS_NO_MEMORY;
    }
    archive->target = (struct sqlite_target){.name = archive->name,
            .vfs = is_memory ? NULL : options->vfs,
            .is_memory = is_memory,
            .is_read_only = options->is_read_only};
    enum status status =
            is_memory || options->is_read_only ? STATUS_OK : check_writable(archive->name);
    if (status == STATUS_OK) {
        status = sqlite_connection_init(&archive->connection, &archive->target);
    }
    if (status == STATUS_OK) {
        status = set_up_index(archive);
    }
    if (status == STATUS_OK) {
        status = set_up_segments(archive, options);
    }
    if (status == STATUS_OK && !options->is_read_only) {
        status = sqlite_recover(archive);
    }
    if (status == STATUS_OK && !options->is_read_only && options->gives_back_free_space) {
        status = sqlite_execute(&archive->connection, "PRAGMA incremental_vacuum");
    }
    return status;
}

static enum status try_open(
        struct archive **out, const char *path, const struct archive_options *options)
{
    /* Aligned for the parking in it. */
    struct sqlite_archive *archive =
            memory_allocate_aligned(_Alignof(struct sqlite_archive), sizeof(*archive));
    if (archive == NULL) {
        return STATUS_NO_MEMORY;
    }
    memset(archive, 0, sizeof(*archive));
    archive->base.engine = &sqlite_engine;
    archive->reserve.fd = -1;
    sqlite_tending_init(&archive->tending);
    enum status status = open_parts(archive, path, options);
    if (status != STATUS_OK) {
        sqlite_close(&archive->base);
        return status;
    }
    *out = &archive->base;
    return STATUS_OK;
}

/* What the operator is to do about it, where that is known. */
static void explain(struct archive_error *error, const char *path, enum status status)
{
    if (status == STATUS_REFERENCE_DATABASE) {
        snprintf(error->text, sizeof(error->text),
                "archive %.250s: a database of nwaku (logos-delivery), which is left as it is; "
                "this "
                "copies its messages: sluice archive import --from=sqlite://%.250s "
                "--archive=sqlite://%.250s%s",
                path, path, path, ARCHIVE_IMPORTED_SUFFIX);
    } else if (status == STATUS_NEWER_SCHEMA) {
        snprintf(error->text, sizeof(error->text),
                "archive %.400s: %s; this one knows schema %d, use the newer one", path,
                status_text(status), SCHEMA_VERSION);
    } else {
        snprintf(error->text, sizeof(error->text), "archive %.400s: %s", path, status_text(status));
    }
}

enum status sqlite_archive_open(struct archive **out, const char *path,
        const struct archive_options *options, struct archive_error *error)
{
    bool is_file = strcmp(path, ":memory:") != 0;
    bool may_change = is_file && !options->is_read_only;
    enum status status = is_file ? sqlite_recognise(path, options->vfs) : STATUS_OK;
    bool is_damaged = status == STATUS_DAMAGED;
    if (status == STATUS_OK) {
        status = try_open(out, path, options);
        is_damaged = status == STATUS_DAMAGED;
    }
    if (is_damaged && may_change && sqlite_set_index_aside(path)) {
        status = try_open(out, path, options);
    }
    if (status != STATUS_OK) {
        explain(error, path, status);
    }
    return status;
}
