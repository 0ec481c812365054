/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/clock.h"
#include "queues/parking.h"

static void wakes_at_once_when_woken_between_prepare_and_wait(void **state)
{
    (void)state;
    struct parking parking;
    parking_init(&parking);
    uint32_t ticket = parking_prepare(&parking);
    parking_wake(&parking);
    assert_true(parking_wait(&parking, ticket, UINT64_MAX));
}

static void times_out_when_nobody_wakes(void **state)
{
    (void)state;
    struct parking parking;
    parking_init(&parking);
    uint32_t ticket = parking_prepare(&parking);
    assert_false(parking_wait(&parking, ticket, NANOSECONDS_PER_MICROSECOND));
}

static void does_not_count_a_wake_from_before_prepare(void **state)
{
    (void)state;
    struct parking parking;
    parking_init(&parking);
    parking_wake(&parking);
    uint32_t ticket = parking_prepare(&parking);
    assert_false(parking_wait(&parking, ticket, 0));
}

static void one_wake_reaches_every_sleeper(void **state)
{
    (void)state;
    struct parking parking;
    parking_init(&parking);
    uint32_t first = parking_prepare(&parking);
    uint32_t second = parking_prepare(&parking);
    parking_wake(&parking);
    assert_true(parking_wait(&parking, first, UINT64_MAX));
    assert_true(parking_wait(&parking, second, UINT64_MAX));
}

static void a_cancel_keeps_the_wake_of_another_sleeper(void **state)
{
    (void)state;
    struct parking parking;
    parking_init(&parking);
    uint32_t stays = parking_prepare(&parking);
    uint32_t leaves = parking_prepare(&parking);
    parking_cancel(&parking, leaves);
    parking_wake(&parking);
    assert_true(parking_wait(&parking, stays, UINT64_MAX));
}

static void a_cancel_after_a_wake_keeps_the_wake_of_a_later_sleeper(void **state)
{
    (void)state;
    struct parking parking;
    parking_init(&parking);
    uint32_t woken = parking_prepare(&parking);
    parking_wake(&parking);
    uint32_t later = parking_prepare(&parking);
    parking_cancel(&parking, woken);
    parking_wake(&parking);
    assert_true(parking_wait(&parking, later, UINT64_MAX));
}

static void a_wake_without_sleepers_changes_nothing(void **state)
{
    (void)state;
    struct parking parking;
    parking_init(&parking);
    uint32_t before = parking_prepare(&parking);
    parking_cancel(&parking, before);
    parking_wake(&parking);
    uint32_t after = parking_prepare(&parking);
    parking_cancel(&parking, after);
    assert_int_equal(before, after);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(wakes_at_once_when_woken_between_prepare_and_wait),
            cmocka_unit_test(times_out_when_nobody_wakes),
            cmocka_unit_test(does_not_count_a_wake_from_before_prepare),
            cmocka_unit_test(one_wake_reaches_every_sleeper),
            cmocka_unit_test(a_cancel_keeps_the_wake_of_another_sleeper),
            cmocka_unit_test(a_cancel_after_a_wake_keeps_the_wake_of_a_later_sleeper),
            cmocka_unit_test(a_wake_without_sleepers_changes_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
