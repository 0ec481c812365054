/* SPDX-License-Identifier: MIT */
#include "queues/progress.h"

#include "tests/stress/queues/stress.h"
#include "tests/support/cmocka.h"

/*
 * Who sees that a stage has finished a message sees what the stage made of it: plain data, so that
 * a sanitizer notices when the count does not carry it along.
 */

enum {
    STAGES = 2,
    WAITERS = 2
};

struct course {
    struct progress progress;
    uint64_t count;
    uint64_t *made[STAGES]; /* plain: written by the stage, then read by the waiter */
    bool sleeps;            /* the waiter does, instead of looking again and again */
};

struct stage {
    struct course *course;
    size_t number;
    size_t slot;
};

static void *finish_messages(void *argument)
{
    struct stage *stage = argument;
    struct course *course = stage->course;
    uint64_t seed = 77 + stage->number;
    for (uint64_t done = 0; done < course->count;) {
        uint64_t batch = 1 + random_next(&seed) % 7;
        batch = batch < course->count - done ? batch : course->count - done;
        for (uint64_t i = 0; i < batch; i++) {
            course->made[stage->number][done + i] = done + i + stage->number;
        }
        done += batch;
        progress_add(&course->progress, stage->slot, batch);
        if (course->sleeps) {
            progress_wake(&course->progress);
        } else if (one_in(&seed, 16)) {
            sched_yield();
        }
    }
    return NULL;
}

static void sleep_until(struct progress *progress, uint64_t wanted)
{
    while (progress_finished(progress) < wanted) {
        CHECK(progress_wait(progress, wanted, LOST_WAKE_NS));
    }
}

static void check_made(const struct course *course, uint64_t number)
{
    for (size_t i = 0; i < STAGES; i++) {
        CHECK(course->made[i][number] == number + i);
    }
}

static void *read_finished(void *argument)
{
    struct course *course = argument;
    uint64_t seed = 1 + (uint64_t)pthread_self();
    uint64_t read = 0;
    while (read < course->count) {
        if (course->sleeps) {
            uint64_t wanted = read + 1 + random_next(&seed) % 20;
            sleep_until(&course->progress, wanted < course->count ? wanted : course->count);
        }
        uint64_t finished = progress_finished(&course->progress);
        CHECK(finished >= read && finished <= course->count);
        if (finished == read) {
            sched_yield();
        }
        for (; read < finished; read++) {
            check_made(course, read);
        }
    }
    return NULL;
}

static void run(bool sleeps)
{
    static struct course course;
    struct stage stages[STAGES];
    pthread_t threads[STAGES];
    pthread_t waiters[WAITERS];
    course.sleeps = sleeps;
    course.count = rounds(200000);
    progress_init(&course.progress);
    for (size_t i = 0; i < STAGES; i++) {
        course.made[i] = calloc(course.count, sizeof(uint64_t));
        CHECK(course.made[i] != NULL);
        size_t number = progress_add_stage(&course.progress);
        stages[i] = (struct stage){&course, i, progress_add_slot(&course.progress, number)};
    }
    for (size_t i = 0; i < WAITERS; i++) {
        start_thread(&waiters[i], read_finished, &course);
    }
    for (size_t i = 0; i < STAGES; i++) {
        start_thread(&threads[i], finish_messages, &stages[i]);
    }
    for (size_t i = 0; i < WAITERS; i++) {
        join_thread(waiters[i]);
    }
    for (size_t i = 0; i < STAGES; i++) {
        join_thread(threads[i]);
        free(course.made[i]);
    }
    assert_true(progress_finished(&course.progress) == course.count);
}

static void who_sees_the_count_sees_what_was_made_before_it(void **state)
{
    (void)state;
    run(false);
}

static void who_sleeps_for_the_count_is_woken_and_sees_it_too(void **state)
{
    (void)state;
    run(true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(who_sees_the_count_sees_what_was_made_before_it),
            cmocka_unit_test(who_sleeps_for_the_count_is_woken_and_sees_it_too),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
