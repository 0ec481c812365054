/* SPDX-License-Identifier: MIT */

/*
 * Posters and takers that sleep when there is nothing: every job runs once, those of one origin are
 * taken in the order in which its poster posted them, an origin never has more takers than it may have,
 * and no wake is lost.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "archive/archive_jobs.h"
#include "tests/stress/queues/stress.h"

enum {
    POSTERS = 3,
    ORIGINS = 3, /* of each poster */
    TAKERS_MAX = 4
};

struct origin {
    atomic_uint running;
    _Atomic uint64_t taken;
    uint64_t posted; /* its poster's */
};

struct job {
    struct archive_job base;
    struct origin *origin;
    uint64_t number;
};

struct shared {
    struct archive_jobs *jobs;
    size_t takers;
    uint64_t count; /* of each poster */
    _Atomic uint64_t done;
    struct origin origins[POSTERS][ORIGINS];
};

struct thread {
    struct shared *shared;
    size_t index;
    pthread_t thread;
};

static void *post_all(void *argument)
{
    struct thread *poster = argument;
    struct shared *shared = poster->shared;
    uint64_t seed = poster->index + 1;
    for (uint64_t i = 0; i < shared->count; i++) {
        size_t which = random_next(&seed) % ORIGINS;
        struct job *job = malloc(sizeof(*job));
        CHECK(job != NULL);
        job->origin = &shared->origins[poster->index][which];
        job->number = job->origin->posted++;
        job->base.origin = 1 + poster->index * ORIGINS + which;
        archive_jobs_post(shared->jobs, &job->base);
        if (one_in(&seed, 512)) {
            sched_yield();
        }
        /* Now and then all takers get to sleep. */
        bool waits = one_in(&seed, 2048);
        while (waits && archive_jobs_depth_estimate(shared->jobs) > 0) {
            sched_yield();
        }
    }
    return NULL;
}

static void carry_out(struct shared *shared, struct job *job, uint64_t *seed)
{
    unsigned most = shared->takers > 1 ? (unsigned)shared->takers - 1 : 1;
    CHECK(atomic_fetch_add(&job->origin->running, 1) < most);
    uint64_t before = atomic_fetch_add(&job->origin->taken, 1);
    /* Where several of an origin may be at work, one may pass another after it was taken. */
    CHECK(most > 1 || before == job->number);
    if (one_in(seed, 256)) {
        sched_yield();
    }
    atomic_fetch_sub(&job->origin->running, 1);
    free(job);
}

static bool is_over(struct shared *shared)
{
    return atomic_load(&shared->done) == shared->count * POSTERS;
}

static void sleep_until_woken(struct shared *shared, size_t taker)
{
    struct parking *parking = archive_jobs_parking(shared->jobs, taker);
    uint32_t ticket = parking_prepare(parking);
    if (archive_jobs_has_work(shared->jobs, taker) || is_over(shared)) {
        parking_cancel(parking, ticket);
        sched_yield();
    } else {
        CHECK(parking_wait(parking, ticket, LOST_WAKE_NS));
    }
}

static void *take_all(void *argument)
{
    struct thread *taker = argument;
    struct shared *shared = taker->shared;
    uint64_t seed = taker->index + 100;
    while (!is_over(shared)) {
        struct archive_job *job = archive_jobs_try_take(shared->jobs, taker->index);
        if (job == NULL) {
            sleep_until_woken(shared, taker->index);
            continue;
        }
        carry_out(shared, (struct job *)job, &seed);
        archive_jobs_done(shared->jobs, taker->index);
        atomic_fetch_add(&shared->done, 1);
    }
    for (size_t i = 0; i < shared->takers; i++) {
        parking_wake(archive_jobs_parking(shared->jobs, i));
    }
    return NULL;
}

static void run(size_t takers)
{
    struct shared shared = {.takers = takers, .count = rounds(20000)};
    struct thread posters[POSTERS];
    struct thread threads[TAKERS_MAX];
    assert_int_equal(archive_jobs_create(&shared.jobs, takers), STATUS_OK);
    for (size_t i = 0; i < takers; i++) {
        threads[i] = (struct thread){.shared = &shared, .index = i};
        start_thread(&threads[i].thread, take_all, &threads[i]);
    }
    for (size_t i = 0; i < POSTERS; i++) {
        posters[i] = (struct thread){.shared = &shared, .index = i};
        start_thread(&posters[i].thread, post_all, &posters[i]);
    }
    for (size_t i = 0; i < POSTERS; i++) {
        join_thread(posters[i].thread);
    }
    for (size_t i = 0; i < takers; i++) {
        join_thread(threads[i].thread);
    }
    assert_int_equal(archive_jobs_depth_estimate(shared.jobs), 0);
    assert_true(archive_jobs_high_water(shared.jobs) <= shared.count * POSTERS);
    archive_jobs_destroy(&shared.jobs);
}

static void one_taker_does_everything(void **state)
{
    (void)state;
    run(1);
}

static void two_takers_share_and_no_origin_has_both(void **state)
{
    (void)state;
    run(2);
}

static void four_takers_share_and_no_origin_has_all(void **state)
{
    (void)state;
    run(4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(one_taker_does_everything),
            cmocka_unit_test(two_takers_share_and_no_origin_has_both),
            cmocka_unit_test(four_takers_share_and_no_origin_has_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
