/* SPDX-License-Identifier: MIT */

/* Backup, verification and import of SQLite archives. */

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <pthread.h>
#include <sqlite3.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "archive/backup.h"
#include "archive/import.h"
#include "archive/reference_database.h"
#include "archive/segments.h"
#include "archive/verify.h"
#include "base/hex.h"
#include "base/log.h"
#include "tests/support/archive_fixture.h"
#include "tests/support/cmocka.h"
#include "tests/support/require.h"

static const struct archive_options small_segments = {.segment_bytes = 20000};

struct place {
    char folder[256];
    char path[300];
    char address[320];
    char copy_path[320];
    char copy[340];
};

static struct place place;

static int make_place(void **state)
{
    (void)state;
    fixture_make_folder(place.folder);
    snprintf(place.path, sizeof(place.path), "%s/archive.db", place.folder);
    snprintf(place.address, sizeof(place.address), "sqlite://%s", place.path);
    snprintf(place.copy_path, sizeof(place.copy_path), "%s/it's a ?copy#1%%.db", place.folder);
    snprintf(place.copy, sizeof(place.copy), "sqlite://%s", place.copy_path);
    return 0;
}

static int remove_place(void **state)
{
    (void)state;
    fixture_remove_folder(place.folder);
    return 0;
}

static struct archive *open_at(const char *address)
{
    struct archive *archive = NULL;
    struct archive_error error = {.text = ""};
    if (archive_open(&archive, address, &small_segments, &error) != STATUS_OK) {
        fail_msg("%s", error.text);
    }
    return archive;
}

static struct fixture_message message_of(unsigned number)
{
    return (struct fixture_message){.number = number,
            .timestamp_ns = 1000 + number,
            .pubsub = number % FIXTURE_PUBSUB_TOPICS,
            .content = number % FIXTURE_CONTENT_TOPICS,
            .payload_bytes = 300};
}

static void put_range(struct archive *archive, unsigned first, unsigned count)
{
    struct envelope **batch = calloc(count, sizeof(struct envelope *));
    struct archive_put_result result;
    REQUIRE(batch != NULL);
    for (unsigned i = 0; i < count; i++) {
        struct fixture_message message = message_of(first + i);
        batch[i] = fixture_envelope(&message);
    }
    REQUIRE(archive_put(archive, batch, count, &result) == STATUS_OK);
    for (unsigned i = 0; i < count; i++) {
        envelope_unref(batch[i]);
    }
    free(batch);
}

static void fill(const char *address, unsigned count)
{
    struct archive *archive = open_at(address);
    for (unsigned i = 0; i < count; i += 50) {
        put_range(archive, i, 50);
    }
    archive_close(&archive);
}

static struct archive_backup_result back_up(void)
{
    struct archive_backup_result result;
    struct archive_error error = {.text = ""};
    enum status status = archive_backup(place.address, place.copy, NULL, &result, &error);
    assert_string_equal(error.text, "");
    assert_int_equal(status, STATUS_OK);
    return result;
}

static void assert_good(const char *address, uint64_t messages)
{
    struct archive_verify_result result;
    struct archive_error error = {.text = ""};
    assert_int_equal(
            archive_verify(address, fixture_fail_on_problem, NULL, &result, &error), STATUS_OK);
    assert_true(result.problems == 0);
    assert_true(result.messages == messages);
}

struct numbers {
    unsigned count;
    unsigned first;
    unsigned last;
};

static enum status note_number(void *context, const struct archive_row *row)
{
    struct numbers *numbers = context;
    unsigned number = (unsigned)(row->timestamp_ns - 1000);
    struct fixture_message message = message_of(number);
    struct envelope *envelope = fixture_envelope(&message);
    assert_memory_equal(row->hash.bytes, envelope->hash, MESSAGE_HASH_BYTES);
    assert_true(span_equal(row->message, envelope->message));
    assert_true(span_equal(row->pubsub_topic, envelope->topic->name));
    envelope_unref(envelope);
    numbers->first = numbers->count == 0 ? number : numbers->first;
    numbers->last = number;
    numbers->count++;
    return STATUS_OK;
}

