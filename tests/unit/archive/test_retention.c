/* SPDX-License-Identifier: MIT */
#include "archive/retention.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "tests/support/archive_fixture.h"
#include "tests/support/cmocka.h"

static const int64_t second_ns = NANOSECONDS_PER_SECOND;

static struct retention_policy policy_of(const char *text)
{
    struct retention_policy policy;
    char why[200] = "";
    assert_int_equal(retention_policy_parse(&policy, text, why, sizeof(why)), STATUS_OK);
    assert_string_equal(why, "");
    return policy;
}

static void assert_policy(const char *text, uint64_t age_s, uint64_t count, uint64_t bytes)
{
    struct retention_policy policy = policy_of(text);
    assert_true(policy.max_age_s == age_s);
    assert_true(policy.max_count == count);
    assert_true(policy.max_bytes == bytes);
    assert_int_equal(retention_policy_keeps_all(&policy), age_s + count + bytes == 0);
}

static void reads_the_policies_of_the_reference(void **state)
{
    (void)state;
    assert_policy("time:172800", 172800, 0, 0);
    assert_policy("capacity:25000", 0, 25000, 0);
    assert_policy("size:30GB", 0, 0, 32212254720); /* its own default */
    assert_policy("size:25Gb", 0, 0, 25ULL << 30);
    assert_policy("size:1.5mb", 0, 0, 1572864);
    assert_policy("size:2048kb", 0, 0, 2 << 20);
    assert_policy("size:1TB", 0, 0, 1ULL << 40);
    assert_policy("time:3600;size:1GB;capacity:100", 3600, 100, 1 << 30);
    assert_policy(" Time: 3600 ;\tSIZE:1 GB;", 3600, 0, 1 << 30);
    assert_policy("none", 0, 0, 0);
    assert_policy("None", 0, 0, 0);
    assert_policy("", 0, 0, 0);
    assert_policy(";", 0, 0, 0);
}

static void refuses_what_is_contradictory_or_no_policy_and_says_why(void **state)
{
    static const char *const bad[][2] = {{"time:", "whole number"}, {"time:1.5", "whole number"},
            {"time:-1", "whole number"}, {"time:0", "keep nothing"}, {"capacity:0", "keep nothing"},
            {"capacity:ten", "whole number"}, {"time:99999999999999999999", "too large"},
            {"time:3153600001", "too large"}, {"size:30", "units"}, {"size:30PB", "units"},
            {"size:GB", "number with a unit"}, {"size:1.GB", "number with a unit"},
            {"size:1e3GB", "units"}, {"size:0GB", "1MB"}, {"size:0.5MB", "1MB"},
            {"time:1;time:2", "twice"}, {"capacity:1;capacity:1", "twice"},
            {"size:1GB;size:2GB", "twice"}, {"none;time:1", "none stands alone"},
            {"time:1;none", "none stands alone"}, {"age:3", "neither"}, {"time", "neither"},
            {"time:1+size:1GB", "whole number"}, {"time=1", "neither"}};
    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct retention_policy policy;
        char why[200] = "";
        assert_int_equal(
                retention_policy_parse(&policy, bad[i][0], why, sizeof(why)), STATUS_BAD_ARGUMENT);
        assert_non_null(strstr(why, bad[i][1]));
    }
    char longest[400];
    struct retention_policy policy;
    char why[200];
    memset(longest, '1', sizeof(longest) - 1);
    longest[sizeof(longest) - 1] = '\0';
    assert_int_equal(
            retention_policy_parse(&policy, longest, why, sizeof(why)), STATUS_BAD_ARGUMENT);
}

static void put(struct fixture_archive *fixture, unsigned number, int64_t timestamp_ns)
{
    struct fixture_message message = {.number = number,
            .timestamp_ns = timestamp_ns,
            .content = number % FIXTURE_CONTENT_TOPICS,
            .payload_bytes = 1000};
    fixture_put(fixture->archive, &message, NULL);
}

/* Until there is nothing more to do, as the archive thread does it. */
static size_t retain(struct retention *retention)
{
    size_t sum = 0;
    for (unsigned step = 0; step < 10000; step++) {
        size_t removed = 0;
        assert_int_equal(retention_step(retention, false, &removed), STATUS_OK);
        sum += removed;
        if (retention_due_ns(retention) > clock_monotonic_ns() + NANOSECONDS_PER_SECOND / 2) {
            return sum;
        }
    }
    fail();
    return sum;
}

static struct archive_totals totals_of(struct fixture_archive *fixture)
{
    struct archive_totals totals;
    assert_int_equal(archive_totals(fixture->archive, &totals), STATUS_OK);
    return totals;
}

