/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * One connection to the index of an SQLite archive: its statements, each prepared once, and SQLite's
 * results as statuses (decided by code, never by message text). Private to archive/.
 *
 * Thread: one at a time.
 */

#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/attributes.h"
#include "base/span.h"
#include "base/status.h"

enum sqlite_statement {
#define STATEMENT(id, sql) SQLITE_STATEMENT_##id,
#include "archive/sqlite_statements.def"
#undef STATEMENT
    SQLITE_STATEMENT_COUNT
};

struct sqlite_connection {
    sqlite3 *db;
    sqlite3_stmt *statements[SQLITE_STATEMENT_COUNT];
};

struct sqlite_target {
    const char *name; /* a path, or the URI of a database in memory */
    const char *vfs;
    bool is_memory;
    bool is_read_only;
    bool is_immutable; /* nobody writes it: not even side files are made */
};

MUST_USE enum status sqlite_connection_init(
        struct sqlite_connection *connection, const struct sqlite_target *target);
void sqlite_connection_fini(struct sqlite_connection *connection);

/* Of the last call that failed on the connection. */
MUST_USE enum status sqlite_status_of(const struct sqlite_connection *connection, int result);

MUST_USE enum status sqlite_execute(struct sqlite_connection *connection, const char *sql);

/* The first column of the first row. */
MUST_USE enum status sqlite_read_number(
        struct sqlite_connection *connection, const char *sql, int64_t *out);

/* Reset, ready to bind (every parameter: old values stay). */
MUST_USE enum status sqlite_statement(struct sqlite_connection *connection,
        enum sqlite_statement id, sqlite3_stmt *BORROWED *out);

void sqlite_bind_span(sqlite3_stmt *statement, int place, struct span value);
struct span sqlite_column_span(sqlite3_stmt *statement, int column);

/* *has_row false: the statement is done (and reset). */
MUST_USE enum status sqlite_step(
        struct sqlite_connection *connection, sqlite3_stmt *statement, bool *has_row);

/* A statement that returns no rows. */
MUST_USE enum status sqlite_run(struct sqlite_connection *connection, sqlite3_stmt *statement);

/* A statement without parameters that returns no rows. */
MUST_USE enum status sqlite_run_plain(
        struct sqlite_connection *connection, enum sqlite_statement id);

/* Ends a transaction that may not be open any more; never fails. */
void sqlite_roll_back(struct sqlite_connection *connection);
