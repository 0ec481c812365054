/* SPDX-License-Identifier: MIT */
#include "archive/sqlite_connection.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "archive/file_ops.h"

static const char *const statement_texts[] = {
#define STATEMENT(id, sql) [SQLITE_STATEMENT_##id] = (sql),
#include "archive/sqlite_statements.def"
#undef STATEMENT
};

enum {
    BUSY_TIMEOUT_MS = 2000 /* a foreign tool may hold the file for a moment */
};

static void write_immutable_uri(char *out, size_t size, const char *path)
{
    static const char end[] = "?immutable=1";
    size_t length = (size_t)snprintf(out, size, "file:");
    for (; *path != '\0' && length + sizeof(end) + 3 < size; path++) {
        bool is_special = strchr("%?#", *path) != NULL;
        length += (size_t)snprintf(
                out + length, size - length, is_special ? "%%%02x" : "%c", (unsigned char)*path);
    }
    snprintf(out + length, size - length, "%s", end);
}

enum status sqlite_connection_init(
        struct sqlite_connection *connection, const struct sqlite_target *target)
{
    *connection = (struct sqlite_connection){0};
    int flags = SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE;
    if (target->is_memory) {
        flags |= SQLITE_OPEN_URI | SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE;
    } else {
        flags |= target->is_read_only ? SQLITE_OPEN_READONLY
                                      : SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE;
    }
    char uri[3 * PATH_MAX];
    const char *name = target->name;
    if (target->is_immutable) {
        write_immutable_uri(uri, sizeof(uri), name);
        flags |= SQLITE_OPEN_URI;
        name = uri;
    }
    int result = sqlite3_open_v2(name, &connection->db, flags, target->vfs);
    if (result != SQLITE_OK) {
        return sqlite_status_of(connection, result);
    }
    sqlite3_busy_timeout(connection->db, BUSY_TIMEOUT_MS);
    return STATUS_OK;
}

void sqlite_connection_fini(struct sqlite_connection *connection)
{
    for (size_t i = 0; i < SQLITE_STATEMENT_COUNT; i++) {
        sqlite3_finalize(connection->statements[i]);
        connection->statements[i] = NULL;
    }
    sqlite3_close(connection->db);
    connection->db = NULL;
}

static enum status status_of_io(const struct sqlite_connection *connection)
{
    int error = sqlite3_system_errno(connection->db);
    return error == 0 ? STATUS_SYSTEM : file_status_of(error);
}

enum status sqlite_status_of(const struct sqlite_connection *connection, int result)
{
    switch (result & 0xff) {
    case SQLITE_OK:
    case SQLITE_ROW:
    case SQLITE_DONE:
        return STATUS_OK;
    case SQLITE_FULL:
        return STATUS_DISK_FULL;
    case SQLITE_READONLY:
    case SQLITE_PERM:
    case SQLITE_AUTH:
        return STATUS_READ_ONLY;
    case SQLITE_NOTADB:
        return STATUS_NOT_A_DATABASE;
    case SQLITE_CORRUPT:
        return STATUS_DAMAGED;
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        return STATUS_BUSY;
    case SQLITE_NOMEM:
        return STATUS_NO_MEMORY;
    case SQLITE_INTERRUPT:
        return STATUS_TIMED_OUT;
    case SQLITE_IOERR:
        return result == SQLITE_IOERR_NOMEM ? STATUS_NO_MEMORY : status_of_io(connection);
    case SQLITE_CANTOPEN:
        return status_of_io(connection);
    default:
        return STATUS_SYSTEM;
    }
}

enum status sqlite_execute(struct sqlite_connection *connection, const char *sql)
{
    return sqlite_status_of(connection, sqlite3_exec(connection->db, sql, NULL, NULL, NULL));
}

enum status sqlite_read_number(struct sqlite_connection *connection, const char *sql, int64_t *out)
{
    sqlite3_stmt *statement = NULL;
    int result = sqlite3_prepare_v2(connection->db, sql, -1, &statement, NULL);
    if (result == SQLITE_OK) {
        result = sqlite3_step(statement);
    }
    enum status status = sqlite_status_of(connection, result);
    if (result == SQLITE_ROW) {
        *out = sqlite3_column_int64(statement, 0);
    }
    sqlite3_finalize(statement);
    return status == STATUS_OK && result != SQLITE_ROW ? STATUS_NOT_FOUND : status;
}

enum status sqlite_statement(
        struct sqlite_connection *connection, enum sqlite_statement id, sqlite3_stmt **out)
{
    sqlite3_stmt **statement = &connection->statements[id];
    if (*statement == NULL) {
        int result = sqlite3_prepare_v3(connection->db, statement_texts[id], -1,
                SQLITE_PREPARE_PERSISTENT, statement, NULL);
        if (result != SQLITE_OK) {
            return sqlite_status_of(connection, result);
        }
    }
    sqlite3_reset(*statement);
    *out = *statement;
    return STATUS_OK;
}

void sqlite_bind_span(sqlite3_stmt *statement, int place, struct span value)
{
    /* An address, since a NULL one would bind NULL instead of an empty value. */
    const void *bytes = value.length == 0 ? "" : (const void *)value.bytes;
    sqlite3_bind_blob64(statement, place, bytes, value.length, SQLITE_STATIC);
}

struct span sqlite_column_span(sqlite3_stmt *statement, int column)
{
    const void *bytes = sqlite3_column_blob(statement, column);
    return span_of(bytes, (size_t)sqlite3_column_bytes(statement, column));
}

enum status sqlite_step(
        struct sqlite_connection *connection, sqlite3_stmt *statement, bool *has_row)
{
    int result = sqlite3_step(statement);
    *has_row = result == SQLITE_ROW;
    if (result == SQLITE_ROW) {
        return STATUS_OK;
    }
    enum status status = sqlite_status_of(connection, result);
    sqlite3_reset(statement);
    return status;
}

enum status sqlite_run(struct sqlite_connection *connection, sqlite3_stmt *statement)
{
    bool has_row = false;
    return sqlite_step(connection, statement, &has_row);
}

enum status sqlite_run_plain(struct sqlite_connection *connection, enum sqlite_statement id)
{
    sqlite3_stmt *statement = NULL;
    enum status status = sqlite_statement(connection, id, &statement);
    return status == STATUS_OK ? sqlite_run(connection, statement) : status;
}

void sqlite_roll_back(struct sqlite_connection *connection)
{
    /* A statement that is still running would keep the transaction open. */
    for (size_t i = 0; i < SQLITE_STATEMENT_COUNT; i++) {
        if (connection->statements[i] != NULL) {
            sqlite3_reset(connection->statements[i]);
        }
    }
    if (connection->db != NULL && !sqlite3_get_autocommit(connection->db)) {
        sqlite3_exec(connection->db, "ROLLBACK", NULL, NULL, NULL);
    }
}
