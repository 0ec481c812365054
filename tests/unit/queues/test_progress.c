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

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(without_stages_only_the_intake_counts),
            cmocka_unit_test(a_message_is_finished_once_the_slowest_stage_is_done),
            cmocka_unit_test(slots_of_one_stage_add_up),
            cmocka_unit_test(what_ends_at_intake_comes_on_top),
            cmocka_unit_test(wakes_who_waits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
