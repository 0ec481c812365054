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

#include "archive/spill.h"
#include "tests/support/archive_fixture.h"
#include "tests/support/forgetful_disk.h"

enum {
    ROUNDS = 20,
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

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(keeps_what_was_acknowledged_when_killed),
            cmocka_unit_test(keeps_what_was_acknowledged_when_unsynced_writes_are_lost),
            cmocka_unit_test(spill_keeps_what_was_synced_in_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
