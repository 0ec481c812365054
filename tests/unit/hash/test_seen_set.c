/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "base/metrics.h"
#include "hash/seen_set.h"

enum {
    LIMIT = 1 << 20,
    TOPICS = 3
};

#define WINDOW ((uint64_t)1000)

static struct seen_set *set;

static int start(void **state)
{
    (void)state;
    return seen_set_create(&set, LIMIT, WINDOW) == STATUS_OK ? 0 : -1;
}

static int stop(void **state)
{
    (void)state;
    seen_set_destroy(&set);
    assert_null(set);
    return 0;
}

struct message {
    uint32_t topic;
    uint8_t id[SHA256_BYTES];
    uint64_t key;
};

/* A message whose id and key are as good as random but always the same for a number. */
static struct message message_number(uint64_t number)
{
    struct message message = {.topic = (uint32_t)(number % TOPICS)};
    uint64_t mixed = (number + 1) * 0x9e3779b97f4a7c15;
    for (size_t i = 0; i < SHA256_BYTES; i++) {
        mixed = (mixed ^ (mixed >> 29)) * 0xbf58476d1ce4e5b9;
        message.id[i] = (uint8_t)(mixed >> 56);
    }
    message.key = mixed ^ (mixed >> 31);
    return message;
}

static void insert(const struct message *message, uint64_t now)
{
    enum status status = seen_set_insert(set, message->topic, message->id, message->key, now);
    assert_int_equal(status, STATUS_OK);
}

static void assert_seen(uint64_t number, bool is_seen)
{
    struct message message = message_number(number);
    const uint8_t *id = seen_set_find_fast(set, message.topic, message.key);
    assert_int_equal(id != NULL, is_seen);
    if (is_seen) {
        assert_memory_equal(id, message.id, SHA256_BYTES);
    }
    assert_int_equal(seen_set_contains(set, message.topic, message.id), is_seen);
}

static void insert_numbers(uint64_t from, uint64_t to, uint64_t now)
{
    for (uint64_t i = from; i < to; i++) {
        struct message message = message_number(i);
        insert(&message, now);
    }
}

static void expire_all(uint64_t now)
{
    while (seen_set_expire(set, now)) {
    }
}

static uint64_t evicted_before;

static uint64_t evicted(void)
{
    return metrics_sum(NULL, METRIC_SEEN_EVICTED) - evicted_before;
}

static void finds_by_key_and_by_id_what_was_inserted_and_nothing_else(void **state)
{
    (void)state;
    insert_numbers(0, 5000, 1);
    for (uint64_t i = 0; i < 10000; i++) {
        assert_seen(i, i < 5000);
    }
    assert_int_equal(seen_set_count(set), 5000);
}

static void takes_the_same_id_on_two_topics_for_two_messages(void **state)
{
    (void)state;
    struct message message = message_number(0);
    insert(&message, 1);
    assert_false(seen_set_contains(set, message.topic + 1, message.id));
    assert_null(seen_set_find_fast(set, message.topic + 1, message.key));
    message.topic++;
    insert(&message, 1);
    assert_true(seen_set_contains(set, message.topic, message.id));
    assert_true(seen_set_contains(set, message.topic - 1, message.id));
}

static void keeps_messages_apart_that_share_a_key(void **state)
{
    (void)state;
    struct message a = message_number(0);
    struct message b = message_number(3);
    b.key = a.key;
    insert(&a, 1);
    insert(&b, 2);
    assert_true(seen_set_contains(set, a.topic, a.id));
    assert_true(seen_set_contains(set, b.topic, b.id));
    expire_all(1 + WINDOW);
    assert_false(seen_set_contains(set, a.topic, a.id));
    assert_memory_equal(seen_set_find_fast(set, b.topic, b.key), b.id, SHA256_BYTES);
}

/* Keys that differ in their lower half only, so that the index takes all of them for candidates. */
static uint64_t crowded_key(uint64_t number)
{
    return (uint64_t)0xffffffff << 32 | number;
}

static void assert_crowded(uint64_t number, bool is_seen)
{
    struct message message = message_number(number * TOPICS);
    const uint8_t *id = seen_set_find_fast(set, 0, crowded_key(number));
    assert_int_equal(id != NULL, is_seen);
    if (is_seen) {
        assert_memory_equal(id, message.id, SHA256_BYTES);
    }
}