static struct numbers numbers_in(const char *address)
{
    struct archive *archive = open_at(address);
    struct archive_reader *reader = NULL;
    struct archive_page page;
    struct numbers numbers = {0};
    struct archive_query query = {.include_data = true, .limit = 1000000, .max_limit = 1000000};
    assert_int_equal(archive_reader_open(&reader, archive), STATUS_OK);
    assert_int_equal(archive_query(reader, &query, note_number, &numbers, &page), STATUS_OK);
    archive_reader_close(&reader);
    archive_close(&archive);
    return numbers;
}

static void a_copy_has_every_message_and_is_an_archive(void **state)
{
    (void)state;
    fill(place.address, 500);
    struct archive_backup_result result = back_up();
    assert_true(result.messages == 500);
    assert_true(result.segments > 5);
    assert_good(place.copy, 500);
    struct numbers numbers = numbers_in(place.copy);
    assert_int_equal(numbers.count, 500);
    struct archive *archive = open_at(place.copy);
    put_range(archive, 500, 50);
    archive_close(&archive);
    assert_good(place.copy, 550);
    assert_good(place.address, 500);
}

struct writing {
    atomic_uint acknowledged; /* messages put so far */
    atomic_bool is_over;
};

/* Puts for ever, and keeps the last 2000. */
static void *write_on(void *context)
{
    struct writing *writing = context;
    struct archive *archive = open_at(place.address);
    struct archive_prune_limits limits = archive_prune_nothing;
    unsigned number = 0;
    limits.max_count = 2000;
    while (!atomic_load(&writing->is_over)) {
        struct archive_prune_result result;
        put_range(archive, number, 50);
        number += 50;
        atomic_store(&writing->acknowledged, number);
        REQUIRE(archive_prune(archive, &limits, 200, &result) == STATUS_OK);
    }
    archive_close(&archive);
    return NULL;
}

static void a_copy_made_while_a_writer_goes_on_has_what_was_there_when_it_began(void **state)
{
    (void)state;
    struct writing writing;
    pthread_t writer;
    atomic_init(&writing.acknowledged, 0);
    atomic_init(&writing.is_over, false);
    assert_int_equal(pthread_create(&writer, NULL, write_on, &writing), 0);
    while (atomic_load(&writing.acknowledged) < 3000) {
        usleep(1000);
    }
    for (unsigned round = 0; round < 5; round++) {
        unsigned before = atomic_load(&writing.acknowledged);
        struct archive_backup_result result = back_up();
        unsigned after = atomic_load(&writing.acknowledged) + 50;
        assert_good(place.copy, result.messages);
        struct numbers numbers = numbers_in(place.copy);
        assert_int_equal(numbers.count, result.messages);
        assert_true(numbers.last + 1 >= before && numbers.last + 1 <= after);
        assert_int_equal(numbers.last - numbers.first + 1, numbers.count);
        assert_true(numbers.count >= 1900);
        assert_int_equal(unlink(place.copy_path), 0);
        char segments[400];
        snprintf(segments, sizeof(segments), "%s-segments", place.copy_path);
        fixture_remove_folder(segments);
    }
    atomic_store(&writing.is_over, true);
    pthread_join(writer, NULL);
    struct numbers numbers = numbers_in(place.address);
    assert_good(place.address, numbers.count);
}

static void refuses_to_copy_over_something_or_from_nothing(void **state)
{
    (void)state;
    struct archive_backup_result result;
    struct archive_error error;
    assert_int_equal(
            archive_backup(place.address, place.copy, NULL, &result, &error), STATUS_NOT_FOUND);
    assert_int_not_equal(access(place.path, F_OK), 0);
    fill(place.address, 50);
    assert_int_equal(archive_backup(place.address, place.address, NULL, &result, &error),
            STATUS_ALREADY_EXISTS);
    back_up();
    assert_int_equal(archive_backup(place.address, place.copy, NULL, &result, &error),
            STATUS_ALREADY_EXISTS);
    assert_non_null(strstr(error.text, place.copy_path));
    assert_int_equal(
            archive_backup("memory", place.copy, NULL, &result, &error), STATUS_BAD_ARGUMENT);
    assert_int_equal(archive_backup("sqlite://:memory:", place.copy, NULL, &result, &error),
            STATUS_BAD_ARGUMENT);
}

