/* SPDX-License-Identifier: MIT */

/* The tender beside an archive that stores, removes and is asked. */

#include "archive/tender.h"

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "archive/backup.h"
#include "archive/verify.h"
#include "base/clock.h"
#include "tests/support/archive_fixture.h"
#include "tests/support/cmocka.h"

enum {
    BATCH = 64,
    SEGMENT_BYTES = 200000
};

static const struct archive_options small_segments = {.segment_bytes = SEGMENT_BYTES};

static enum status put_sized(
        struct archive *archive, unsigned first, unsigned count, size_t payload_bytes)
{
    struct envelope *batch[BATCH];
    struct archive_put_result result;
    assert_true(count <= BATCH);
    for (unsigned i = 0; i < count; i++) {
        struct fixture_message message = {.number = first + i,
                .timestamp_ns = 1000 + first + i,
                .content = (first + i) % FIXTURE_CONTENT_TOPICS,
                .payload_bytes = payload_bytes};
        batch[i] = fixture_envelope(&message);
    }
    enum status status = archive_put(archive, batch, count, &result);
    for (unsigned i = 0; i < count; i++) {
        envelope_unref(batch[i]);
    }
    return status;
}

static void put(struct archive *archive, unsigned first, size_t payload_bytes)
{
    assert_int_equal(put_sized(archive, first, BATCH, payload_bytes), STATUS_OK);
}

static void keep(struct archive *archive, uint64_t count)
{
    struct archive_prune_limits limits = archive_prune_nothing;
    limits.max_count = count;
    fixture_prune(archive, &limits, 100);
}

/* Bytes of the segment files, and how many there are. */
static off_t segments_on_disk(const struct fixture_archive *fixture, unsigned *count)
{
    char folder[400];
    off_t sum = 0;
    *count = 0;
    snprintf(folder, sizeof(folder), "%s/archive.db-segments", fixture->folder);
    DIR *entries = opendir(folder);
    assert_non_null(entries);
    for (struct dirent *entry = readdir(entries); entry != NULL; entry = readdir(entries)) {
        struct stat facts;
        if (strstr(entry->d_name, ".segment") != NULL &&
                fstatat(dirfd(entries), entry->d_name, &facts, 0) == 0) {
            sum += facts.st_size;
            ++*count;
        }
    }
    closedir(entries);
    return sum;
}

static off_t journal_bytes(const struct fixture_archive *fixture)
{
    char path[400];
    struct stat facts = {0};
    snprintf(path, sizeof(path), "%s/archive.db-wal", fixture->folder);
    return stat(path, &facts) == 0 ? facts.st_size : 0;
}

static void rest(void)
{
    const struct timespec nap = {.tv_nsec = NANOSECONDS_PER_MILLISECOND};
    nanosleep(&nap, NULL);
}

/* Until there is nothing to do now. */
static void tend_all(struct archive_tender *tender)
{
    while (archive_tender_due_ns(tender) <= clock_monotonic_ns()) {
        assert_int_equal(archive_tend(tender), STATUS_OK);
    }
}

static void assert_good(struct fixture_archive *fixture, uint64_t messages)
{
    struct archive_verify_result result;
    struct archive_error error = {.text = ""};
    assert_int_equal(
            archive_verify(fixture->address, fixture_fail_on_problem, NULL, &result, &error),
            STATUS_OK);
    assert_int_equal(result.problems, 0);
    assert_int_equal(result.messages, messages);
}

/* A tender with nothing to do yet, and twenty batches of messages in several segments. */
static void open_filled(struct fixture_archive *fixture, struct archive_tender **tender)
{
    fixture_open(fixture, "sqlite-disk", &small_segments);
    assert_int_equal(archive_tender_open(tender, fixture->archive), STATUS_OK);
    assert_true(archive_tender_due_ns(*tender) == UINT64_MAX);
    for (unsigned first = 0; first < 20 * BATCH; first += BATCH) {
        put(fixture->archive, first, 1000);
    }
}

static void only_an_archive_on_disk_has_something_to_tend(void **state)
{
    (void)state;
    static const char *const kinds[] = {"memory", "sqlite-memory"};
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        struct fixture_archive fixture;
        struct archive_tender *tender = NULL;
        fixture_open(&fixture, kinds[i], &small_segments);
        assert_int_equal(archive_tender_open(&tender, fixture.archive), STATUS_OK);
        for (unsigned first = 0; first < 1000; first += BATCH) {
            put(fixture.archive, first, 1000);
        }
        keep(fixture.archive, 10);
        assert_false(archive_wants_tending(fixture.archive));
        assert_true(archive_tender_due_ns(tender) == UINT64_MAX);
        assert_int_equal(archive_tend(tender), STATUS_OK);
        archive_tender_close(&tender);
        fixture_close(&fixture);
    }
}