static void tells_apart_keys_that_share_their_upper_half(void **state)
{
    (void)state;
    for (uint64_t i = 0; i < 40; i++) {
        struct message message = message_number(i * TOPICS);
        message.key = crowded_key(i);
        insert(&message, i);
    }
    for (uint64_t gone = 0; gone < 40; gone++) {
        expire_all(gone + WINDOW);
        for (uint64_t i = 0; i < 40; i++) {
            assert_crowded(i, i > gone);
        }
    }
}

static void forgets_a_message_when_its_window_has_passed(void **state)
{
    (void)state;
    insert_numbers(0, 1000, 10);
    insert_numbers(1000, 2000, 20);
    expire_all(10 + WINDOW - 1);
    assert_int_equal(seen_set_count(set), 2000);
    expire_all(10 + WINDOW);
    for (uint64_t i = 0; i < 2000; i++) {
        assert_seen(i, i >= 1000);
    }
    expire_all(20 + WINDOW);
    assert_int_equal(seen_set_count(set), 0);
}

static void keeps_a_renewed_message_for_another_window(void **state)
{
    (void)state;
    insert_numbers(0, 2000, 10);
    for (uint64_t i = 0; i < 2000; i += 2) {
        struct message message = message_number(i);
        seen_set_renew(set, message.topic, message.key);
    }
    struct message unknown = message_number(9999);
    seen_set_renew(set, unknown.topic, unknown.key);
    expire_all(10 + WINDOW);
    for (uint64_t i = 0; i < 2000; i++) {
        assert_seen(i, i % 2 == 0);
    }
    expire_all(10 + 2 * WINDOW - 1);
    assert_int_equal(seen_set_count(set), 1000);
    expire_all(10 + 2 * WINDOW);
    assert_int_equal(seen_set_count(set), 0);
}

/* Copies come at the distances of field report B3; what the set does not know is accepted. */
static void accepts_a_repeated_message_at_most_once_a_window(void **state)
{
    (void)state;
    static const uint64_t distances[] = {1, WINDOW - 1, WINDOW + 1, 1, 1, WINDOW / 2, WINDOW - 1,
            WINDOW + 1, 3 * WINDOW, 1, 30 * WINDOW, 1};
    struct message message = message_number(0);
    uint64_t now = 5;
    uint64_t accepted_at = 0;
    size_t accepted = 0;
    for (size_t i = 0; i < sizeof(distances) / sizeof(distances[0]); i++) {
        expire_all(now);
        if (seen_set_find_fast(set, message.topic, message.key) != NULL) {
            seen_set_renew(set, message.topic, message.key);
        } else {
            assert_true(accepted == 0 || now - accepted_at >= WINDOW);
            insert(&message, now);
            accepted_at = now;
            accepted++;
        }
        now += distances[i];
    }
    assert_int_equal(accepted, 3);
}

static void never_accepts_again_what_is_repeated_within_every_window(void **state)
{
    (void)state;
    struct message message = message_number(0);
    insert(&message, 0);
    for (uint64_t now = WINDOW / 2; now < 50 * WINDOW; now += WINDOW / 2) {
        expire_all(now);
        assert_non_null(seen_set_find_fast(set, message.topic, message.key));
        seen_set_renew(set, message.topic, message.key);
    }
    assert_int_equal(seen_set_count(set), 1);
}

static void expires_in_steps(void **state)
{
    (void)state;
    size_t count = 2 * SEEN_SET_EXPIRE_STEP + SEEN_SET_EXPIRE_STEP / 2;
    insert_numbers(0, count, 0);
    assert_true(seen_set_expire(set, WINDOW));
    assert_int_equal(seen_set_count(set), count - SEEN_SET_EXPIRE_STEP);
    assert_true(seen_set_expire(set, WINDOW));
    assert_false(seen_set_expire(set, WINDOW));
    assert_int_equal(seen_set_count(set), 0);
}

static void gives_up_the_oldest_at_the_limit_and_counts_them(void **state)
{
    (void)state;
    size_t capacity = seen_set_capacity(set);
    insert_numbers(0, capacity, 0);
    assert_int_equal(evicted(), 0);
    for (uint64_t i = capacity; i < 3 * capacity; i++) {
        insert_numbers(i, i + 1, 0);
        assert_true(seen_set_bytes(set) <= LIMIT);
    }
    assert_int_equal(evicted(), 2 * capacity);
    assert_int_equal(seen_set_count(set), capacity);
    for (uint64_t i = 0; i < 3 * capacity; i++) {
        assert_seen(i, i >= 2 * capacity);
    }
}

