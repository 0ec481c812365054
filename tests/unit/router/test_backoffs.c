/* SPDX-License-Identifier: MIT */
#include "router/backoffs.h"

#include "base/clock.h"
#include "tests/support/cmocka.h"

enum {
    ALICE = 1
};

static void ends_within_the_millisecond_that_follows_and_not_before(void **state)
{
    static const uint64_t ends_ns[] = {1, 999999, 1000000, 61 * UINT64_C(1000000000) + 1};
    (void)state;
    for (size_t i = 0; i < sizeof(ends_ns) / sizeof(ends_ns[0]); i++) {
        struct backoffs backoffs = {.until_ms = {.count = 0}};
        assert_int_equal(backoffs_until(&backoffs, ALICE), 0);
        backoffs_add(&backoffs, ALICE, ends_ns[i]);
        uint64_t until_ns = backoffs_until(&backoffs, ALICE);
        assert_true(until_ns >= ends_ns[i]);
        assert_true(until_ns <= ends_ns[i] + NANOSECONDS_PER_MILLISECOND);
        backoffs_fini(&backoffs);
    }
}

/* One more is not noted, but those that are there may become longer. */
static void keeps_so_many_and_lets_go_of_all_that_are_over(void **state)
{
    const uint64_t second = NANOSECONDS_PER_SECOND;
    struct backoffs backoffs = {.until_ms = {.count = 0}};
    (void)state;
    for (uint64_t peer = 1; peer <= BACKOFFS_MAX; peer++) {
        backoffs_add(&backoffs, peer, second);
    }
    backoffs_add(&backoffs, BACKOFFS_MAX + 1, second);
    assert_int_equal(backoffs_until(&backoffs, BACKOFFS_MAX + 1), 0);
    backoffs_add(&backoffs, ALICE, 9 * second);
    backoffs_add(&backoffs, ALICE, 3 * second);
    assert_true(backoffs_until(&backoffs, ALICE) >= 9 * second);
    backoffs_expire(&backoffs, 2 * second);
    assert_int_equal(backoffs.until_ms.count, 1);
    backoffs_add(&backoffs, BACKOFFS_MAX + 1, 3 * second);
    assert_true(backoffs_until(&backoffs, BACKOFFS_MAX + 1) >= 3 * second);
    backoffs_fini(&backoffs);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(ends_within_the_millisecond_that_follows_and_not_before),
            cmocka_unit_test(keeps_so_many_and_lets_go_of_all_that_are_over),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
