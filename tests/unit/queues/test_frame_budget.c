/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/metrics.h"
#include "queues/frame_budget.h"

static struct frame_budget *budget_of(size_t limit, size_t reserve)
{
    struct frame_budget *budget = NULL;
    assert_int_equal(frame_budget_create(&budget, limit, reserve), STATUS_OK);
    return budget;
}

static void refuses_a_reserve_that_leaves_nothing(void **state)
{
    (void)state;
    struct frame_budget *budget = NULL;
    assert_int_equal(frame_budget_create(&budget, 100, 100), STATUS_BAD_ARGUMENT);
    assert_int_equal(frame_budget_create(&budget, SIZE_MAX, 0), STATUS_BAD_ARGUMENT);
    assert_null(budget);
}

static void charges_up_to_the_limit_and_not_a_byte_more(void **state)
{
    (void)state;
    struct frame_budget *budget = budget_of(100, 20);
    uint64_t refusals = metrics_sum(NULL, METRIC_FRAMES_WITHOUT_CREDIT);
    assert_true(frame_budget_try_charge(budget, FRAME_BUDGET_COMPLETE, 60));
    assert_false(frame_budget_try_charge(budget, FRAME_BUDGET_COMPLETE, 41));
    assert_false(frame_budget_try_charge(budget, FRAME_BUDGET_COMPLETE, SIZE_MAX));
    assert_true(frame_budget_try_charge(budget, FRAME_BUDGET_COMPLETE, 40));
    assert_int_equal(frame_budget_used(budget), 100);
    assert_int_equal(metrics_sum(NULL, METRIC_FRAMES_WITHOUT_CREDIT) - refusals, 2);
    frame_budget_release(budget, 100);
    assert_int_equal(frame_budget_used(budget), 0);
    assert_int_equal(frame_budget_peak(budget), 100);
    frame_budget_destroy(&budget);
    assert_null(budget);
}

static void keeps_the_reserve_from_partial_frames(void **state)
{
    (void)state;
    struct frame_budget *budget = budget_of(100, 20);
    assert_false(frame_budget_try_charge(budget, FRAME_BUDGET_PARTIAL, 81));
    assert_true(frame_budget_try_charge(budget, FRAME_BUDGET_PARTIAL, 80));
    assert_false(frame_budget_try_charge(budget, FRAME_BUDGET_PARTIAL, 1));
    assert_true(frame_budget_try_charge(budget, FRAME_BUDGET_COMPLETE, 20));
    assert_false(frame_budget_try_charge(budget, FRAME_BUDGET_PARTIAL, 1));
    frame_budget_release(budget, 100);
    frame_budget_destroy(&budget);
}

/* Whether a release of bytes wakes a sleeper. */
static bool wakes_on_release(struct frame_budget *budget, struct parking *parking, size_t bytes)
{
    uint32_t ticket = parking_prepare(parking);
    frame_budget_release(budget, bytes);
    return parking_wait(parking, ticket, 0);
}

static void wakes_the_refused_once_the_charge_falls_below_low_water(void **state)
{
    (void)state;
    struct frame_budget *budget = budget_of(100, 20);
    struct parking parking;
    parking_init(&parking);
    assert_int_equal(frame_budget_add_waiter(budget, &parking), STATUS_OK);
    assert_true(frame_budget_try_charge(budget, FRAME_BUDGET_PARTIAL, 80));
    assert_false(frame_budget_try_charge(budget, FRAME_BUDGET_PARTIAL, 10));
    assert_false(wakes_on_release(budget, &parking, 20)); /* 60 is three quarters of 80 */
    assert_true(wakes_on_release(budget, &parking, 1));
    assert_false(wakes_on_release(budget, &parking, 1)); /* nobody was refused since */
    frame_budget_release(budget, 58);
    frame_budget_destroy(&budget);
}

static void wakes_one_who_was_refused_below_low_water(void **state)
{
    (void)state;
    struct frame_budget *budget = budget_of(100, 0);
    struct parking parking;
    parking_init(&parking);
    assert_int_equal(frame_budget_add_waiter(budget, &parking), STATUS_OK);
    assert_true(frame_budget_try_charge(budget, FRAME_BUDGET_COMPLETE, 50));
    assert_false(frame_budget_try_charge(budget, FRAME_BUDGET_COMPLETE, 90));
    assert_true(wakes_on_release(budget, &parking, 50));
    frame_budget_destroy(&budget);
}

static void takes_64_waiters(void **state)
{
    (void)state;
    struct frame_budget *budget = budget_of(100, 0);
    struct parking parking;
    parking_init(&parking);
    for (int i = 0; i < 64; i++) {
        assert_int_equal(frame_budget_add_waiter(budget, &parking), STATUS_OK);
    }
    assert_int_equal(frame_budget_add_waiter(budget, &parking), STATUS_LIMIT_REACHED);
    frame_budget_destroy(&budget);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(refuses_a_reserve_that_leaves_nothing),
            cmocka_unit_test(charges_up_to_the_limit_and_not_a_byte_more),
            cmocka_unit_test(keeps_the_reserve_from_partial_frames),
            cmocka_unit_test(wakes_the_refused_once_the_charge_falls_below_low_water),
            cmocka_unit_test(wakes_one_who_was_refused_below_low_water),
            cmocka_unit_test(takes_64_waiters),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
