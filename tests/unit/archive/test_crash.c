/* SPDX-License-Identifier: MIT */

/*
 * A child process puts batches and says over a pipe which were acknowledged, until it is killed.
 * Whatever was acknowledged must be there, once, with its bytes.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "archive/backup.h"
#include "archive/spill.h"
#include "archive/verify.h"
#include "codec/waku_message.h"
#include "tests/support/archive_fixture.h"
#include "tests/support/forgetful_disk.h"

/* A disk that forgets copies whole files, which sanitizers make thirty times as slow. */
#if defined(__SANITIZE_ADDRESS__)
#define IS_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer) || __has_feature(address_sanitizer)
#define IS_SANITIZED 1
#endif
#endif

enum {
#ifdef IS_SANITIZED
    ROUNDS = 6,
#else
    ROUNDS = 20,
#endif
    BATCH = 7,
    MAX_ACKNOWLEDGED = 40 /* batches a round */
};

static struct fixture_message message_of(unsigned number)
{
    return (struct fixture_message){.number = number,
            .timestamp_ns = 1000 + number,
            .pubsub = number % FIXTURE_PUBSUB_TOPICS,
            .content = number % FIXTURE_CONTENT_TOPICS,
            .payload_bytes = 8 + number * 37 % 3000};
}

/* Puts batches from first on for ever; after each that is stored, its last number goes to fd. */
static _Noreturn void put_for_ever(
        const char *address, const struct archive_options *options, unsigned first, int fd)
{
    struct archive *archive = NULL;
    struct archive_error error;
    if (archive_open(&archive, address, options, &error) != STATUS_OK) {
        fprintf(stderr, "%s\n", error.text);
        _exit(1);
    }
    for (unsigned number = first;; number += BATCH) {
        struct envelope *batch[BATCH];
        for (unsigned i = 0; i < BATCH; i++) {
            struct fixture_message message = message_of(number + i);
            batch[i] = fixture_envelope(&message);
        }
        struct archive_put_result result;
        unsigned last = number + BATCH - 1;
        if (archive_put(archive, batch, BATCH, &result) != STATUS_OK ||
                write(fd, &last, sizeof(last)) != sizeof(last)) {
            _exit(1);
        }
        for (unsigned i = 0; i < BATCH; i++) {
            envelope_unref(batch[i]);
        }
    }
}

/* Lets a child put from first on and kills it; returns the first number not acknowledged. */
static unsigned run_and_kill(
        const char *address, const struct archive_options *options, unsigned first, int kill_after)
{
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        close(ends[0]);
        put_for_ever(address, options, first, ends[1]);
    }
    close(ends[1]);
    unsigned acknowledged = first - 1;
    unsigned last = 0;
    for (int i = 0; i < kill_after; i++) {
        assert_int_equal(read(ends[0], &last, sizeof(last)), sizeof(last));
        acknowledged = last;
    }
    kill(child, SIGKILL);
    while (read(ends[0], &last, sizeof(last)) == sizeof(last)) {
        acknowledged = last;
    }
    close(ends[0]);
    int how = 0;
    assert_int_equal(waitpid(child, &how, 0), child);
    assert_true(WIFSIGNALED(how) && WTERMSIG(how) == SIGKILL);
    return acknowledged + 1;
}

struct expectation {
    unsigned *seen;
    unsigned limit; /* numbers below it may come */
};

static enum status check_row(void *context, const struct archive_row *row)
{
    struct expectation *expected = context;
    unsigned number = (unsigned)(row->timestamp_ns - 1000);
    assert_true(number < expected->limit);
    struct fixture_message message = message_of(number);
    struct envelope *envelope = fixture_envelope(&message);
    assert_memory_equal(row->hash.bytes, envelope->hash, MESSAGE_HASH_BYTES);
    assert_true(span_equal(row->message, envelope->message));
    envelope_unref(envelope);
    expected->seen[number]++;
    return STATUS_OK;
}

/* Everything below acknowledged once, what else there is (of one batch more) once at most. */
static unsigned check_archive(const char *address, unsigned acknowledged)
{
    struct archive *archive = NULL;
    struct archive_reader *reader = NULL;
    struct archive_error error;
    assert_int_equal(archive_open(&archive, address, NULL, &error), STATUS_OK);
    assert_int_equal(archive_reader_open(&reader, archive), STATUS_OK);
    unsigned limit = acknowledged + BATCH;
    struct expectation expected = {.seen = calloc(limit, sizeof(unsigned)), .limit = limit};
    struct archive_query query = {.include_data = true, .limit = 1000000, .max_limit = 1000000};
    struct archive_page page;
    assert_int_equal(archive_query(reader, &query, check_row, &expected, &page), STATUS_OK);
    for (unsigned i = 0; i < limit; i++) {
        assert_true(expected.seen[i] <= 1);
        assert_true(i >= acknowledged || expected.seen[i] == 1);
    }
    free(expected.seen);
    struct archive_totals totals;
    assert_int_equal(archive_totals(archive, &totals), STATUS_OK);
    assert_int_equal(totals.count, page.count);
    archive_reader_close(&reader);
    archive_close(&archive);
    return (unsigned)page.count;
}

