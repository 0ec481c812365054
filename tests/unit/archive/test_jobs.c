/* SPDX-License-Identifier: MIT */
#include "tests/support/cmocka.h"

#include "archive/archive_jobs.h"

enum {
    GREEDY = 7,
    MODEST = 8,
    FRUGAL = 9
};

static struct archive_jobs *make_queue(size_t takers)
{
    struct archive_jobs *jobs = NULL;
    assert_int_equal(archive_jobs_create(&jobs, takers), STATUS_OK);
    return jobs;
}

static void post(struct archive_jobs *jobs, struct archive_job *job, uint64_t origin)
{
    *job = (struct archive_job){.origin = origin};
    archive_jobs_post(jobs, job);
}

/* Nothing else may be there. */
static void finish(struct archive_jobs *jobs, size_t takers)
{
    for (size_t i = 0; i < takers; i++) {
        assert_null(archive_jobs_try_take(jobs, i));
    }
    assert_int_equal(archive_jobs_depth_estimate(jobs), 0);
    archive_jobs_destroy(&jobs);
}

static void origins_take_turns_whoever_asks_how_much(void **state)
{
    (void)state;
    struct archive_jobs *jobs = make_queue(1);
    struct archive_job greedy[3];
    struct archive_job modest[2];
    struct archive_job own;
    for (size_t i = 0; i < 3; i++) {
        post(jobs, &greedy[i], GREEDY);
    }
    post(jobs, &modest[0], MODEST);
    post(jobs, &own, ARCHIVE_JOB_OWN);
    post(jobs, &modest[1], MODEST);
    assert_int_equal(archive_jobs_depth_estimate(jobs), 6);
    const struct archive_job *order[] = {
            &greedy[0], &modest[0], &own, &greedy[1], &modest[1], &greedy[2]};
    for (size_t i = 0; i < 6; i++) {
        assert_ptr_equal(archive_jobs_try_take(jobs, 0), order[i]);
        archive_jobs_done(jobs, 0);
    }
    assert_int_equal(archive_jobs_high_water(jobs), 6);
    finish(jobs, 1);
}

static void one_taker_is_left_to_the_others(void **state)
{
    (void)state;
    struct archive_jobs *jobs = make_queue(3);
    struct archive_job greedy[3];
    struct archive_job modest;
    for (size_t i = 0; i < 3; i++) {
        post(jobs, &greedy[i], GREEDY);
    }
    assert_ptr_equal(archive_jobs_try_take(jobs, 0), &greedy[0]);
    assert_ptr_equal(archive_jobs_try_take(jobs, 1), &greedy[1]);
    assert_null(archive_jobs_try_take(jobs, 2));
    assert_false(archive_jobs_has_work(jobs, 2));
    post(jobs, &modest, MODEST);
    assert_true(archive_jobs_has_work(jobs, 2));
    assert_ptr_equal(archive_jobs_try_take(jobs, 2), &modest);
    archive_jobs_done(jobs, 2);
    archive_jobs_done(jobs, 0);
    assert_true(archive_jobs_has_work(jobs, 2));
    assert_ptr_equal(archive_jobs_try_take(jobs, 2), &greedy[2]);
    archive_jobs_done(jobs, 2);
    archive_jobs_done(jobs, 1);
    finish(jobs, 3);
}

static void an_origin_that_has_all_it_may_have_keeps_its_turn(void **state)
{
    (void)state;
    struct archive_jobs *jobs = make_queue(2);
    struct archive_job greedy[2];
    struct archive_job modest;
    struct archive_job frugal;
    post(jobs, &greedy[0], GREEDY);
    assert_ptr_equal(archive_jobs_try_take(jobs, 0), &greedy[0]);
    post(jobs, &greedy[1], GREEDY);
    post(jobs, &modest, MODEST);
    post(jobs, &frugal, FRUGAL);
    assert_ptr_equal(archive_jobs_try_take(jobs, 1), &modest);
    archive_jobs_done(jobs, 1);
    archive_jobs_done(jobs, 0);
    assert_ptr_equal(archive_jobs_try_take(jobs, 0), &greedy[1]);
    assert_ptr_equal(archive_jobs_try_take(jobs, 1), &frugal);
    archive_jobs_done(jobs, 0);
    archive_jobs_done(jobs, 1);
    finish(jobs, 2);
}