static const char *const kinds[] = {"memory", "sqlite-memory", "sqlite-disk"};

enum {
    KINDS = sizeof(kinds) / sizeof(kinds[0])
};

static void keeps_exactly_as_many_as_the_capacity_says(void **state)
{
    (void)state;
    for (size_t kind = 0; kind < KINDS; kind++) {
        struct fixture_archive fixture;
        struct retention retention;
        struct retention_policy policy = policy_of("capacity:50");
        fixture_open(&fixture, kinds[kind], NULL);
        retention_init(&retention, fixture.archive, &policy, retention_now());
        for (unsigned i = 0; i < 200; i++) {
            put(&fixture, i, 1000 + i);
            retention_note_batch(&retention, 1, clock_monotonic_ns());
            assert_true(retention_due_ns(&retention) <= clock_monotonic_ns());
            assert_int_equal(retain(&retention), i < 50 ? 0 : 1);
            assert_int_equal(totals_of(&fixture).count, i < 50 ? i + 1 : 50);
        }
        assert_true(totals_of(&fixture).oldest_ns == 1000 + 150);
        fixture_close(&fixture);
    }
}

static void a_step_removes_more_than_were_stored_meanwhile(void **state)
{
    (void)state;
    struct fixture_archive fixture;
    struct retention retention;
    struct retention_policy policy = policy_of("capacity:10");
    size_t removed = 0;
    fixture_open(&fixture, "memory", NULL);
    for (unsigned i = 0; i < 300; i++) {
        put(&fixture, i, 1000 + i);
    }
    retention_init(&retention, fixture.archive, &policy, retention_now());
    retention.step_rows = 1;
    retention_note_batch(&retention, 50, clock_monotonic_ns());
    assert_int_equal(retention_step(&retention, true, &removed), STATUS_OK);
    assert_int_equal(removed, 63);
    assert_int_equal(retention_step(&retention, true, &removed), STATUS_OK);
    assert_true(removed >= 1 && removed < 90);
    fixture_close(&fixture);
}

static void removes_what_is_older_than_the_policy_says_and_nothing_else(void **state)
{
    (void)state;
    for (size_t kind = 0; kind < KINDS; kind++) {
        struct fixture_archive fixture;
        struct retention retention;
        struct retention_policy policy = policy_of("time:1000");
        fixture_open(&fixture, kinds[kind], NULL);
        int64_t now = clock_wall_ns();
        for (unsigned i = 0; i < 20; i++) {
            put(&fixture, i, now - (900 + 10 * (int64_t)i) * second_ns);
        }
        put(&fixture, 20, now + 100 * second_ns);
        put(&fixture, 21, 0);
        retention_init(&retention, fixture.archive, &policy, retention_now());
        /* 900 to 990 stay; 1000 is too old a moment later. */
        assert_int_equal(retain(&retention), 11);
        assert_int_equal(totals_of(&fixture).count, 11);
        assert_true(totals_of(&fixture).oldest_ns == now - 990 * second_ns);
        fixture_close(&fixture);
    }
}

static void shows_nothing_that_is_too_old_even_before_it_is_removed(void **state)
{
    (void)state;
    for (size_t kind = 0; kind < KINDS; kind++) {
        struct fixture_archive fixture;
        struct archive_options options = {.max_age_ns = 1000ULL * NANOSECONDS_PER_SECOND};
        fixture_open(&fixture, kinds[kind], &options);
        int64_t now = clock_wall_ns();
        uint8_t hash[MESSAGE_HASH_BYTES];
        struct fixture_message old = {.timestamp_ns = now - 1001 * second_ns, .payload_bytes = 8};
        fixture_put(fixture.archive, &old, hash);
        put(&fixture, 1, now - 900 * second_ns);
        struct span old_hash = span_of(hash, sizeof(hash));
        struct archive_query queries[] = {{.limit = 10}, {.is_backward = true},
                {.has_time_start = true, .time_start_ns = now - 5000 * second_ns},
                {.hashes = &old_hash, .hash_count = 1}};
        for (size_t i = 0; i < sizeof(queries) / sizeof(queries[0]); i++) {
            struct fixture_page page;
            assert_int_equal(fixture_query(fixture.reader, &queries[i], &page), STATUS_OK);
            assert_int_equal(page.count, queries[i].hash_count == 0);
            fixture_page_free(&page);
        }
        fixture_close(&fixture);
    }
}