static void run_rounds(const struct archive_options *options)
{
    char folder[256];
    char address[300];
    fixture_make_folder(folder);
    snprintf(address, sizeof(address), "sqlite://%s/archive.db", folder);
    srand(42);
    unsigned next = 0;
    for (int round = 0; round < ROUNDS; round++) {
        next = run_and_kill(address, options, next, 1 + rand() % MAX_ACKNOWLEDGED);
        /* What was stored without being acknowledged stands in the way of its number. */
        next = check_archive(address, next);
    }
    fixture_remove_folder(folder);
}

static void keeps_what_was_acknowledged_when_killed(void **state)
{
    (void)state;
    struct archive_options options = {.segment_bytes = 100000};
    run_rounds(&options);
}

static void keeps_what_was_acknowledged_when_unsynced_writes_are_lost(void **state)
{
    (void)state;
    struct archive_options options = {
            .segment_bytes = 100000, .vfs = forgetful_vfs(), .files = &forgetful_file_ops};
    run_rounds(&options);
}

static void spill_keeps_what_was_synced_in_order(void **state)
{
    (void)state;
    char folder[256];
    char path[300];
    fixture_make_folder(folder);
    snprintf(path, sizeof(path), "%s/spill", folder);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        struct spill_options options = {
                .path = path, .limit_bytes = 1 << 20, .files = &forgetful_file_ops};
        struct spill *spill = NULL;
        bool is_good = spill_open(&spill, &options) == STATUS_OK;
        for (unsigned i = 0; i < 30 && is_good; i++) {
            struct fixture_message message = message_of(i);
            struct archive_record record = archive_record_of(fixture_envelope(&message));
            is_good = spill_push(spill, &record) == STATUS_OK &&
                      (i != 19 || spill_sync(spill) == STATUS_OK);
        }
        _exit(is_good ? 0 : 1);
    }
    int how = 0;
    assert_int_equal(waitpid(child, &how, 0), child);
    assert_true(WIFEXITED(how) && WEXITSTATUS(how) == 0);
    struct spill *spill = NULL;
    struct spill_options options = {.path = path, .limit_bytes = 1 << 20};
    assert_int_equal(spill_open(&spill, &options), STATUS_OK);
    assert_int_equal(spill_count(spill), 20);
    struct archive_record records[32];
    size_t count = 0;
    assert_int_equal(spill_peek(spill, records, 32, 1 << 20, &count), STATUS_OK);
    assert_int_equal(count, 20);
    for (unsigned i = 0; i < 20; i++) {
        assert_true(records[i].timestamp_ns == 1000 + i);
    }
    spill_close(&spill);
    fixture_remove_folder(folder);
}

enum {
    OLD = 60,   /* messages that retention is to remove */
    YOUNG = 40, /* and that it is not */
    SCATTERED = 5
};

/* Old ones among which a few young ones stand, so that segments are emptied by moving those. */
static int64_t time_of(unsigned number)
{
    bool is_young = number >= OLD || number % (OLD / SCATTERED) == 0;
    return 1000 + number + (is_young ? 100000 : 0);
}

static void put_old_and_young(struct archive *archive)
{
    for (unsigned first = 0; first < OLD + YOUNG; first += 10) {
        struct envelope *batch[10];
        struct archive_put_result result;
        for (unsigned i = 0; i < 10; i++) {
            struct fixture_message message = message_of(first + i);
            message.timestamp_ns = time_of(first + i);
            batch[i] = fixture_envelope(&message);
        }
        assert_int_equal(archive_put(archive, batch, 10, &result), STATUS_OK);
        for (unsigned i = 0; i < 10; i++) {
            envelope_unref(batch[i]);
        }
    }
}

static void forget_old(struct archive *archive)
{
    struct archive_prune_limits limits = archive_prune_nothing;
    limits.oldest_ns = 100000;
    fixture_prune(archive, &limits, 16);
}

static enum status check_young(void *context, const struct archive_row *row)
{
    unsigned *young = context;
    struct waku_message_view view;
    assert_int_equal(waku_message_decode(&view, row->message), STATUS_OK);
    assert_true(view.timestamp_ns == row->timestamp_ns);
    *young += row->timestamp_ns >= 100000;
    return STATUS_OK;
}

