/* SPDX-License-Identifier: MIT */
#include "workers/idle.h"

#include "tests/support/cmocka.h"

static void knows_its_four_names(void **state)
{
    static const char *const names[] = {"spin", "yield", "park", "auto"};
    static const enum idle_strategy strategies[] = {IDLE_SPIN, IDLE_YIELD, IDLE_PARK, IDLE_AUTO};
    (void)state;
    for (size_t i = 0; i < 4; i++) {
        enum idle_strategy strategy = (enum idle_strategy)99;
        assert_true(idle_strategy_parse(&strategy, names[i]));
        assert_int_equal(strategy, strategies[i]);
    }
}

static void refuses_any_other_name_and_leaves_the_result_alone(void **state)
{
    static const char *const names[] = {"", "SPIN", "spin ", "parking", "a"};
    enum idle_strategy strategy = IDLE_YIELD;
    (void)state;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        assert_false(idle_strategy_parse(&strategy, names[i]));
        assert_int_equal(strategy, IDLE_YIELD);
    }
}

static void spin_and_yield_never_sleep(void **state)
{
    (void)state;
    assert_false(idle_step(IDLE_SPIN, 0));
    assert_false(idle_step(IDLE_SPIN, UINT64_MAX));
    assert_false(idle_step(IDLE_YIELD, 0));
    assert_false(idle_step(IDLE_YIELD, UINT64_MAX));
}

static void park_sleeps_at_once(void **state)
{
    (void)state;
    assert_true(idle_step(IDLE_PARK, 0));
}

static void auto_spins_first_and_then_sleeps_for_good(void **state)
{
    uint64_t attempt = 0;
    (void)state;
    while (!idle_step(IDLE_AUTO, attempt)) {
        assert_true(attempt < 1000000);
        attempt++;
    }
    assert_true(attempt > 0);
    assert_true(idle_step(IDLE_AUTO, attempt + 1));
    assert_true(idle_step(IDLE_AUTO, UINT64_MAX));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(knows_its_four_names),
            cmocka_unit_test(refuses_any_other_name_and_leaves_the_result_alone),
            cmocka_unit_test(spin_and_yield_never_sleep),
            cmocka_unit_test(park_sleeps_at_once),
            cmocka_unit_test(auto_spins_first_and_then_sleeps_for_good),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