static void the_nodes_own_questions_may_have_every_taker(void **state)
{
    (void)state;
    struct archive_jobs *jobs = make_queue(2);
    struct archive_job own[2];
    post(jobs, &own[0], ARCHIVE_JOB_OWN);
    post(jobs, &own[1], ARCHIVE_JOB_OWN);
    assert_ptr_equal(archive_jobs_try_take(jobs, 0), &own[0]);
    assert_ptr_equal(archive_jobs_try_take(jobs, 1), &own[1]);
    archive_jobs_done(jobs, 0);
    archive_jobs_done(jobs, 1);
    finish(jobs, 2);
}

/* What a taker does before it sleeps. */
static uint32_t lie_down(struct archive_jobs *jobs, size_t taker)
{
    uint32_t ticket = parking_prepare(archive_jobs_parking(jobs, taker));
    assert_false(archive_jobs_has_work(jobs, taker));
    return ticket;
}

static bool is_woken(struct archive_jobs *jobs, size_t taker, uint32_t ticket)
{
    return parking_wait(archive_jobs_parking(jobs, taker), ticket, 0);
}

static void a_job_wakes_one_taker_of_those_that_sleep(void **state)
{
    (void)state;
    struct archive_jobs *jobs = make_queue(2);
    struct archive_job greedy;
    struct archive_job modest;
    uint32_t first = lie_down(jobs, 0);
    uint32_t second = lie_down(jobs, 1);
    post(jobs, &greedy, GREEDY);
    assert_true(is_woken(jobs, 0, first));
    assert_false(is_woken(jobs, 1, second));
    second = parking_prepare(archive_jobs_parking(jobs, 1));
    post(jobs, &modest, MODEST); /* the first has not come to take anything yet */
    assert_true(is_woken(jobs, 1, second));
    assert_ptr_equal(archive_jobs_try_take(jobs, 0), &greedy);
    assert_ptr_equal(archive_jobs_try_take(jobs, 1), &modest);
    archive_jobs_done(jobs, 0);
    archive_jobs_done(jobs, 1);
    finish(jobs, 2);
}

/* One job runs, two wait for a taker that was woken for the first of them. */
static void who_takes_wakes_the_next_while_there_is_more(void **state)
{
    (void)state;
    struct archive_jobs *jobs = make_queue(2);
    struct archive_job greedy;
    struct archive_job modest;
    post(jobs, &greedy, GREEDY);
    post(jobs, &modest, MODEST);
    assert_true(
            archive_jobs_has_work(jobs, 1)); /* it is about to sleep, and is slow to think again */
    uint32_t ticket = parking_prepare(archive_jobs_parking(jobs, 1));
    assert_ptr_equal(archive_jobs_try_take(jobs, 0), &greedy);
    assert_true(is_woken(jobs, 1, ticket));
    assert_ptr_equal(archive_jobs_try_take(jobs, 1), &modest);
    archive_jobs_done(jobs, 0);
    archive_jobs_done(jobs, 1);
    finish(jobs, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(origins_take_turns_whoever_asks_how_much),
            cmocka_unit_test(one_taker_is_left_to_the_others),
            cmocka_unit_test(an_origin_that_has_all_it_may_have_keeps_its_turn),
            cmocka_unit_test(the_nodes_own_questions_may_have_every_taker),
            cmocka_unit_test(a_job_wakes_one_taker_of_those_that_sleep),
            cmocka_unit_test(who_takes_wakes_the_next_while_there_is_more),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
