/* SPDX-License-Identifier: MIT */

/* What only the memory engine has: references instead of copies, and a cap. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdatomic.h>
#include <string.h>

#include "archive/message_table.h"
#include "base/metrics.h"
#include "tests/support/archive_fixture.h"

static struct fixture_message message_of(unsigned number)
{
    return (struct fixture_message){
            .number = number, .timestamp_ns = 1000 + number, .payload_bytes = 1000};
}

static void keeps_a_reference_and_copies_nothing(void **state)
{
    (void)state;
    struct fixture_archive fixture;
    fixture_open(&fixture, "memory", NULL);
    struct fixture_message message = message_of(1);
    struct envelope *envelope = fixture_envelope(&message);
    uint64_t copies = metrics_sum(NULL, METRIC_COPIES);
    struct archive_put_result result;
    assert_int_equal(archive_put(fixture.archive, &envelope, 1, &result), STATUS_OK);
    assert_int_equal(atomic_load(&envelope->references), 2);
    assert_int_equal(archive_put(fixture.archive, &envelope, 1, &result), STATUS_OK);
    assert_int_equal(atomic_load(&envelope->references), 2);
    assert_int_equal(metrics_sum(NULL, METRIC_COPIES), copies);
    struct archive_prune_result pruned;
    struct archive_prune_limits limits = archive_prune_nothing;
    limits.oldest_ns = INT64_MAX;
    assert_int_equal(archive_prune(fixture.archive, &limits, 10, &pruned), STATUS_OK);
    assert_int_equal(pruned.removed, 1);
    assert_int_equal(atomic_load(&envelope->references), 1);
    envelope_unref(envelope);
    fixture_close(&fixture);
}

/* An envelope whose message is a small part of a frame that is charged to budget. */
static struct envelope *small_part_of_a_frame(struct frame_budget *budget, bool is_small)
{
    struct fixture_message message = message_of(is_small);
    struct envelope *envelope = fixture_envelope(&message);
    size_t length = envelope->message.length;
    struct frame *frame =
            frame_try_create(budget, FRAME_BUDGET_COMPLETE, is_small ? 10 * length : length);
    assert_non_null(frame);
    memcpy(frame_bytes(frame), envelope->message.bytes, length);
    ptrdiff_t payload = envelope->payload.bytes - envelope->message.bytes;
    ptrdiff_t topic = envelope->content_topic.bytes - envelope->message.bytes;
    envelope->message.bytes = frame_bytes(frame);
    envelope->payload.bytes = frame_bytes(frame) + payload;
    envelope->content_topic.bytes = frame_bytes(frame) + topic;
    frame_unref(envelope->frame);
    envelope->frame = frame;
    return envelope;
}

static void pins_neither_the_rest_of_a_frame_nor_the_frame_budget(void **state)
{
    (void)state;
    struct frame_budget *budget = NULL;
    assert_int_equal(frame_budget_create(&budget, 1 << 20, 0), STATUS_OK);
    struct fixture_archive fixture;
    fixture_open(&fixture, "memory", NULL);
    for (int is_small = 0; is_small < 2; is_small++) {
        struct envelope *envelope = small_part_of_a_frame(budget, is_small == 1);
        uint64_t copies = metrics_sum(NULL, METRIC_COPIES);
        struct archive_put_result result;
        assert_int_equal(archive_put(fixture.archive, &envelope, 1, &result), STATUS_OK);
        envelope_unref(envelope);
        assert_int_equal(frame_budget_used(budget), 0);
        assert_int_equal(metrics_sum(NULL, METRIC_COPIES) - copies, is_small);
    }
    struct archive_totals totals;
    assert_int_equal(archive_totals(fixture.archive, &totals), STATUS_OK);
    assert_true(totals.message_bytes < 4000);
    fixture_close(&fixture);
    frame_budget_destroy(&budget);
}

static void gives_up_the_oldest_when_it_is_at_its_limit(void **state)
{
    (void)state;
    struct archive_options options = {.memory_limit_bytes = 100000};
    struct fixture_archive fixture;
    fixture_open(&fixture, "memory", &options);
    uint64_t evicted = metrics_sum(NULL, METRIC_ARCHIVE_EVICTED);
    enum {
        COUNT = 500
    };
    for (unsigned i = 0; i < COUNT; i++) {
        struct fixture_message message = message_of(i);
        fixture_put(fixture.archive, &message, NULL);
    }
    struct archive_totals totals;
    assert_int_equal(archive_totals(fixture.archive, &totals), STATUS_OK);
    assert_true(totals.message_bytes <= 100000);
    assert_true(totals.count > 50);
    assert_int_equal(metrics_sum(NULL, METRIC_ARCHIVE_EVICTED) - evicted, COUNT - totals.count);
    assert_true(totals.newest_ns == 1000 + COUNT - 1);
    assert_true(totals.oldest_ns == 1000 + COUNT - (int64_t)totals.count);
    fixture_close(&fixture);
}

/* Retained bytes grow by at most 1.05 times the serialised messages, for 10/50/150 kB. */
static void needs_little_more_than_the_messages(void **state)
{
    (void)state;
    struct fixture_archive fixture;
    fixture_open(&fixture, "memory", NULL);
    static const size_t sizes[] = {10240, 51200, 51200, 153000};
    uint64_t serialised = 0;
    for (unsigned i = 0; i < 400; i++) {
        struct fixture_message message = message_of(i);
        message.payload_bytes = sizes[i % 4];
        struct envelope *envelope = fixture_envelope(&message);
        serialised += envelope->message.length;
        struct archive_put_result result;
        assert_int_equal(archive_put(fixture.archive, &envelope, 1, &result), STATUS_OK);
        envelope_unref(envelope);
    }
    struct archive_totals totals;
    assert_int_equal(archive_totals(fixture.archive, &totals), STATUS_OK);
    assert_true((double)totals.size_bytes <= 1.05 * (double)serialised);
    fixture_close(&fixture);
}

enum {
    TABLE_COUNT = 3000
};

static struct envelope table_envelopes[TABLE_COUNT];

static void insert_missing(struct message_table *table)
{
    for (unsigned i = 0; i < TABLE_COUNT; i++) {
        memcpy(table_envelopes[i].hash, &i, sizeof(i));
        if (message_table_find(table, table_envelopes[i].hash) == NULL) {
            assert_int_equal(message_table_insert(table, &table_envelopes[i]), STATUS_OK);
        }
    }
}

static void table_finds_what_is_in_it_through_growth_and_removal(void **state)
{
    (void)state;
    struct message_table table;
    assert_int_equal(message_table_init(&table), STATUS_OK);
    for (unsigned round = 0; round < 3; round++) {
        insert_missing(&table);
        unsigned step = 3 - round;
        for (unsigned i = round; i < TABLE_COUNT; i += step) {
            message_table_remove(&table, &table_envelopes[i]);
        }
        for (unsigned i = 0; i < TABLE_COUNT; i++) {
            bool is_gone = i >= round && (i - round) % step == 0;
            assert_ptr_equal(message_table_find(&table, table_envelopes[i].hash),
                    is_gone ? NULL : &table_envelopes[i]);
        }
    }
    message_table_fini(&table);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(keeps_a_reference_and_copies_nothing),
            cmocka_unit_test(pins_neither_the_rest_of_a_frame_nor_the_frame_budget),
            cmocka_unit_test(gives_up_the_oldest_when_it_is_at_its_limit),
            cmocka_unit_test(needs_little_more_than_the_messages),
            cmocka_unit_test(table_finds_what_is_in_it_through_growth_and_removal),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