static void gives_the_files_back_that_the_archive_is_done_with(void **state)
{
    (void)state;
    struct fixture_archive fixture;
    struct archive_tender *tender = NULL;
    unsigned count = 0;
    open_filled(&fixture, &tender);
    off_t before = segments_on_disk(&fixture, &count);
    assert_true(count >= 5);
    struct archive_totals full;
    assert_int_equal(archive_totals(fixture.archive, &full), STATUS_OK);
    keep(fixture.archive, 10);
    /* They are forgotten, but still there, and count as such. */
    struct archive_totals totals;
    assert_int_equal(archive_totals(fixture.archive, &totals), STATUS_OK);
    assert_int_equal(totals.count, 10);
    assert_true(totals.size_bytes > (uint64_t)before);
    assert_true(segments_on_disk(&fixture, &count) >= before);
    assert_true(archive_wants_tending(fixture.archive));
    assert_true(archive_tender_due_ns(tender) <= clock_monotonic_ns());
    tend_all(tender);
    assert_false(archive_wants_tending(fixture.archive));
    assert_true(segments_on_disk(&fixture, &count) < 2 * SEGMENT_BYTES);
    assert_int_equal(archive_totals(fixture.archive, &totals), STATUS_OK);
    assert_true(totals.size_bytes < full.size_bytes - (uint64_t)before / 2);
    assert_good(&fixture, 10);
    archive_tender_close(&tender);
    fixture_close(&fixture);
}

static void what_the_tender_has_not_given_back_goes_when_the_archive_is_closed(void **state)
{
    (void)state;
    struct fixture_archive fixture;
    struct archive_tender *tender = NULL;
    unsigned count = 0;
    open_filled(&fixture, &tender);
    keep(fixture.archive, 10);
    archive_tender_close(&tender);
    fixture_reopen(&fixture, &small_segments);
    assert_true(segments_on_disk(&fixture, &count) < 2 * SEGMENT_BYTES);
    assert_good(&fixture, 10);
    fixture_close(&fixture);
}

static void gives_nothing_back_while_a_backup_is_being_made(void **state)
{
    (void)state;
    struct fixture_archive fixture;
    struct archive_tender *tender = NULL;
    char lock[400];
    unsigned before = 0;
    unsigned count = 0;
    open_filled(&fixture, &tender);
    snprintf(lock, sizeof(lock), "%s/archive.db-segments/.removal-lock", fixture.folder);
    int fd = open(lock, O_RDONLY | O_CLOEXEC);
    assert_int_equal(flock(fd, LOCK_SH), 0);
    segments_on_disk(&fixture, &before);
    keep(fixture.archive, 10);
    tend_all(tender);
    segments_on_disk(&fixture, &count);
    assert_true(count >= before);
    /* It asks again, a second later. */
    assert_true(archive_tender_due_ns(tender) < UINT64_MAX);
    close(fd);
    while (archive_wants_tending(fixture.archive)) {
        tend_all(tender);
        rest();
    }
    tend_all(tender);
    segments_on_disk(&fixture, &count);
    assert_true(count <= 2);
    archive_tender_close(&tender);
    fixture_close(&fixture);
}

struct vanishing {
    struct fixture_archive *fixture;
    struct archive_tender *tender;
    unsigned rows;
};

/* What a page shows goes, with its files, when its first message was shown. */
static enum status remove_all(void *context, const struct archive_row *row)
{
    struct vanishing *vanishing = context;
    assert_true(row->message.length > 100000);
    if (vanishing->rows++ == 0) {
        keep(vanishing->fixture->archive, 1);
        tend_all(vanishing->tender);
    }
    return STATUS_OK;
}

static void a_file_that_shrinks_under_a_reader_is_no_damage(void **state)
{
    (void)state;
    struct fixture_archive fixture;
    struct archive_options large = {.segment_bytes = 12 << 20};
    struct vanishing vanishing = {.fixture = &fixture};
    struct archive_page page;
    fixture_open(&fixture, "sqlite-disk", &large);
    assert_int_equal(archive_tender_open(&vanishing.tender, fixture.archive), STATUS_OK);
    for (unsigned first = 0; first < 2 * BATCH; first += BATCH) {
        put(fixture.archive, first, 120000);
    }
    put(fixture.archive, 2 * BATCH, 1000); /* into the next file */
    struct archive_query query = {.include_data = true, .limit = 100};
    assert_int_equal(
            archive_query(fixture.reader, &query, remove_all, &vanishing, &page), STATUS_BUSY);
    assert_true(vanishing.rows >= 1 && vanishing.rows < 2 * BATCH);
    archive_tender_close(&vanishing.tender);
    fixture_close(&fixture);
}