static void emptied_files_stay_as_long_as_somebody_holds_them(void **state)
{
    (void)state;
    char folder[400];
    int lock = -1;
    struct archive *archive = open_at(place.address);
    struct archive_prune_limits limits = archive_prune_nothing;
    struct archive_totals held;
    struct archive_totals released;
    for (unsigned i = 0; i < 500; i += 50) {
        put_range(archive, i, 50);
    }
    snprintf(folder, sizeof(folder), "%s-segments", place.path);
    assert_int_equal(segments_hold(&lock, folder), STATUS_OK);
    limits.max_count = 10;
    assert_int_equal(fixture_prune(archive, &limits, 100), 490);
    assert_int_equal(archive_totals(archive, &held), STATUS_OK);
    close(lock);
    assert_int_equal(fixture_prune(archive, &limits, 100), 0);
    assert_int_equal(archive_totals(archive, &released), STATUS_OK);
    assert_true(held.size_bytes > released.size_bytes + 8 * small_segments.segment_bytes);
    archive_close(&archive);
}

static char findings[4000];

static void keep_finding(void *context, bool is_problem, const char *text)
{
    (void)context;
    size_t length = strlen(findings);
    snprintf(findings + length, sizeof(findings) - length, "%s%s\n",
            is_problem ? "" : "note: ", text);
}

/* The problems that verify finds, one of which says that. */
static uint64_t problems_with(const char *expected)
{
    struct archive_verify_result result;
    struct archive_error error = {.text = ""};
    findings[0] = '\0';
    assert_int_equal(archive_verify(place.address, keep_finding, NULL, &result, &error), STATUS_OK);
    if (strstr(findings, expected) == NULL) {
        fail_msg("not said: %s: %s", expected, findings);
    }
    return result.problems;
}

static void run_sql(const char *path, const char *sql)
{
    sqlite3 *db = NULL;
    char *why = NULL;
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    if (sqlite3_exec(db, sql, NULL, NULL, &why) != SQLITE_OK) {
        fail_msg("%s: %s", sql, why);
    }
    sqlite3_close(db);
}

static void change_byte(const char *name, off_t offset)
{
    char path[400];
    uint8_t byte = 0;
    snprintf(path, sizeof(path), "%s-segments/%s", place.path, name);
    int fd = open(path, O_RDWR);
    assert_int_equal(pread(fd, &byte, 1, offset), 1);
    byte ^= 1;
    assert_int_equal(pwrite(fd, &byte, 1, offset), 1);
    close(fd);
}

static void verification_names_what_is_damaged(void **state)
{
    (void)state;
    char path[400];
    fill(place.address, 200);
    assert_good(place.address, 200);
    /* A bit of a payload, and back. */
    change_byte("0000000001.segment", 700);
    assert_true(problems_with("segment 1: no whole record at byte") >= 2);
    assert_true(problems_with("segment 1: the index counts") >= 2);
    change_byte("0000000001.segment", 700);
    assert_good(place.address, 200);
    /* What the index says, on its own and against the segments. */
    run_sql(place.path, "UPDATE message SET offset = offset + 1 WHERE timestamp = 1003");
    assert_int_equal(problems_with("the index counts"), 1);
    run_sql(place.path, "UPDATE message SET offset = offset - 1 WHERE timestamp = 1003");
    run_sql(place.path, "UPDATE message SET content = content % 4 + 1 WHERE timestamp = 1003");
    assert_int_equal(problems_with("the index names another time, length or topic"), 1);
    run_sql(place.path, "UPDATE message SET content = 4 WHERE timestamp = 1003");
    assert_good(place.address, 200);
    run_sql(place.path, "DELETE FROM message WHERE timestamp = 1003");
    assert_int_equal(problems_with("rows more than its segments count"), 2);
    snprintf(path, sizeof(path), "%s-segments/0000000002.segment", place.path);
    assert_int_equal(unlink(path), 0);
    assert_true(problems_with("messages are lost: the file is missing") >= 1);
    snprintf(path, sizeof(path), "%s-segments/0000000077.segment", place.path);
    close(open(path, O_CREAT | O_WRONLY, 0644));
    problems_with("note: segment 77 is not in the index");
}

