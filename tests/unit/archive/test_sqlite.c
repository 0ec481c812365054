/* SPDX-License-Identifier: MIT */

/* What only an archive on disk can meet: other people's files, full disks, damage, restarts. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dirent.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log.h"
#include "tests/support/archive_fixture.h"
#include "tests/support/forgetful_disk.h"

static const struct archive_options small_segments = {.segment_bytes = 2000};

static int open_archive(void **state)
{
    struct fixture_archive *fixture = malloc(sizeof(*fixture));
    fixture_open(fixture, "sqlite-disk", &small_segments);
    *state = fixture;
    return 0;
}

static int close_archive(void **state)
{
    fixture_close(*state);
    free(*state);
    return 0;
}

static struct fixture_message message_of(unsigned number)
{
    return (struct fixture_message){.number = number,
            .timestamp_ns = 1000 + number,
            .content = number % FIXTURE_CONTENT_TOPICS,
            .payload_bytes = 100};
}

static enum status put_range(struct archive *archive, unsigned first, unsigned count)
{
    struct envelope **batch = calloc(count, sizeof(struct envelope *));
    for (unsigned i = 0; i < count; i++) {
        struct fixture_message message = message_of(first + i);
        batch[i] = fixture_envelope(&message);
    }
    struct archive_put_result result;
    enum status status = archive_put(archive, batch, count, &result);
    for (unsigned i = 0; i < count; i++) {
        envelope_unref(batch[i]);
    }
    free(batch);
    return status;
}

static enum status check_row(void *context, const struct archive_row *row)
{
    unsigned *number = context;
    struct fixture_message message = message_of((unsigned)(row->timestamp_ns - 1000));
    struct envelope *envelope = fixture_envelope(&message);
    assert_memory_equal(row->hash.bytes, envelope->hash, MESSAGE_HASH_BYTES);
    assert_true(span_equal(row->message, envelope->message));
    envelope_unref(envelope);
    ++*number;
    return STATUS_OK;
}

/* Reads all messages with their bytes; how many there are. */
static unsigned count_messages(struct archive_reader *reader)
{
    unsigned number = 0;
    struct archive_page page;
    struct archive_query query = {.include_data = true, .limit = 100000, .max_limit = 100000};
    assert_int_equal(archive_query(reader, &query, check_row, &number, &page), STATUS_OK);
    return number;
}

static unsigned count_segments(const struct fixture_archive *fixture)
{
    char path[300];
    snprintf(path, sizeof(path), "%s/archive.db-segments", fixture->folder);
    DIR *folder = opendir(path);
    assert_non_null(folder);
    unsigned count = 0;
    for (struct dirent *entry = readdir(folder); entry != NULL; entry = readdir(folder)) {
        count += entry->d_name[0] != '.';
    }
    closedir(folder);
    return count;
}

static void path_in(const struct fixture_archive *fixture, const char *name, char out[512])
{
    snprintf(out, 512, "%s/%s", fixture->folder, name);
}

/* Opens address; the status, with an error text that names what when it is not OK. */
static enum status open_status(
        const char *address, const struct archive_options *options, const char *what)
{
    struct archive *archive = NULL;
    struct archive_error error = {{0}};
    enum status status = archive_open(&archive, address, options, &error);
    if (status != STATUS_OK) {
        assert_null(archive);
        assert_non_null(strstr(error.text, what));
        assert_null(strchr(error.text, '\n'));
    }
    archive_close(&archive);
    return status;
}

static enum status open_file_with(const char *bytes, size_t length)
{
    char folder[256];
    char path[300];
    char address[320];
    fixture_make_folder(folder);
    snprintf(path, sizeof(path), "%s/file", folder);
    snprintf(address, sizeof(address), "sqlite://%s", path);
    int fd = open(path, O_CREAT | O_WRONLY, 0644);
    assert_int_equal(write(fd, bytes, length), length);
    close(fd);
    enum status status = open_status(address, NULL, path);
    if (status != STATUS_OK) {
        /* It is left as it was. */
        char *now = calloc(1, length + 1);
        fd = open(path, O_RDONLY);
        assert_int_equal(read(fd, now, length + 1), length);
        assert_memory_equal(now, bytes, length);
        close(fd);
        free(now);
    }
    fixture_remove_folder(folder);
    return status;
}