/* Every young message once and whole; then retention goes on, and nothing old is left. */
static void check_after_retention(const char *address, const struct archive_options *options)
{
    struct archive *archive = NULL;
    struct archive_reader *reader = NULL;
    struct archive_error error;
    struct archive_totals totals;
    struct archive_page page;
    assert_int_equal(archive_open(&archive, address, options, &error), STATUS_OK);
    assert_int_equal(archive_reader_open(&reader, archive), STATUS_OK);
    struct archive_query query = {.include_data = true, .limit = 1000, .max_limit = 1000};
    for (unsigned pass = 0; pass < 2; pass++) {
        unsigned young = 0;
        assert_int_equal(archive_query(reader, &query, check_young, &young, &page), STATUS_OK);
        assert_int_equal(young, YOUNG + SCATTERED);
        assert_int_equal(archive_totals(archive, &totals), STATUS_OK);
        assert_int_equal(totals.count, page.count);
        forget_old(archive);
    }
    assert_int_equal(totals.count, YOUNG + SCATTERED);
    archive_reader_close(&reader);
    archive_close(&archive);
}

/* False when retention ended before that operation. */
static bool dies_in_retention(
        const char *address, const struct archive_options *options, unsigned long operation)
{
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        struct archive *archive = NULL;
        struct archive_error error;
        bool is_good = archive_open(&archive, address, options, &error) == STATUS_OK;
        put_old_and_young(archive);
        archive_close(&archive); /* which has the index on disk, so that it has something to lose */
        is_good = is_good && archive_open(&archive, address, options, &error) == STATUS_OK;
        if (!is_good) {
            _exit(1);
        }
        forgetful_disk_die_at(operation);
        forget_old(archive);
        _exit(0);
    }
    int how = 0;
    assert_int_equal(waitpid(child, &how, 0), child);
    assert_true(WIFSIGNALED(how) || WEXITSTATUS(how) == 0);
    return WIFSIGNALED(how);
}

static void loses_nothing_when_killed_at_any_point_of_retention(void **state)
{
    (void)state;
    struct archive_options options = {
            .segment_bytes = 20000, .vfs = forgetful_vfs(), .files = &forgetful_file_ops};
    struct archive_options plain = {.segment_bytes = 20000};
    bool died = true;
    unsigned long operation = 1;
    for (; died; operation += 1 + operation / 4) {
        char folder[256];
        char address[300];
        fixture_make_folder(folder);
        snprintf(address, sizeof(address), "sqlite://%s/archive.db", folder);
        died = dies_in_retention(address, &options, operation);
        check_after_retention(address, &plain);
        fixture_remove_folder(folder);
    }
    assert_true(operation > 20);
}

static bool dies_in_backup(const char *from, const char *to, unsigned long operation)
{
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        struct archive_options options = {.vfs = forgetful_vfs(), .files = &forgetful_file_ops};
        struct archive_backup_result result;
        struct archive_error error;
        forgetful_disk_die_at(operation);
        _exit(archive_backup(from, to, &options, &result, &error) == STATUS_OK ? 0 : 1);
    }
    int how = 0;
    assert_int_equal(waitpid(child, &how, 0), child);
    assert_true(WIFSIGNALED(how) || WEXITSTATUS(how) == 0);
    return WIFSIGNALED(how);
}

static void assert_good(const char *address, uint64_t messages)
{
    struct archive_verify_result result;
    struct archive_error error = {.text = ""};
    assert_int_equal(
            archive_verify(address, fixture_fail_on_problem, NULL, &result, &error), STATUS_OK);
    assert_int_equal(result.problems, 0);
    assert_int_equal(result.messages, messages);
}

static void a_killed_backup_is_no_archive_and_the_next_one_takes_its_place(void **state)
{
    (void)state;
    char folder[256];
    char from[300];
    char to[300];
    struct archive *archive = NULL;
    struct archive_error error;
    struct archive_options options = {.segment_bytes = 20000};
    fixture_make_folder(folder);
    snprintf(from, sizeof(from), "sqlite://%s/archive.db", folder);
    snprintf(to, sizeof(to), "sqlite://%s/copy.db", folder);
    assert_int_equal(archive_open(&archive, from, &options, &error), STATUS_OK);
    put_old_and_young(archive);
    unsigned long operation = 1;
    for (; dies_in_backup(from, to, operation); operation += 1 + operation / 4) {
        assert_int_not_equal(access(archive_path_of(to), F_OK), 0);
        assert_good(from, OLD + YOUNG);
    }
    assert_true(operation > 10);
    assert_good(to, OLD + YOUNG);
    /* The archive that was copied goes on, and gives its files back. */
    forget_old(archive);
    archive_close(&archive);
    assert_good(from, YOUNG + SCATTERED);
    assert_good(to, OLD + YOUNG);
    fixture_remove_folder(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(keeps_what_was_acknowledged_when_killed),
            cmocka_unit_test(keeps_what_was_acknowledged_when_unsynced_writes_are_lost),
            cmocka_unit_test(loses_nothing_when_killed_at_any_point_of_retention),
            cmocka_unit_test(a_killed_backup_is_no_archive_and_the_next_one_takes_its_place),
            cmocka_unit_test(spill_keeps_what_was_synced_in_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