static void verification_notices_a_hash_that_is_not_the_messages(void **state)
{
    (void)state;
    struct fixture_message message = message_of(1);
    struct envelope *envelope = fixture_envelope(&message);
    struct archive *archive = open_at(place.address);
    struct archive_put_result result;
    envelope->hash[5] ^= 1;
    assert_int_equal(archive_put(archive, &envelope, 1, &result), STATUS_OK);
    envelope_unref(envelope);
    archive_close(&archive);
    assert_int_equal(problems_with("another hash than its record says"), 1);
}

/* The table as the reference makes it (logos_delivery/waku/waku_archive/driver/sqlite_driver/queries.nim). */
static const char reference_table[] =
        "PRAGMA journal_mode = WAL;"
        "CREATE TABLE IF NOT EXISTS Message ( messageHash BLOB NOT NULL PRIMARY KEY,"
        " pubsubTopic BLOB NOT NULL, contentTopic BLOB NOT NULL, payload BLOB,"
        " version INTEGER NOT NULL, timestamp INTEGER NOT NULL, meta BLOB) WITHOUT ROWID;"
        "CREATE INDEX IF NOT EXISTS i_ts ON Message (timestamp);"
        "PRAGMA user_version = 10";

static void bind_hex(sqlite3_stmt *insert, int column, const char *hex)
{
    if (hex == NULL) {
        sqlite3_bind_null(insert, column);
        return;
    }
    size_t length = strlen(hex) / 2;
    uint8_t *bytes = malloc(length + 1);
    assert_non_null(bytes);
    assert_int_equal(hex_decode(bytes, length, hex), STATUS_OK);
    sqlite3_bind_blob(insert, column, bytes, (int)length, SQLITE_TRANSIENT);
    free(bytes);
}

static const char *text_of(const json_t *vector, const char *name)
{
    return json_string_value(json_object_get(vector, name));
}

/* The vectors that this table can hold; hashes of the messages in the order of their times do not matter. */
static bool is_storable(const json_t *vector)
{
    const char *topic = text_of(vector, "contentTopic");
    return text_of(vector, "payloadHex") != NULL && text_of(vector, "expectedHere") == NULL &&
           topic != NULL && topic[0] != '\0';
}

static void insert_vector(sqlite3_stmt *insert, const json_t *vector)
{
    const char *timestamp = text_of(vector, "timestamp");
    const char *pubsub = text_of(vector, "pubsubTopic");
    const char *content = text_of(vector, "contentTopic");
    sqlite3_reset(insert);
    bind_hex(insert, 1, text_of(vector, "messageHash"));
    sqlite3_bind_blob(insert, 2, pubsub, (int)strlen(pubsub), SQLITE_STATIC);
    sqlite3_bind_blob(insert, 3, content, (int)strlen(content), SQLITE_STATIC);
    bind_hex(insert, 4, text_of(vector, "payloadHex"));
    sqlite3_bind_int64(insert, 5, timestamp == NULL ? 0 : strtoll(timestamp, NULL, 10));
    bind_hex(insert, 6, text_of(vector, "metaHex"));
    int result = sqlite3_step(insert);
    assert_true(result == SQLITE_DONE || result == SQLITE_CONSTRAINT);
}