static void refuses_files_that_are_not_sqlite_and_leaves_them_alone(void **state)
{
    (void)state;
    char noise[5000];
    for (size_t i = 0; i < sizeof(noise); i++) {
        noise[i] = (char)(i * 31 + 7);
    }
    assert_int_equal(open_file_with("hello", 5), STATUS_NOT_A_DATABASE);
    assert_int_equal(open_file_with(noise, sizeof(noise)), STATUS_NOT_A_DATABASE);
    assert_int_equal(open_file_with("", 0), STATUS_OK);
}

static void run_sql(const char *path, const char *sql)
{
    sqlite3 *db = NULL;
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(db);
}

static void refuses_a_foreign_database_and_a_newer_schema(void **state)
{
    struct fixture_archive *fixture = *state;
    char path[512];
    char address[600];
    path_in(fixture, "foreign.db", path);
    run_sql(path, "CREATE TABLE t (a)");
    snprintf(address, sizeof(address), "sqlite://%s", path);
    assert_int_equal(open_status(address, NULL, path), STATUS_NOT_A_DATABASE);
    archive_reader_close(&fixture->reader);
    archive_close(&fixture->archive);
    path_in(fixture, "archive.db", path);
    run_sql(path, "PRAGMA user_version = 2");
    assert_int_equal(open_status(fixture->address, NULL, path), STATUS_NEWER_SCHEMA);
    run_sql(path, "PRAGMA user_version = 1");
    assert_int_equal(open_status(fixture->address, NULL, path), STATUS_OK);
}

static void names_the_address_that_is_no_engine(void **state)
{
    (void)state;
    assert_int_equal(open_status("postgres://x", NULL, "postgres://x"), STATUS_BAD_ARGUMENT);
    assert_int_equal(open_status("sqlite://", NULL, "sqlite://"), STATUS_BAD_ARGUMENT);
    assert_int_equal(open_status("", NULL, "''"), STATUS_BAD_ARGUMENT);
    assert_int_equal(
            open_status("sqlite:///not/there/a.db", NULL, "/not/there/a.db"), STATUS_NOT_FOUND);
    struct archive_options read_only = {.is_read_only = true};
    assert_int_equal(open_status("sqlite:///tmp/not-there.db", &read_only, "/tmp/not-there.db"),
            STATUS_NOT_FOUND);
}

/* As a user that may read but not write; runs in a child, since a test may run as root. */
static enum status open_as_nobody(const char *address, const char *what)
{
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        if (geteuid() == 0 && (setegid(65534) != 0 || seteuid(65534) != 0)) {
            _exit(STATUS_SYSTEM);
        }
        _exit((int)open_status(address, NULL, what));
    }
    int how = 0;
    assert_int_equal(waitpid(child, &how, 0), child);
    assert_true(WIFEXITED(how));
    return (enum status)WEXITSTATUS(how);
}

static void says_that_a_file_or_folder_is_read_only(void **state)
{
    struct fixture_archive *fixture = *state;
    char path[512];
    char address[600];
    archive_reader_close(&fixture->reader);
    archive_close(&fixture->archive);
    path_in(fixture, "archive.db", path);
    assert_int_equal(chmod(path, 0444), 0);
    assert_int_equal(chmod(fixture->folder, 0555), 0);
    assert_int_equal(open_as_nobody(fixture->address, path), STATUS_READ_ONLY);
    path_in(fixture, "other.db", path);
    snprintf(address, sizeof(address), "sqlite://%s", path);
    assert_int_equal(open_as_nobody(address, path), STATUS_READ_ONLY);
    assert_int_equal(chmod(fixture->folder, 0755), 0);
}

static void answers_queries_but_takes_nothing_when_opened_read_only(void **state)
{
    struct fixture_archive *fixture = *state;
    assert_int_equal(put_range(fixture->archive, 0, 10), STATUS_OK);
    struct archive_options options = {.is_read_only = true};
    struct archive *archive = NULL;
    struct archive_reader *reader = NULL;
    struct archive_error error;
    /* Also while somebody else writes it. */
    assert_int_equal(archive_open(&archive, fixture->address, &options, &error), STATUS_OK);
    assert_int_equal(archive_reader_open(&reader, archive), STATUS_OK);
    assert_int_equal(put_range(fixture->archive, 10, 10), STATUS_OK);
    assert_int_equal(count_messages(reader), 20);
    assert_int_equal(put_range(archive, 20, 1), STATUS_READ_ONLY);
    struct archive_prune_result pruned;
    struct archive_prune_limits limits = archive_prune_nothing;
    limits.oldest_ns = INT64_MAX;
    assert_int_equal(archive_prune(archive, &limits, 10, &pruned), STATUS_READ_ONLY);
    archive_reader_close(&reader);
    archive_close(&archive);
}