static void needs_about_100_bytes_an_entry_at_any_limit(void **state)
{
    (void)state;
    for (size_t limit = (size_t)2 << 20; limit < (size_t)100 << 20; limit += limit / 7) {
        struct seen_set *other = NULL;
        assert_int_equal(seen_set_create(&other, limit, WINDOW), STATUS_OK);
        assert_true(limit / seen_set_capacity(other) <= 107);
        seen_set_destroy(&other);
    }
}

/* With indexes large enough to be mapped by themselves. */
static void takes_memory_as_messages_come(void **state)
{
    (void)state;
    enum {
        COUNT = 250000
    };
    seen_set_destroy(&set);
    assert_int_equal(seen_set_create(&set, (size_t)64 << 20, WINDOW), STATUS_OK);
    assert_true(seen_set_bytes(set) < (size_t)64 << 10);
    insert_numbers(0, COUNT, 0);
    assert_true(seen_set_bytes(set) < (size_t)32 << 20);
    assert_int_equal(seen_set_count(set), COUNT);
    for (uint64_t i = 0; i < COUNT; i++) {
        assert_seen(i, true);
    }
    expire_all(WINDOW);
    for (uint64_t i = 0; i < COUNT; i++) {
        assert_seen(i, false);
    }
}

static void works_at_the_least_limit(void **state)
{
    (void)state;
    seen_set_destroy(&set);
    assert_int_equal(seen_set_create(&set, SEEN_SET_MIN_LIMIT_BYTES, WINDOW), STATUS_OK);
    for (uint64_t i = 0; i < 10000; i++) {
        struct message message = message_number(i);
        insert(&message, i);
        seen_set_renew(set, message.topic, message.key);
        expire_all(i);
        assert_seen(i, true);
    }
    assert_true(seen_set_bytes(set) <= SEEN_SET_MIN_LIMIT_BYTES);
}

/* What must be known of a message by the rules of the header. */
struct expectation {
    uint64_t queued; /* 0: not in the set */
    bool is_renewed;
};

static void expect_time(struct expectation *expected, uint64_t now)
{
    while (expected->queued != 0 && expected->queued + WINDOW <= now) {
        expected->queued = expected->is_renewed ? expected->queued + WINDOW : 0;
        expected->is_renewed = false;
    }
}

static void does_as_a_plain_table_under_random_operations(void **state)
{
    (void)state;
    enum {
        MESSAGES = 4000,
        STEPS = 400000
    };
    static struct expectation expected[MESSAGES];
    memset(expected, 0, sizeof(expected));
    srand(7);
    for (uint64_t now = 1; now < STEPS; now++) {
        uint64_t number = (uint64_t)rand() % MESSAGES;
        struct message message = message_number(number);
        assert_false(seen_set_expire(set, now));
        expect_time(&expected[number], now);
        assert_seen(number, expected[number].queued != 0);
        if (expected[number].queued == 0) {
            insert(&message, now);
            expected[number].queued = now;
        } else if (rand() % 2 == 0) {
            seen_set_renew(set, message.topic, message.key);
            expected[number].is_renewed = true;
        }
    }
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, start, stop)
    const struct CMUnitTest tests[] = {
            TEST(finds_by_key_and_by_id_what_was_inserted_and_nothing_else),
            TEST(takes_the_same_id_on_two_topics_for_two_messages),
            TEST(keeps_messages_apart_that_share_a_key),
            TEST(tells_apart_keys_that_share_their_upper_half),
            TEST(forgets_a_message_when_its_window_has_passed),
            TEST(keeps_a_renewed_message_for_another_window),
            TEST(accepts_a_repeated_message_at_most_once_a_window),
            TEST(never_accepts_again_what_is_repeated_within_every_window),
            TEST(expires_in_steps),
            TEST(gives_up_the_oldest_at_the_limit_and_counts_them),
            TEST(needs_about_100_bytes_an_entry_at_any_limit),
            TEST(takes_memory_as_messages_come),
            TEST(works_at_the_least_limit),
            TEST(does_as_a_plain_table_under_random_operations),
    };
    evicted_before = metrics_sum(NULL, METRIC_SEEN_EVICTED);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
