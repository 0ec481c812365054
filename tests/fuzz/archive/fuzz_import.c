/* SPDX-License-Identifier: MIT */

/*
 * Rows of a database of nwaku, of whatever types and contents: every one is stored, was there before or
 * is counted as bad.
 *
 * A field is a byte for its type, one for its length, and its bytes; seven fields are a row.
 */

#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

#include "archive/archive.h"
#include "archive/import.h"
#include "tests/support/require.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum {
    COLUMNS = 7,
    ROWS_MAX = 64
};

static const char table[] = "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF;"
                            "CREATE TABLE Message (pubsubTopic, contentTopic, payload, version,"
                            " timestamp, meta, messageHash);"
                            "PRAGMA user_version = 10";

static char path[64] = "/tmp/sluice-fuzz-import-XXXXXX";

static void remove_file(void)
{
    remove(path);
}

static sqlite3 *opened(void)
{
    static sqlite3 *database;
    if (database == NULL) {
        REQUIRE(mkstemp(path) >= 0);
        REQUIRE(atexit(remove_file) == 0);
        REQUIRE(sqlite3_open(path, &database) == SQLITE_OK);
        REQUIRE(sqlite3_exec(database, table, NULL, NULL, NULL) == SQLITE_OK);
    }
    return database;
}

static void bind(sqlite3_stmt *insert, int column, uint8_t type, struct span bytes)
{
    int64_t number = 0;
    double real = 0;
    memcpy(&number, bytes.bytes, bytes.length < sizeof(number) ? bytes.length : sizeof(number));
    memcpy(&real, &number, sizeof(real));
    switch (type % 5) {
    case 0:
        sqlite3_bind_blob(insert, column, bytes.bytes, (int)bytes.length, SQLITE_STATIC);
        break;
    case 1:
        sqlite3_bind_int64(insert, column, number);
        break;
    case 2:
        sqlite3_bind_text(
                insert, column, (const char *)bytes.bytes, (int)bytes.length, SQLITE_STATIC);
        break;
    case 3:
        sqlite3_bind_double(insert, column, real);
        break;
    default:
        sqlite3_bind_null(insert, column);
        break;
    }
}

/* How many rows were made. */
static uint64_t insert_rows(sqlite3 *database, const uint8_t *data, size_t size)
{
    sqlite3_stmt *insert = NULL;
    uint64_t count = 0;
    REQUIRE(sqlite3_exec(database, "DELETE FROM Message", NULL, NULL, NULL) == SQLITE_OK);
    REQUIRE(sqlite3_prepare_v2(database, "INSERT INTO Message VALUES (?, ?, ?, ?, ?, ?, ?)", -1,
                    &insert, NULL) == SQLITE_OK);
    while (size >= 2 && count < ROWS_MAX) {
        for (int column = 1; column <= COLUMNS && size >= 2; column++) {
            size_t length = data[1] < size - 2 ? data[1] : size - 2;
            bind(insert, column, data[0], span_of(data + 2, length));
            data += 2 + length;
            size -= 2 + length;
        }
        REQUIRE(sqlite3_step(insert) == SQLITE_DONE);
        sqlite3_reset(insert);
        sqlite3_clear_bindings(insert);
        count++;
    }
    sqlite3_finalize(insert);
    return count;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct archive *archive = NULL;
    struct archive_options options = {.memory_limit_bytes = 1 << 24};
    struct archive_error error;
    struct archive_import_result result;
    char from[80];
    uint64_t rows = insert_rows(opened(), data, size);
    snprintf(from, sizeof(from), "sqlite://%s", path);
    REQUIRE(archive_open(&archive, "memory", &options, &error) == STATUS_OK);
    REQUIRE(archive_import(archive, from, &result, &error) == STATUS_OK);
    REQUIRE(result.stored + result.duplicates + result.bad == rows);
    archive_close(&archive);
    return 0;
}