static void is_busy_while_another_writes_it(void **state)
{
    struct fixture_archive *fixture = *state;
    assert_int_equal(open_status(fixture->address, NULL, fixture->folder), STATUS_BUSY);
    assert_int_equal(put_range(fixture->archive, 0, 3), STATUS_OK);
}

static void has_everything_after_it_was_closed_and_opened(void **state)
{
    struct fixture_archive *fixture = *state;
    for (unsigned i = 0; i < 10; i++) {
        assert_int_equal(put_range(fixture->archive, i * 20, 20), STATUS_OK);
        fixture_reopen(fixture, &small_segments);
    }
    assert_int_equal(count_messages(fixture->reader), 200);
    assert_true(count_segments(fixture) >= 9);
}

static void stores_nothing_of_a_batch_on_a_full_disk_and_goes_on_when_there_is_space(void **state)
{
    (void)state;
    struct fixture_archive fixture;
    struct archive_options options = {
            .segment_bytes = 2000, .vfs = forgetful_vfs(), .files = &forgetful_file_ops};
    fixture_open(&fixture, "sqlite-disk", &options);
    assert_int_equal(put_range(fixture.archive, 0, 30), STATUS_OK);
    forgetful_disk_set_full(true);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(put_range(fixture.archive, 30, 30), STATUS_DISK_FULL);
    }
    struct archive_totals totals;
    assert_int_equal(archive_totals(fixture.archive, &totals), STATUS_OK);
    assert_int_equal(totals.count, 30);
    forgetful_disk_set_full(false);
    assert_int_equal(put_range(fixture.archive, 30, 30), STATUS_OK);
    archive_reader_close(&fixture.reader);
    archive_close(&fixture.archive);
    fixture_reopen(&fixture, NULL);
    assert_int_equal(count_messages(fixture.reader), 60);
    fixture_close(&fixture);
}

static void stores_nothing_when_the_sync_fails_and_goes_on_in_a_new_segment(void **state)
{
    (void)state;
    struct fixture_archive fixture;
    struct archive_options options = {.vfs = forgetful_vfs(), .files = &forgetful_file_ops};
    fixture_open(&fixture, "sqlite-disk", &options);
    assert_int_equal(put_range(fixture.archive, 0, 5), STATUS_OK);
    forgetful_disk_set_broken(true);
    assert_int_equal(put_range(fixture.archive, 5, 5), STATUS_SYSTEM);
    forgetful_disk_set_broken(false);
    assert_int_equal(put_range(fixture.archive, 5, 5), STATUS_OK);
    assert_int_equal(count_segments(&fixture), 2);
    fixture_reopen(&fixture, NULL);
    assert_int_equal(count_messages(fixture.reader), 10);
    fixture_close(&fixture);
}

static void survives_a_real_file_system_that_is_full(void **state)
{
    (void)state;
    struct fixture_archive fixture = {0};
    fixture_make_folder(fixture.folder);
    if (mount("tmpfs", fixture.folder, "tmpfs", 0, "size=1m") != 0) {
        fixture_remove_folder(fixture.folder);
        skip(); /* needs the right to mount */
    }
    snprintf(fixture.address, sizeof(fixture.address), "sqlite://%s/archive.db", fixture.folder);
    fixture_reopen(&fixture, &small_segments);
    unsigned stored = 0;
    enum status status = STATUS_OK;
    while (status == STATUS_OK && stored < 100000) {
        status = put_range(fixture.archive, stored, 50);
        stored += status == STATUS_OK ? 50 : 0;
    }
    assert_int_equal(status, STATUS_DISK_FULL);
    assert_true(stored > 0);
    assert_int_equal(count_messages(fixture.reader), stored);
    assert_int_equal(mount("tmpfs", fixture.folder, "tmpfs", MS_REMOUNT, "size=8m"), 0);
    assert_int_equal(put_range(fixture.archive, stored, 50), STATUS_OK);
    fixture_reopen(&fixture, &small_segments);
    assert_int_equal(count_messages(fixture.reader), stored + 50);
    archive_reader_close(&fixture.reader);
    archive_close(&fixture.archive);

    /* Too small to begin with. */
    assert_int_equal(umount(fixture.folder), 0);
    assert_int_equal(mount("tmpfs", fixture.folder, "tmpfs", 0, "size=8k"), 0);
    assert_int_equal(open_status(fixture.address, NULL, fixture.folder), STATUS_DISK_FULL);
    assert_int_equal(umount(fixture.folder), 0);
    fixture_remove_folder(fixture.folder);
}