struct tending {
    struct archive_tender *tender;
    struct archive *archive;
    atomic_bool is_over;
    unsigned queries;
};

static void *tend(void *context)
{
    struct tending *tending = context;
    while (!atomic_load(&tending->is_over)) {
        if (archive_tender_due_ns(tending->tender) <= clock_monotonic_ns()) {
            assert_int_equal(archive_tend(tending->tender), STATUS_OK);
        } else {
            rest();
        }
    }
    return NULL;
}

static enum status check_row(void *context, const struct archive_row *row)
{
    (void)context;
    assert_true(row->message.length >= 300);
    return STATUS_OK;
}

static void *ask(void *context)
{
    struct tending *tending = context;
    struct archive_reader *reader = NULL;
    assert_int_equal(archive_reader_open(&reader, tending->archive), STATUS_OK);
    while (!atomic_load(&tending->is_over)) {
        struct archive_query query = {
                .include_data = true, .is_backward = tending->queries % 2 == 0};
        struct archive_page page;
        enum status status = archive_query(reader, &query, check_row, NULL, &page);
        assert_true(status == STATUS_OK || status == STATUS_BUSY);
        tending->queries++;
        rest();
    }
    archive_reader_close(&reader);
    return NULL;
}

enum {
    KEPT = 3000,
    STORED = 12 * 1024 /* enough for the journal to begin anew several times */
};

/* What the journal may grow to; its pages are 4 KiB, and it has to begin anew from 8192 on. */
#define JOURNAL_LIMIT ((off_t)24 << 20 << 1)

static void store_and_remove(struct fixture_archive *fixture, unsigned first, unsigned count)
{
    struct archive_prune_limits limits = archive_prune_nothing;
    limits.max_count = KEPT;
    for (unsigned number = first; number < first + count; number += BATCH) {
        struct archive_prune_result result;
        put(fixture->archive, number, 300);
        limits.until_ns = clock_monotonic_ns() + NANOSECONDS_PER_MILLISECOND;
        limits.least_rows = BATCH;
        assert_int_equal(archive_prune(fixture->archive, &limits, 4096, &result), STATUS_OK);
    }
}

static void archive_reader_and_tender_work_at_once(void **state)
{
    (void)state;
    struct fixture_archive fixture;
    struct tending tending = {0};
    pthread_t threads[2];
    unsigned count = 0;
    fixture_open(&fixture, "sqlite-disk", &small_segments);
    tending.archive = fixture.archive;
    assert_int_equal(archive_tender_open(&tending.tender, fixture.archive), STATUS_OK);
    assert_int_equal(pthread_create(&threads[0], NULL, tend, &tending), 0);
    assert_int_equal(pthread_create(&threads[1], NULL, ask, &tending), 0);
    store_and_remove(&fixture, 0, STORED);
    assert_true(journal_bytes(&fixture) <= JOURNAL_LIMIT);
    keep(fixture.archive, KEPT);
    atomic_store(&tending.is_over, true);
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
    tend_all(tending.tender);
    archive_tender_close(&tending.tender);
    assert_true(tending.queries > 0);
    struct archive_totals totals;
    assert_int_equal(archive_totals(fixture.archive, &totals), STATUS_OK);
    assert_int_equal(totals.count, KEPT);
    assert_true(totals.oldest_ns == 1000 + STORED - KEPT);
    assert_good(&fixture, KEPT);
    assert_true(segments_on_disk(&fixture, &count) < 5000000);
    fixture_close(&fixture);
}

static _Noreturn void store_until_killed(const char *address, int fd)
{
    struct fixture_archive fixture = {.archive = NULL};
    struct tending tending = {0};
    struct archive_error error;
    pthread_t thread;
    if (archive_open(&fixture.archive, address, &small_segments, &error) != STATUS_OK ||
            archive_tender_open(&tending.tender, fixture.archive) != STATUS_OK ||
            pthread_create(&thread, NULL, tend, &tending) != 0) {
        _exit(1);
    }
    for (unsigned first = 0;; first += BATCH) {
        store_and_remove(&fixture, first, BATCH);
        unsigned last = first + BATCH;
        if (write(fd, &last, sizeof(last)) != sizeof(last)) {
            _exit(1);
        }
    }
}

/* Returns how many messages were acknowledged when it was killed. */
static unsigned run_and_kill(const char *address, unsigned batches)
{
    int ends[2];
    unsigned stored = 0;
    unsigned last = 0;
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        close(ends[0]);
        store_until_killed(address, ends[1]);
    }
    close(ends[1]);
    for (unsigned i = 0; i < batches; i++) {
        assert_int_equal(read(ends[0], &last, sizeof(last)), sizeof(last));
    }
    kill(child, SIGKILL);
    stored = last;
    while (read(ends[0], &last, sizeof(last)) == sizeof(last)) {
        stored = last;
    }
    close(ends[0]);
    assert_int_equal(waitpid(child, NULL, 0), child);
    return stored;
}

