/* SPDX-License-Identifier: MIT */

/*
 * Readers that look through the whole archive, one query after the other without a break, while messages
 * are stored: the journal of the index begins anew all the same, and every query ends with what it
 * looked for.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

#include "archive/sqlite_engine.h"
#include "archive/tender.h"
#include "base/clock.h"
#include "tests/support/archive_fixture.h"
#include "tests/support/require.h"

enum {
    READERS = 2,
    BATCH = 256,
    BATCHES_MAX = 200, /* far more than it takes */
    JOURNAL_PAGES = 2048,
    QUIET_PAGES = 3072,
    RARE_TOPIC = 2 /* of one message, the last */
};

struct shared {
    struct archive *archive;
    struct archive_tender *tender;
    uint8_t rare[MESSAGE_HASH_BYTES];
    _Atomic unsigned queries;
    atomic_bool is_over;
};

static void *tend(void *argument)
{
    struct shared *shared = argument;
    struct timespec nap = {.tv_nsec = NANOSECONDS_PER_MILLISECOND};
    while (!atomic_load(&shared->is_over)) {
        if (archive_tender_due_ns(shared->tender) <= clock_monotonic_ns()) {
            REQUIRE(archive_tend(shared->tender) == STATUS_OK);
        } else {
            nanosleep(&nap, NULL);
        }
    }
    return NULL;
}

static enum status check_row(void *context, const struct archive_row *row)
{
    const struct shared *shared = context;
    REQUIRE(memcmp(row->hash.bytes, shared->rare, MESSAGE_HASH_BYTES) == 0);
    return STATUS_OK;
}

static void *look_through(void *argument)
{
    struct shared *shared = argument;
    struct archive_reader *reader = NULL;
    REQUIRE(archive_reader_open(&reader, shared->archive) == STATUS_OK);
    while (!atomic_load(&shared->is_over)) {
        struct archive_query query = {.pubsub_topic = fixture_pubsub_topic(RARE_TOPIC)};
        struct archive_page page;
        REQUIRE(archive_query(reader, &query, check_row, shared, &page) == STATUS_OK);
        REQUIRE(page.count == 1 && !page.has_cursor);
        atomic_fetch_add(&shared->queries, 1);
    }
    archive_reader_close(&reader);
    return NULL;
}

static void put(struct archive *archive, unsigned first)
{
    struct envelope *batch[BATCH];
    struct archive_put_result result;
    for (unsigned i = 0; i < BATCH; i++) {
        struct fixture_message message = {
                .number = first + i, .timestamp_ns = 1000 + first + i, .payload_bytes = 8};
        batch[i] = fixture_envelope(&message);
    }
    assert_int_equal(archive_put(archive, batch, BATCH, &result), STATUS_OK);
    for (unsigned i = 0; i < BATCH; i++) {
        envelope_unref(batch[i]);
    }
}

static uint64_t journal_of(const struct archive *archive)
{
    return atomic_load(&((const struct sqlite_archive *)archive)->tending.journal);
}

/* Until it has begun anew after the readers were asked to stand back. */
static void store_until_it_begins_anew(struct archive *archive)
{
    bool was_long = false;
    uint64_t before = journal_of(archive);
    for (unsigned i = 0; i < BATCHES_MAX; i++) {
        put(archive, i * BATCH);
        uint64_t journal = journal_of(archive);
        bool has_begun_anew =
                journal >> SQLITE_GENERATION_SHIFT != before >> SQLITE_GENERATION_SHIFT;
        if (was_long && has_begun_anew) {
            return;
        }
        was_long = was_long || (uint32_t)journal >= QUIET_PAGES;
        before = journal;
    }
    /* Readers that leave gaps on their own are no fault. */
    assert_false(was_long);
}

static void a_journal_begins_anew_although_somebody_always_reads(void **state)
{
    (void)state;
    struct fixture_archive fixture;
    struct shared shared = {.tender = NULL};
    struct fixture_message rare = {.number = UINT32_MAX,
            .timestamp_ns = INT64_MAX / 2,
            .pubsub = RARE_TOPIC,
            .payload_bytes = 8};
    pthread_t threads[READERS + 1];
    fixture_open(&fixture, "sqlite-disk", NULL);
    fixture_put(fixture.archive, &rare, shared.rare);
    shared.archive = fixture.archive;
    struct sqlite_tending *tending = &((struct sqlite_archive *)fixture.archive)->tending;
    tending->journal_pages = JOURNAL_PAGES;
    tending->quiet_pages = QUIET_PAGES;
    tending->quiet_at_pages = QUIET_PAGES;
    assert_int_equal(archive_tender_open(&shared.tender, fixture.archive), STATUS_OK);
    for (size_t i = 0; i <= READERS; i++) {
        assert_int_equal(
                pthread_create(&threads[i], NULL, i == 0 ? tend : look_through, &shared), 0);
    }
    store_until_it_begins_anew(fixture.archive);
    atomic_store(&shared.is_over, true);
    for (size_t i = 0; i <= READERS; i++) {
        pthread_join(threads[i], NULL);
    }
    assert_true(shared.queries > 0);
    archive_tender_close(&shared.tender);
    fixture_close(&fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(a_journal_begins_anew_although_somebody_always_reads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