static void last_segment_path(const struct fixture_archive *fixture, char out[512])
{
    for (unsigned id = 1; id < 100000; id++) {
        char path[512];
        snprintf(path, sizeof(path), "%s/archive.db-segments/%010u.segment", fixture->folder, id);
        if (access(path, F_OK) == 0) {
            memcpy(out, path, sizeof(path));
        }
    }
}

static void cuts_a_torn_tail_and_writes_on_behind_it(void **state)
{
    struct fixture_archive *fixture = *state;
    assert_int_equal(put_range(fixture->archive, 0, 5), STATUS_OK);
    char path[512];
    last_segment_path(fixture, path);
    static const size_t tails[] = {1, 79, 80, 81, 1000};
    for (unsigned i = 0; i < 5; i++) {
        archive_reader_close(&fixture->reader);
        archive_close(&fixture->archive);
        FILE *file = fopen(path, "r+b");
        char record[1000] = {0};
        /* Begins like a record, so that only its checksum tells. */
        assert_int_equal(fread(record, 1, 100, file), 100);
        fseek(file, 0, SEEK_END);
        assert_int_equal(fwrite(record, 1, tails[i], file), tails[i]);
        fclose(file);
        fixture_reopen(fixture, NULL);
        assert_int_equal(count_messages(fixture->reader), 5 + i);
        assert_int_equal(put_range(fixture->archive, 5 + i, 1), STATUS_OK);
    }
    assert_int_equal(count_messages(fixture->reader), 10);
}

static void makes_a_lost_or_damaged_index_again_from_the_segments(void **state)
{
    struct fixture_archive *fixture = *state;
    char path[512];
    char damaged[512];
    path_in(fixture, "archive.db", path);
    path_in(fixture, "archive.db.damaged", damaged);
    for (unsigned i = 0; i < 5; i++) {
        assert_int_equal(put_range(fixture->archive, i * 20, 20), STATUS_OK);
    }
    archive_reader_close(&fixture->reader);
    archive_close(&fixture->archive);
    assert_int_equal(unlink(path), 0);
    fixture_reopen(fixture, &small_segments);
    assert_int_equal(count_messages(fixture->reader), 100);
    archive_reader_close(&fixture->reader);
    archive_close(&fixture->archive);

    int fd = open(path, O_WRONLY);
    char noise[4096];
    memset(noise, 0x5a, sizeof(noise));
    for (off_t at = 100; at < 40000; at += (off_t)sizeof(noise)) {
        assert_int_equal(pwrite(fd, noise, sizeof(noise), at), sizeof(noise));
    }
    close(fd);
    fixture_reopen(fixture, &small_segments);
    assert_int_equal(access(damaged, F_OK), 0);
    assert_int_equal(count_messages(fixture->reader), 100);
    assert_int_equal(put_range(fixture->archive, 100, 20), STATUS_OK);
}

static void says_so_when_the_bytes_of_a_message_are_damaged(void **state)
{
    struct fixture_archive *fixture = *state;
    assert_int_equal(put_range(fixture->archive, 0, 3), STATUS_OK);
    char path[512];
    last_segment_path(fixture, path);
    int fd = open(path, O_WRONLY);
    assert_int_equal(pwrite(fd, "\xee", 1, 150), 1);
    close(fd);
    struct archive_query query = {.include_data = true, .limit = 1};
    unsigned number = 0;
    struct archive_page page;
    assert_int_equal(
            archive_query(fixture->reader, &query, check_row, &number, &page), STATUS_DAMAGED);
    assert_int_equal(number, 0);
    struct fixture_page hashes;
    query.include_data = false;
    assert_int_equal(fixture_query(fixture->reader, &query, &hashes), STATUS_OK);
    fixture_page_free(&hashes);
}

static void forgets_the_messages_of_a_segment_that_is_missing(void **state)
{
    struct fixture_archive *fixture = *state;
    for (unsigned i = 0; i < 5; i++) {
        assert_int_equal(put_range(fixture->archive, i * 20, 20), STATUS_OK);
    }
    char path[512];
    path_in(fixture, "archive.db-segments/0000000002.segment", path);
    archive_reader_close(&fixture->reader);
    archive_close(&fixture->archive);
    assert_int_equal(unlink(path), 0);
    fixture_reopen(fixture, &small_segments);
    assert_int_equal(count_messages(fixture->reader), 80);
    struct archive_totals totals;
    assert_int_equal(archive_totals(fixture->archive, &totals), STATUS_OK);
    assert_int_equal(totals.count, 80);
    assert_int_equal(put_range(fixture->archive, 20, 20), STATUS_OK);
    assert_int_equal(count_messages(fixture->reader), 100);
}