static void loses_nothing_when_killed_while_it_tends(void **state)
{
    (void)state;
    for (unsigned round = 0; round < 3; round++) {
        struct fixture_archive fixture;
        char address[300];
        fixture_open(&fixture, "sqlite-disk", &small_segments);
        snprintf(address, sizeof(address), "sqlite://%s/killed.db", fixture.folder);
        unsigned stored = run_and_kill(address, 55 + 17 * round);
        struct archive *archive = NULL;
        struct archive_error error;
        struct archive_totals totals;
        assert_int_equal(archive_open(&archive, address, &small_segments, &error), STATUS_OK);
        keep(archive, KEPT);
        assert_int_equal(archive_totals(archive, &totals), STATUS_OK);
        assert_int_equal(totals.count, stored < KEPT ? stored : KEPT);
        assert_true(totals.newest_ns >= 1000 + (int64_t)stored - 1);
        archive_close(&archive);
        struct archive_verify_result result;
        assert_int_equal(
                archive_verify(address, fixture_fail_on_problem, NULL, &result, &error), STATUS_OK);
        assert_int_equal(result.problems, 0);
        fixture_close(&fixture);
    }
}

static void tend_on_full_disk(struct archive_tender *tender)
{
    while (archive_tender_due_ns(tender) <= clock_monotonic_ns()) {
        enum status status = archive_tend(tender);
        assert_true(status == STATUS_OK || status == STATUS_DISK_FULL);
    }
}

/* Fills what is left of a small disk; the archive keeps an eighth of it in reserve. */
static unsigned fill_disk(struct fixture_archive *fixture, struct archive_tender *tender)
{
    unsigned stored = 0;
    while (put_sized(fixture->archive, stored, BATCH, 3000) == STATUS_OK) {
        stored += BATCH;
        tend_on_full_disk(tender);
    }
    return stored;
}

static void make_room_by_retention(struct fixture_archive *fixture, struct archive_tender *tender)
{
    struct archive_prune_limits limits = archive_prune_nothing;
    unsigned stored = fill_disk(fixture, tender);
    assert_true(stored > 1000);
    assert_int_equal(put_sized(fixture->archive, stored, BATCH, 3000), STATUS_DISK_FULL);
    limits.max_count = stored / 2;
    struct archive_prune_result result = {.has_more = true};
    size_t removed = 0;
    while (result.has_more) {
        assert_int_equal(archive_prune(fixture->archive, &limits, 64, &result), STATUS_OK);
        removed += result.removed;
        tend_on_full_disk(tender);
    }
    assert_int_equal(removed, stored - stored / 2);
    assert_int_equal(put_sized(fixture->archive, stored, BATCH, 3000), STATUS_OK);
    assert_good(fixture, stored / 2 + BATCH);
}

static void makes_room_on_a_full_disk(bool has_tender)
{
    struct fixture_archive fixture = {0};
    struct archive_tender *tender = NULL;
    fixture_make_folder(fixture.folder);
    if (mount("tmpfs", fixture.folder, "tmpfs", 0, "size=24m") != 0) {
        fixture_remove_folder(fixture.folder);
        skip(); /* needs the right to mount */
    }
    snprintf(fixture.address, sizeof(fixture.address), "sqlite://%s/archive.db", fixture.folder);
    fixture_reopen(&fixture, &small_segments);
    if (has_tender) {
        assert_int_equal(archive_tender_open(&tender, fixture.archive), STATUS_OK);
    }
    make_room_by_retention(&fixture, tender);
    archive_tender_close(&tender);
    archive_reader_close(&fixture.reader);
    archive_close(&fixture.archive);
    assert_int_equal(umount(fixture.folder), 0);
    fixture_remove_folder(fixture.folder);
}

static void retention_makes_room_on_a_full_disk(void **state)
{
    (void)state;
    makes_room_on_a_full_disk(false);
    makes_room_on_a_full_disk(true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(only_an_archive_on_disk_has_something_to_tend),
            cmocka_unit_test(gives_the_files_back_that_the_archive_is_done_with),
            cmocka_unit_test(what_the_tender_has_not_given_back_goes_when_the_archive_is_closed),
            cmocka_unit_test(gives_nothing_back_while_a_backup_is_being_made),
            cmocka_unit_test(a_file_that_shrinks_under_a_reader_is_no_damage),
            cmocka_unit_test(archive_reader_and_tender_work_at_once),
            cmocka_unit_test(loses_nothing_when_killed_while_it_tends),
            cmocka_unit_test(retention_makes_room_on_a_full_disk),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