static void keeps_segments_and_index_below_the_size(void **state)
{
    (void)state;
    struct fixture_archive fixture;
    struct retention retention;
    struct retention_policy policy = policy_of("size:1MB");
    struct archive_options options = {.segment_bytes = retention_policy_segment_bytes(&policy)};
    assert_true(options.segment_bytes == 65536);
    fixture_open(&fixture, "sqlite-disk", &options);
    retention_init(&retention, fixture.archive, &policy, retention_now());
    uint64_t least = UINT64_MAX;
    for (unsigned i = 0; i < 4000; i++) {
        /* Times come in no order, so that what goes is spread over all segments. */
        put(&fixture, i, 1000 + (int64_t)(i * 7919U % 4001U) + (int64_t)i);
        if (i % 20 == 19) {
            retention_note_batch(&retention, 1, clock_monotonic_ns());
            retain(&retention);
            uint64_t size = totals_of(&fixture).size_bytes;
            assert_true(size <= 1 << 20);
            least = i > 2000 && size < least ? size : least;
        }
    }
    /* And not much below either. */
    assert_true(least > (1 << 20) / 2);
    fixture_close(&fixture);
}

static void a_message_goes_when_any_part_of_the_policy_says_so(void **state)
{
    (void)state;
    struct fixture_archive fixture;
    struct retention retention;
    struct retention_policy policy = policy_of("time:1000;capacity:10");
    fixture_open(&fixture, "sqlite-memory", NULL);
    int64_t now = clock_wall_ns();
    for (unsigned i = 0; i < 15; i++) {
        put(&fixture, i, now - 2000 * second_ns);
    }
    for (unsigned i = 15; i < 20; i++) {
        put(&fixture, i, now);
    }
    retention_init(&retention, fixture.archive, &policy, retention_now());
    assert_int_equal(retain(&retention), 15);
    for (unsigned i = 20; i < 30; i++) {
        put(&fixture, i, now + i);
    }
    assert_int_equal(retain(&retention), 5);
    assert_int_equal(totals_of(&fixture).count, 10);
    fixture_close(&fixture);
}

static void has_nothing_to_do_without_a_policy(void **state)
{
    (void)state;
    struct fixture_archive fixture;
    struct retention retention;
    struct retention_policy policy = policy_of("none");
    fixture_open(&fixture, "memory", NULL);
    retention_init(&retention, fixture.archive, &policy, retention_now());
    assert_true(retention_due_ns(&retention) == UINT64_MAX);
    retention_note_batch(&retention, 1, clock_monotonic_ns());
    assert_true(retention_due_ns(&retention) == UINT64_MAX);
    fixture_close(&fixture);
}

static int64_t oldest_at(struct retention *retention, int64_t wall_s, int64_t monotonic_s)
{
    struct retention_time now = {wall_s * second_ns, (uint64_t)(monotonic_s * second_ns)};
    return retention_oldest_ns(retention, now) / second_ns;
}

static void believes_a_clock_that_went_far_ahead_only_when_it_stays_there(void **state)
{
    (void)state;
    struct retention retention;
    struct retention_policy policy = policy_of("time:100");
    struct retention_time start = {1000000 * second_ns, (uint64_t)second_ns};
    retention_init(&retention, NULL, &policy, start);
    assert_int_equal(oldest_at(&retention, 1000010, 11), 999910);
    /* Half an hour may be a correction. */
    assert_int_equal(oldest_at(&retention, 1001810, 12), 1001710);
    /* Ten years, for a minute. */
    assert_int_equal(oldest_at(&retention, 316000000, 13), 1001711);
    assert_int_equal(oldest_at(&retention, 316000060, 73), 1001771);
    assert_int_equal(oldest_at(&retention, 1001872, 74), 1001772);
    /* Again, and it stays. */
    assert_int_equal(oldest_at(&retention, 316000000, 75), 1001773);
    assert_int_equal(oldest_at(&retention, 316000599, 674), 1002372);
    assert_int_equal(oldest_at(&retention, 316000600, 675), 316000500);
    /* Back is no danger. */
    assert_int_equal(oldest_at(&retention, 1000, 676), 900);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(reads_the_policies_of_the_reference),
            cmocka_unit_test(refuses_what_is_contradictory_or_no_policy_and_says_why),
            cmocka_unit_test(keeps_exactly_as_many_as_the_capacity_says),
            cmocka_unit_test(a_step_removes_more_than_were_stored_meanwhile),
            cmocka_unit_test(removes_what_is_older_than_the_policy_says_and_nothing_else),
            cmocka_unit_test(shows_nothing_that_is_too_old_even_before_it_is_removed),
            cmocka_unit_test(keeps_segments_and_index_below_the_size),
            cmocka_unit_test(a_message_goes_when_any_part_of_the_policy_says_so),
            cmocka_unit_test(has_nothing_to_do_without_a_policy),
            cmocka_unit_test(believes_a_clock_that_went_far_ahead_only_when_it_stays_there),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