/* A database with the vectors; how many messages it has. */
static int64_t make_reference(const char *path, const json_t *vectors)
{
    sqlite3 *db = NULL;
    sqlite3_stmt *insert = NULL;
    size_t i;
    json_t *vector;
    run_sql(path, reference_table);
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(
            sqlite3_prepare_v2(db,
                    "INSERT OR IGNORE INTO Message (messageHash, pubsubTopic, contentTopic,"
                    " payload, version, timestamp, meta) VALUES (?1, ?2, ?3, ?4, 0, ?5, ?6)",
                    -1, &insert, NULL),
            SQLITE_OK);
    json_array_foreach(vectors, i, vector)
    {
        if (is_storable(vector)) {
            insert_vector(insert, vector);
        }
    }
    sqlite3_finalize(insert);
    assert_int_equal(
            sqlite3_prepare_v2(db, "SELECT count(*) FROM Message", -1, &insert, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(insert), SQLITE_ROW);
    int64_t count = sqlite3_column_int64(insert, 0);
    sqlite3_finalize(insert);
    sqlite3_close(db);
    return count;
}

static json_t *load_vectors(void)
{
    json_error_t error;
    json_t *vectors = json_load_file("tests/vectors/message_hash.json", 0, &error);
    assert_non_null(vectors);
    return vectors;
}

static struct archive_import_result import_from(const char *from, struct archive *to)
{
    struct archive_import_result result;
    struct archive_error error = {.text = ""};
    if (archive_import(to, from, &result, &error) != STATUS_OK) {
        fail_msg("%s", error.text);
    }
    return result;
}

/* All bytes of the file. */
static uint8_t *read_file(const char *path, size_t *size)
{
    struct stat facts;
    assert_int_equal(stat(path, &facts), 0);
    *size = (size_t)facts.st_size;
    uint8_t *bytes = malloc(*size + 1);
    int fd = open(path, O_RDONLY);
    assert_int_equal(read(fd, bytes, *size), *size);
    close(fd);
    return bytes;
}

static unsigned entries_in(const char *path)
{
    unsigned count = 0;
    DIR *folder = opendir(path);
    assert_non_null(folder);
    while (readdir(folder) != NULL) {
        count++;
    }
    closedir(folder);
    return count;
}

static enum status no_row(void *context, const struct archive_row *row)
{
    *(struct span *)context = row->message;
    return STATUS_OK;
}

static void assert_has_vectors(struct archive *archive, const json_t *vectors)
{
    struct archive_reader *reader = NULL;
    size_t i;
    json_t *vector;
    assert_int_equal(archive_reader_open(&reader, archive), STATUS_OK);
    json_array_foreach(vectors, i, vector)
    {
        uint8_t bytes[MESSAGE_HASH_BYTES];
        struct span hash = span_of(bytes, sizeof(bytes));
        struct span message = {.length = 0};
        struct archive_page page;
        if (!is_storable(vector)) {
            continue;
        }
        assert_int_equal(
                hex_decode(bytes, sizeof(bytes), text_of(vector, "messageHash")), STATUS_OK);
        struct archive_query query = {.hashes = &hash, .hash_count = 1, .include_data = true};
        assert_int_equal(archive_query(reader, &query, no_row, &message, &page), STATUS_OK);
        assert_int_equal(page.count, 1);
    }
    archive_reader_close(&reader);
}

static void imports_the_messages_of_the_reference_under_the_hashes_of_the_vectors(void **state)
{
    (void)state;
    json_t *vectors = load_vectors();
    int64_t count = make_reference(place.path, vectors);
    size_t size_before = 0;
    size_t size_after = 0;
    assert_true(count >= 8);
    uint8_t *before = read_file(place.path, &size_before);
    unsigned entries = entries_in(place.folder);
    struct archive *memory = open_at("memory");
    struct archive_import_result result = import_from(place.address, memory);
    assert_int_equal(result.read, count);
    assert_int_equal(result.stored, count);
    assert_int_equal(result.other_hashes, 0);
    assert_int_equal(result.bad, 0);
    assert_has_vectors(memory, vectors);
    /* Again, nothing is new; and nothing of the source, or beside it, has changed. */
    result = import_from(place.address, memory);
    assert_int_equal(result.stored, 0);
    assert_int_equal(result.duplicates, count);
    archive_close(&memory);
    uint8_t *after = read_file(place.path, &size_after);
    assert_int_equal(size_before, size_after);
    assert_memory_equal(before, after, size_before);
    assert_int_equal(entries_in(place.folder), entries);
    free(before);
    free(after);
    json_decref(vectors);
}

static void stores_a_message_whose_hash_the_reference_drew_at_random_under_the_right_one(
        void **state)
{
    (void)state;
    json_t *vectors = load_vectors();
    int64_t count = make_reference(place.path, vectors);
    run_sql(place.path, "UPDATE Message SET messageHash = randomblob(32)");
    run_sql(place.path, "INSERT INTO Message VALUES (x'00', x'', x'61', x'61', 0, 5, NULL)");
    struct archive *memory = open_at("memory");
    struct archive_import_result result = import_from(place.address, memory);
    assert_int_equal(result.stored, count);
    assert_int_equal(result.other_hashes, count);
    assert_int_equal(result.bad, 1);
    assert_has_vectors(memory, vectors);
    archive_close(&memory);
    json_decref(vectors);
}

static void imports_what_still_stands_in_the_journal_of_the_reference(void **state)
{
    (void)state;
    char wal[320];
    char kept[340];
    struct stat facts;
    sqlite3 *db = NULL;
    run_sql(place.path, reference_table);
    /* A connection that stays open keeps the journal from being written into the database. */
    assert_int_equal(sqlite3_open(place.path, &db), SQLITE_OK);
    assert_int_equal(
            sqlite3_exec(db, "INSERT INTO Message VALUES (x'00', x'61', x'62', x'63', 0, 5, NULL)",
                    NULL, NULL, NULL),
            SQLITE_OK);
    snprintf(wal, sizeof(wal), "%s-wal", place.path);
    assert_int_equal(stat(wal, &facts), 0);
    assert_true(facts.st_size > 0);
    struct archive *memory = open_at("memory");
    assert_int_equal(import_from(place.address, memory).stored, 1);
    archive_close(&memory);
    snprintf(kept, sizeof(kept), "%s", wal);
    off_t size = facts.st_size;
    assert_int_equal(stat(kept, &facts), 0);
    assert_true(facts.st_size == size);
    sqlite3_close(db);
}

/* Reads all rows; after the first one its owner has carried out sql. */
static enum status read_reference_while(const char *sql)
{
    struct reference_database *database = NULL;
    struct reference_row row;
    bool has_row = true;
    assert_int_equal(reference_database_open(&database, place.path), STATUS_OK);
    enum status status = reference_database_next(database, &row, &has_row);
    run_sql(place.path, sql);
    while (has_row) {
        status = reference_database_next(database, &row, &has_row);
    }
    reference_database_close(&database);
    return status;
}

static void says_so_when_the_reference_wrote_its_database_meanwhile(void **state)
{
    (void)state;
    json_t *vectors = load_vectors();
    make_reference(place.path, vectors);
    assert_int_equal(read_reference_while("SELECT 1"), STATUS_OK);
    assert_int_equal(read_reference_while(
                             "INSERT INTO Message VALUES (x'00', x'61', x'62', x'63', 0, 5, NULL)"),
            STATUS_BUSY);
    json_decref(vectors);
}

static void a_database_of_the_reference_is_named_and_left_alone(void **state)
{
    (void)state;
    json_t *vectors = load_vectors();
    struct archive *archive = NULL;
    struct archive_error error = {.text = ""};
    char command[400];
    size_t size = 0;
    size_t size_after = 0;
    make_reference(place.path, vectors);
    uint8_t *before = read_file(place.path, &size);
    unsigned entries = entries_in(place.folder);
    assert_int_equal(
            archive_open(&archive, place.address, NULL, &error), STATUS_REFERENCE_DATABASE);
    snprintf(command, sizeof(command), "sluice archive import --from=%s", place.address);
    assert_non_null(strstr(error.text, command));
    assert_null(strchr(error.text, '\n'));
    uint8_t *after = read_file(place.path, &size_after);
    assert_int_equal(size, size_after);
    assert_memory_equal(before, after, size);
    assert_int_equal(entries_in(place.folder), entries);
    run_sql(place.path, "PRAGMA user_version = 11");
    struct archive_import_result result;
    struct archive *memory = open_at("memory");
    assert_int_equal(archive_import(memory, place.address, &result, &error), STATUS_NEWER_SCHEMA);
    archive_close(&memory);
    free(before);
    free(after);
    json_decref(vectors);
}

static void opens_the_archive_beside_it_and_imports_once(void **state)
{
    (void)state;
    json_t *vectors = load_vectors();
    char address[400];
    char mark[400];
    struct archive *archive = NULL;
    struct archive_error error = {.text = ""};
    struct archive_totals totals;
    int64_t count = make_reference(place.path, vectors);
    snprintf(address, sizeof(address), "%s.sluice", place.address);
    assert_int_equal(archive_open_imported(&archive, place.path, NULL, &error), STATUS_OK);
    assert_has_vectors(archive, vectors);
    archive_close(&archive);
    assert_good(address, (uint64_t)count);
    /* What comes later is not looked for. */
    run_sql(place.path, "INSERT INTO Message VALUES (x'00', x'61', x'62', x'63', 0, 5, NULL)");
    snprintf(mark, sizeof(mark), "%s.sluice.import-is-unfinished", place.path);
    for (int64_t more = 0; more < 2; more++) {
        assert_int_equal(archive_open_imported(&archive, place.path, NULL, &error), STATUS_OK);
        assert_int_equal(archive_totals(archive, &totals), STATUS_OK);
        assert_int_equal(totals.count, count + more);
        archive_close(&archive);
        /* As if the import had been broken off. */
        close(open(mark, O_CREAT | O_WRONLY, 0644));
    }
    json_decref(vectors);
}

static void imports_another_archive_but_for_what_is_damaged(void **state)
{
    (void)state;
    fill(place.address, 300);
    struct archive *copy = open_at(place.copy);
    put_range(copy, 0, 100);
    struct archive_import_result result = import_from(place.address, copy);
    assert_int_equal(result.stored, 200);
    assert_int_equal(result.duplicates, 100);
    archive_close(&copy);
    assert_good(place.copy, 300);
    assert_int_equal(numbers_in(place.copy).count, 300);
    change_byte("0000000001.segment", 700);
    struct archive *memory = open_at("memory");
    result = import_from(place.address, memory);
    assert_int_equal(result.stored, 299);
    assert_int_equal(result.bad, 1);
    archive_close(&memory);
}

static void an_index_whose_beginning_is_gone_is_set_aside(void **state)
{
    (void)state;
    char aside[400];
    uint8_t noise[100];
    fill(place.address, 100);
    int fd = open(place.path, O_WRONLY);
    memset(noise, 0x5a, sizeof(noise));
    assert_int_equal(pwrite(fd, noise, sizeof(noise), 0), sizeof(noise));
    close(fd);
    assert_int_equal(numbers_in(place.address).count, 100);
    snprintf(aside, sizeof(aside), "%s.damaged", place.path);
    assert_int_equal(access(aside, F_OK), 0);
    assert_good(place.address, 100);
}

/* Damage that a start does not see, but a put: the start after it does something about it. */
static void damage_that_shows_later_is_mended_by_the_next_start(void **state)
{
    (void)state;
    struct archive *archive = open_at(place.address);
    for (unsigned i = 0; i < 2000; i += 50) {
        put_range(archive, i, 50);
    }
    archive_close(&archive);
    struct stat facts;
    uint8_t noise[4096];
    memset(noise, 0x5a, sizeof(noise));
    assert_int_equal(stat(place.path, &facts), 0);
    int fd = open(place.path, O_WRONLY);
    /* All pages but those of the schema and the small tables. */
    for (off_t at = 9 * 4096; at < facts.st_size; at += 4096) {
        assert_int_equal(pwrite(fd, noise, sizeof(noise), at), sizeof(noise));
    }
    close(fd);
    archive = open_at(place.address);
    struct fixture_message message = message_of(5000);
    struct envelope *envelope = fixture_envelope(&message);
    struct archive_put_result result;
    assert_int_equal(archive_put(archive, &envelope, 1, &result), STATUS_DAMAGED);
    envelope_unref(envelope);
    archive_close(&archive);
    assert_int_equal(numbers_in(place.address).count, 2000);
    assert_good(place.address, 2000);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, make_place, remove_place)

static void say_nothing(void *context, enum log_level level, const char *module, const char *text)
{
    (void)context;
    (void)level;
    (void)module;
    (void)text;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            CASE(a_copy_has_every_message_and_is_an_archive),
            CASE(a_copy_made_while_a_writer_goes_on_has_what_was_there_when_it_began),
            CASE(refuses_to_copy_over_something_or_from_nothing),
            CASE(emptied_files_stay_as_long_as_somebody_holds_them),
            CASE(verification_names_what_is_damaged),
            CASE(verification_notices_a_hash_that_is_not_the_messages),
            CASE(imports_the_messages_of_the_reference_under_the_hashes_of_the_vectors),
            CASE(stores_a_message_whose_hash_the_reference_drew_at_random_under_the_right_one),
            CASE(imports_what_still_stands_in_the_journal_of_the_reference),
            CASE(says_so_when_the_reference_wrote_its_database_meanwhile),
            CASE(a_database_of_the_reference_is_named_and_left_alone),
            CASE(opens_the_archive_beside_it_and_imports_once),
            CASE(imports_another_archive_but_for_what_is_damaged),
            CASE(an_index_whose_beginning_is_gone_is_set_aside),
            CASE(damage_that_shows_later_is_mended_by_the_next_start),
    };
    log_set_sink(say_nothing, NULL);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
