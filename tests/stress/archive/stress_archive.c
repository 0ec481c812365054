/* SPDX-License-Identifier: MIT */

/*
 * One thread puts and prunes while others page through, with bytes, in both directions: every page is
 * in order, every row has its own bytes, and no reader ever misses a message that stays.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "codec/waku_message.h"
#include "tests/support/archive_fixture.h"
#include "tests/support/require.h"

enum {
    READERS = 4,
    WALKS = 15,       /* of each reader through the whole archive */
    STAYING = 300,    /* messages that are never pruned */
    STAY_FROM = 50000 /* their timestamps, from here on */
};

struct shared {
    struct archive *archive;
    atomic_bool is_over;
};

struct walk {
    unsigned staying;
    int64_t last_timestamp; /* of the row before, in the page */
    uint8_t last_hash[MESSAGE_HASH_BYTES];
    size_t row; /* in the page */
};

static enum status check_row(void *context, const struct archive_row *row)
{
    struct walk *walk = context;
    bool is_ordered = walk->row == 0 || row->timestamp_ns > walk->last_timestamp ||
                      (row->timestamp_ns == walk->last_timestamp &&
                              memcmp(row->hash.bytes, walk->last_hash, MESSAGE_HASH_BYTES) > 0);
    REQUIRE(is_ordered);
    walk->row++;
    walk->last_timestamp = row->timestamp_ns;
    memcpy(walk->last_hash, row->hash.bytes, MESSAGE_HASH_BYTES);
    struct waku_message_view view;
    REQUIRE(waku_message_decode(&view, row->message) == STATUS_OK);
    REQUIRE(view.timestamp_ns == row->timestamp_ns);
    REQUIRE(row->pubsub_topic.length > 0);
    walk->staying += row->timestamp_ns >= STAY_FROM;
    return STATUS_OK;
}

/* Once through everything; false when retention took the cursor away. */
static bool walk_through(struct archive_reader *reader, bool is_backward)
{
    struct walk walk = {0};
    struct archive_query query = {.include_data = true, .limit = 23, .is_backward = is_backward};
    struct archive_page page = {.has_cursor = true};
    uint8_t cursor[MESSAGE_HASH_BYTES];
    while (page.has_cursor) {
        struct walk before = walk;
        walk.row = 0;
        enum status status = archive_query(reader, &query, check_row, &walk, &page);
        if (status == STATUS_BUSY) {
            walk = before;
            page.has_cursor = true;
            continue;
        }
        if (status == STATUS_BAD_CURSOR) {
            return false;
        }
        REQUIRE(status == STATUS_OK);
        memcpy(cursor, page.cursor, sizeof(cursor));
        query.has_cursor = true;
        query.cursor = span_of(cursor, sizeof(cursor));
    }
    REQUIRE(walk.staying == STAYING);
    return true;
}

static void *read_all(void *context)
{
    struct shared *shared = context;
    struct archive_reader *reader = NULL;
    REQUIRE(archive_reader_open(&reader, shared->archive) == STATUS_OK);
    unsigned done = 0;
    for (unsigned tries = 0; done < WALKS && tries < 50 * WALKS; tries++) {
        done += walk_through(reader, tries % 2 == 0);
    }
    REQUIRE(done > 0);
    archive_reader_close(&reader);
    return NULL;
}

static struct envelope *envelope_at(unsigned number, int64_t timestamp)
{
    struct fixture_message message = {.number = number,
            .timestamp_ns = timestamp,
            .pubsub = number % FIXTURE_PUBSUB_TOPICS,
            .content = number % FIXTURE_CONTENT_TOPICS,
            .payload_bytes = 8 + number % 300};
    return fixture_envelope(&message);
}

static void put_some(struct archive *archive, unsigned first, unsigned count, int64_t timestamp)
{
    struct envelope *batch[64];
    for (unsigned i = 0; i < count; i++) {
        batch[i] = envelope_at(first + i, timestamp + i / 4);
    }
    struct archive_put_result result;
    enum status status = STATUS_BUSY;
    while (status == STATUS_BUSY) {
        status = archive_put(archive, batch, count, &result);
    }
    REQUIRE(status == STATUS_OK && result.stored == count);
    for (unsigned i = 0; i < count; i++) {
        envelope_unref(batch[i]);
    }
}

static void *write_all(void *context)
{
    struct shared *shared = context;
    int64_t now = 1000;
    unsigned number = 1000;
    /* relaxed: only says when to stop */
    while (!atomic_load_explicit(&shared->is_over, memory_order_relaxed) && now < STAY_FROM - 100) {
        put_some(shared->archive, number, 32, now);
        number += 32;
        now += 8;
        struct archive_prune_limits limits = archive_prune_nothing;
        struct archive_prune_result result;
        limits.oldest_ns = now - 100;
        enum status status = archive_prune(shared->archive, &limits, 50, &result);
        REQUIRE(status == STATUS_OK || status == STATUS_BUSY);
    }
    return NULL;
}

static void run(const char *kind)
{
    struct archive_options options = {.segment_bytes = 30000};
    struct fixture_archive fixture;
    fixture_open(&fixture, kind, &options);
    for (unsigned i = 0; i < STAYING; i += 60) {
        put_some(fixture.archive, 1000000 + i, 60, STAY_FROM + i);
    }
    struct shared shared = {.archive = fixture.archive};
    pthread_t writer;
    pthread_t readers[READERS];
    REQUIRE(pthread_create(&writer, NULL, write_all, &shared) == 0);
    for (int i = 0; i < READERS; i++) {
        REQUIRE(pthread_create(&readers[i], NULL, read_all, &shared) == 0);
    }
    for (int i = 0; i < READERS; i++) {
        pthread_join(readers[i], NULL);
    }
    atomic_store_explicit(&shared.is_over, true, memory_order_relaxed);
    pthread_join(writer, NULL);
    fixture_close(&fixture);
}

static void readers_see_ordered_whole_pages_of_the_memory_engine(void **state)
{
    (void)state;
    run("memory");
}

static void readers_see_ordered_whole_pages_of_sqlite_in_memory(void **state)
{
    (void)state;
    run("sqlite-memory");
}

static void readers_see_ordered_whole_pages_of_sqlite_on_disk(void **state)
{
    (void)state;
    run("sqlite-disk");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(readers_see_ordered_whole_pages_of_the_memory_engine),
            cmocka_unit_test(readers_see_ordered_whole_pages_of_sqlite_in_memory),
            cmocka_unit_test(readers_see_ordered_whole_pages_of_sqlite_on_disk),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
