/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "hash/refusal_cache.h"

enum {
    ENTRIES = 64,
    WINDOW = 1000
};

static struct refusal_cache *cache;

static int start(void **state)
{
    (void)state;
    return refusal_cache_create(&cache, ENTRIES, WINDOW) == STATUS_OK ? 0 : -1;
}

static int stop(void **state)
{
    (void)state;
    refusal_cache_destroy(&cache);
    assert_null(cache);
    return 0;
}

static struct wide_key key_of(uint64_t bucket, uint64_t number)
{
    return (struct wide_key){.low = bucket, .high = number};
}

static void knows_nothing_before_anything_was_refused(void **state)
{
    (void)state;
    assert_int_equal(refusal_cache_find(cache, key_of(0, 0), 0), 0);
    assert_int_equal(refusal_cache_find(cache, key_of(5, 9), 1), 0);
}

static void keeps_the_first_reason(void **state)
{
    (void)state;
    refusal_cache_insert(cache, key_of(1, 1), 7, 100);
    refusal_cache_insert(cache, key_of(1, 1), 8, 200);
    assert_int_equal(refusal_cache_find(cache, key_of(1, 1), 300), 7);
    assert_int_equal(refusal_cache_find(cache, key_of(1, 2), 300), 0);
}

static void forgets_when_the_window_from_the_first_refusal_has_passed(void **state)
{
    (void)state;
    refusal_cache_insert(cache, key_of(1, 1), 7, 100);
    refusal_cache_insert(cache, key_of(1, 1), 8, 900);
    assert_int_equal(refusal_cache_find(cache, key_of(1, 1), 100 + WINDOW - 1), 7);
    assert_int_equal(refusal_cache_find(cache, key_of(1, 1), 100 + WINDOW), 0);
    refusal_cache_insert(cache, key_of(1, 1), 8, 100 + WINDOW);
    assert_int_equal(refusal_cache_find(cache, key_of(1, 1), 100 + WINDOW), 8);
}

static void gives_up_the_oldest_of_a_full_bucket(void **state)
{
    (void)state;
    for (uint32_t i = 1; i <= 5; i++) {
        refusal_cache_insert(cache, key_of(3, i), i, 10 * (uint64_t)i);
    }
    assert_int_equal(refusal_cache_find(cache, key_of(3, 1), 60), 0);
    for (uint32_t i = 2; i <= 5; i++) {
        assert_int_equal(refusal_cache_find(cache, key_of(3, i), 60), i);
    }
}

static void never_grows_whatever_is_refused(void **state)
{
    (void)state;
    size_t held = 0;
    for (uint32_t i = 0; i < 10000; i++) {
        refusal_cache_insert(cache, key_of(i, i), 1, i);
    }
    for (uint32_t i = 0; i < 10000; i++) {
        held += refusal_cache_find(cache, key_of(i, i), 9999);
    }
    assert_int_equal(held, ENTRIES);
}

static void looks_at_both_halves_of_a_key(void **state)
{
    (void)state;
    uint64_t beside = 3 + ENTRIES; /* in the same bucket */
    for (uint32_t i = 1; i <= 4; i++) {
        refusal_cache_insert(cache, key_of(3 + (i - 1) * (uint64_t)ENTRIES * 8, 9), i, 10);
    }
    for (uint32_t i = 1; i <= 4; i++) {
        uint64_t low = 3 + (i - 1) * (uint64_t)ENTRIES * 8;
        assert_true(refusal_cache_may_have(cache, low, 11));
        assert_int_equal(refusal_cache_find(cache, key_of(low, 9), 11), i);
    }
    assert_false(refusal_cache_may_have(cache, beside, 11));
    assert_int_equal(refusal_cache_find(cache, key_of(beside, 9), 11), 0);
    assert_false(refusal_cache_may_have(cache, 0, 11));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, start, stop)
    const struct CMUnitTest tests[] = {
            TEST(knows_nothing_before_anything_was_refused),
            TEST(keeps_the_first_reason),
            TEST(forgets_when_the_window_from_the_first_refusal_has_passed),
            TEST(gives_up_the_oldest_of_a_full_bucket),
            TEST(never_grows_whatever_is_refused),
            TEST(looks_at_both_halves_of_a_key),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