static void prune_gives_segments_back_to_the_file_system(void **state)
{
    struct fixture_archive *fixture = *state;
    for (unsigned i = 0; i < 10; i++) {
        assert_int_equal(put_range(fixture->archive, i * 20, 20), STATUS_OK);
    }
    unsigned before = count_segments(fixture);
    struct archive_prune_limits limits = archive_prune_nothing;
    limits.oldest_ns = 1000 + 100;
    assert_int_equal(fixture_prune(fixture->archive, &limits, 1000), 100);
    assert_true(count_segments(fixture) <= before - 4);
    assert_int_equal(count_messages(fixture->reader), 100);
    fixture_reopen(fixture, &small_segments);
    assert_int_equal(count_messages(fixture->reader), 100);
}

static void moves_what_is_left_of_a_segment_that_is_mostly_pruned(void **state)
{
    struct fixture_archive *fixture = *state;
    /* One message of the far future in each segment keeps it from becoming empty. */
    for (unsigned i = 0; i < 10; i++) {
        assert_int_equal(put_range(fixture->archive, i * 20, 20), STATUS_OK);
        assert_int_equal(put_range(fixture->archive, 100000 + i, 1), STATUS_OK);
        assert_int_equal(put_range(fixture->archive, i * 20 + 10000, 20), STATUS_OK);
    }
    unsigned before = count_segments(fixture);
    struct archive_prune_limits limits = archive_prune_nothing;
    limits.oldest_ns = 1000 + 100000;
    assert_int_equal(fixture_prune(fixture->archive, &limits, 50), 400);
    assert_true(before >= 10);
    assert_true(count_segments(fixture) <= 2);
    assert_int_equal(count_messages(fixture->reader), 10);
    fixture_reopen(fixture, &small_segments);
    assert_int_equal(count_messages(fixture->reader), 10);
}

static void forgets_content_topics_that_have_no_messages(void **state)
{
    struct fixture_archive *fixture = *state;
    char path[512];
    path_in(fixture, "archive.db", path);
    assert_int_equal(put_range(fixture->archive, 0, 40), STATUS_OK);
    struct archive_prune_limits limits = archive_prune_nothing;
    limits.max_count = 1;
    assert_int_equal(fixture_prune(fixture->archive, &limits, 1000), 39);
    sqlite3 *db = NULL;
    sqlite3_stmt *count = NULL;
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_prepare_v2(db, "SELECT count(*) FROM content_topic", -1, &count, NULL),
            SQLITE_OK);
    assert_int_equal(sqlite3_step(count), SQLITE_ROW);
    assert_int_equal(sqlite3_column_int(count, 0), 1);
    sqlite3_finalize(count);
    sqlite3_close(db);
    assert_int_equal(put_range(fixture->archive, 0, 39), STATUS_OK);
    struct span topic = fixture_content_topic(1);
    struct archive_query query = {.content_topics = &topic, .content_topic_count = 1};
    struct fixture_page page;
    assert_int_equal(fixture_query(fixture->reader, &query, &page), STATUS_OK);
    assert_int_equal(page.count, 10);
    fixture_page_free(&page);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, open_archive, close_archive)

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(refuses_files_that_are_not_sqlite_and_leaves_them_alone),
            CASE(refuses_a_foreign_database_and_a_newer_schema),
            cmocka_unit_test(names_the_address_that_is_no_engine),
            CASE(says_that_a_file_or_folder_is_read_only),
            CASE(answers_queries_but_takes_nothing_when_opened_read_only),
            CASE(is_busy_while_another_writes_it),
            CASE(has_everything_after_it_was_closed_and_opened),
            cmocka_unit_test(
                    stores_nothing_of_a_batch_on_a_full_disk_and_goes_on_when_there_is_space),
            cmocka_unit_test(stores_nothing_when_the_sync_fails_and_goes_on_in_a_new_segment),
            cmocka_unit_test(survives_a_real_file_system_that_is_full),
            CASE(cuts_a_torn_tail_and_writes_on_behind_it),
            CASE(makes_a_lost_or_damaged_index_again_from_the_segments),
            CASE(says_so_when_the_bytes_of_a_message_are_damaged),
            CASE(forgets_the_messages_of_a_segment_that_is_missing),
            CASE(prune_gives_segments_back_to_the_file_system),
            CASE(moves_what_is_left_of_a_segment_that_is_mostly_pruned),
            CASE(forgets_content_topics_that_have_no_messages),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
