/* SPDX-License-Identifier: MIT */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/clock.h"
#include "net/transport/io_loop.h"

enum {
    TASKS = 10000,
    THREADS = 3
};

struct counted_task {
    struct io_task task;
    size_t *count;
    size_t *last_of_thread;
    size_t number;
};

static void run_counted(struct io_task *task)
{
    struct counted_task *counted = (struct counted_task *)task;
    assert_int_equal(counted->number, *counted->last_of_thread + 1);
    *counted->last_of_thread = counted->number;
    (*counted->count)++;
    free(counted);
}

struct poster {
    pthread_t thread;
    struct io_loop *loop;
    size_t *count;
    size_t last;
};

static void *post_all(void *argument)
{
    struct poster *poster = argument;
    for (size_t i = 1; i <= TASKS; i++) {
        struct counted_task *task = calloc(1, sizeof(*task));
        task->task.run = run_counted;
        task->count = poster->count;
        task->last_of_thread = &poster->last;
        task->number = i;
        io_loop_post(poster->loop, &task->task);
    }
    return NULL;
}

static void tasks_of_every_thread_run_once_and_in_order(void **state)
{
    (void)state;
    struct io_loop *loop;
    struct poster posters[THREADS];
    size_t count = 0;
    assert_int_equal(io_loop_create(&loop, 0), STATUS_OK);
    for (size_t i = 0; i < THREADS; i++) {
        posters[i] = (struct poster){.loop = loop, .count = &count};
        assert_int_equal(pthread_create(&posters[i].thread, NULL, post_all, &posters[i]), 0);
    }
    while (count < (size_t)TASKS * THREADS) {
        io_loop_run_once(loop);
    }
    for (size_t i = 0; i < THREADS; i++) {
        pthread_join(posters[i].thread, NULL);
    }
    assert_int_equal(count, (size_t)TASKS * THREADS);
    io_loop_destroy(&loop);
}

struct again_task {
    struct io_task task;
    struct io_loop *loop;
    size_t runs;
};

static void run_again(struct io_task *task)
{
    struct again_task *again = (struct again_task *)task;
    again->runs++;
    if (again->runs < 10) {
        io_loop_post(again->loop, task);
    }
}

static void a_task_that_posts_itself_lets_the_sockets_have_their_turn(void **state)
{
    (void)state;
    struct again_task again = {.task.run = run_again};
    assert_int_equal(io_loop_create(&again.loop, 0), STATUS_OK);
    io_loop_post(again.loop, &again.task);
    for (size_t turns = 1; turns <= 10; turns++) {
        io_loop_run_once(again.loop);
        assert_int_equal(again.runs, turns);
    }
    io_loop_destroy(&again.loop);
}

static void on_timer(uv_timer_t *timer)
{
    *(bool *)timer->data = true;
}

static void a_wait_ends_for_timers_wakes_and_its_own_time(void **state)
{
    (void)state;
    struct io_loop *loop;
    uv_timer_t timer;
    bool has_fired = false;
    assert_int_equal(io_loop_create(&loop, 3), STATUS_OK);
    assert_int_equal(io_loop_index(loop), 3);
    io_loop_turn(loop);
    io_loop_wait(loop, NANOSECONDS_PER_MILLISECOND);
    uv_timer_init(io_loop_uv(loop), &timer);
    timer.data = &has_fired;
    uv_timer_start(&timer, on_timer, 1, 0);
    while (!has_fired) {
        io_loop_run_once(loop);
    }
    io_loop_wake(loop);
    io_loop_run_once(loop);
    uv_close((uv_handle_t *)&timer, NULL);
    io_loop_destroy(&loop);
}

static void what_is_posted_last_still_runs(void **state)
{
    (void)state;
    struct io_loop *loop;
    size_t count = 0;
    size_t last = 0;
    struct counted_task *task = calloc(1, sizeof(*task));
    assert_int_equal(io_loop_create(&loop, 0), STATUS_OK);
    *task = (struct counted_task){
            .task.run = run_counted, .count = &count, .last_of_thread = &last, .number = 1};
    io_loop_post(loop, &task->task);
    io_loop_destroy(&loop);
    assert_int_equal(count, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(tasks_of_every_thread_run_once_and_in_order),
            cmocka_unit_test(a_task_that_posts_itself_lets_the_sockets_have_their_turn),
            cmocka_unit_test(a_wait_ends_for_timers_wakes_and_its_own_time),
            cmocka_unit_test(what_is_posted_last_still_runs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
