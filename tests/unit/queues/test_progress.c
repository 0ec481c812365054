/* SPDX-License-Identifier: MIT */
#include "queues/progress.h"

#include "tests/support/cmocka.h"

static void without_stages_only_the_intake_counts(void **state)
{
    struct progress progress;
    (void)state;
    progress_init(&progress);
    size_t intake = progress_add_slot(&progress, PROGRESS_INTAKE);
    assert_int_equal(progress_finished(&progress), 0);
    progress_add(&progress, intake, 3);
    assert_int_equal(progress_finished(&progress), 3);
}

static void a_message_is_finished_once_the_slowest_stage_is_done(void **state)
{
    struct progress progress;
    (void)state;
    progress_init(&progress);
    size_t fast = progress_add_slot(&progress, progress_add_stage(&progress));
    size_t slow = progress_add_slot(&progress, progress_add_stage(&progress));
    progress_add(&progress, fast, 10);
    assert_int_equal(progress_finished(&progress), 0);
    progress_add(&progress, slow, 4);
    assert_int_equal(progress_finished(&progress), 4);
}

static void slots_of_one_stage_add_up(void **state)
{
    struct progress progress;
    (void)state;
    progress_init(&progress);
    size_t stage = progress_add_stage(&progress);
    size_t other_stage = progress_add_stage(&progress);
    size_t worker = progress_add_slot(&progress, stage);
    size_t lane = progress_add_slot(&progress, stage);
    size_t other = progress_add_slot(&progress, other_stage);
    progress_add(&progress, worker, 3);
    progress_add(&progress, lane, 2);
    progress_add(&progress, other, 9);
    assert_int_equal(progress_finished(&progress), 5);
}

static void what_ends_at_intake_comes_on_top(void **state)
{
    struct progress progress;
    (void)state;
    progress_init(&progress);
    size_t intake = progress_add_slot(&progress, PROGRESS_INTAKE);
    size_t stage = progress_add_slot(&progress, progress_add_stage(&progress));
    progress_add(&progress, intake, 2);
    progress_add(&progress, stage, 5);
    assert_int_equal(progress_finished(&progress), 7);
}

static void wakes_who_waits(void **state)
{
    struct progress progress;
    (void)state;
    progress_init(&progress);
    uint32_t ticket = parking_prepare(&progress.parking);
    progress_wake(&progress);
    assert_true(parking_wait(&progress.parking, ticket, 0));
}

static void does_not_sleep_for_a_count_that_is_reached(void **state)
{
    struct progress progress;
    (void)state;
    progress_init(&progress);
    size_t slot = progress_add_slot(&progress, PROGRESS_INTAKE);
    progress_add(&progress, slot, 3);
    assert_true(progress_wait(&progress, 3, UINT64_MAX));
    assert_false(progress_wait(&progress, 4, 1));
}

static void wakes_who_waits_for_a_count_only_when_it_is_reached(void **state)
{
    struct progress progress;
    (void)state;
    progress_init(&progress);
    size_t slot = progress_add_slot(&progress, PROGRESS_INTAKE);
    assert_false(progress_wait(&progress, 3, 1));
    uint32_t ticket = parking_prepare(&progress.reached);
    progress_add(&progress, slot, 2);
    progress_wake(&progress);
    assert_false(parking_wait(&progress.reached, ticket, 1));
    ticket = parking_prepare(&progress.reached);
    progress_add(&progress, slot, 1);
    progress_wake(&progress);
    assert_true(parking_wait(&progress.reached, ticket, 0));
}

static void an_alert_wakes_all_who_wait(void **state)
{
    struct progress progress;
    (void)state;
    progress_init(&progress);
    uint32_t first = parking_prepare(&progress.parking);
    uint32_t second = parking_prepare(&progress.reached);
    progress_alert(&progress);
    assert_true(parking_wait(&progress.parking, first, 0));
    assert_true(parking_wait(&progress.reached, second, 0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(without_stages_only_the_intake_counts),
            cmocka_unit_test(a_message_is_finished_once_the_slowest_stage_is_done),
            cmocka_unit_test(slots_of_one_stage_add_up),
            cmocka_unit_test(what_ends_at_intake_comes_on_top),
            cmocka_unit_test(wakes_who_waits),
            cmocka_unit_test(does_not_sleep_for_a_count_that_is_reached),
            cmocka_unit_test(wakes_who_waits_for_a_count_only_when_it_is_reached),
            cmocka_unit_test(an_alert_wakes_all_who_wait),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
