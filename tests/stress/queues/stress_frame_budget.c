/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "queues/frame_budget.h"
#include "tests/stress/queues/stress.h"

/* More threads than credit. Those refused sleep until a release wakes them, and are never forgotten. */

enum {
    LIMIT = 1000,
    RESERVE = 300,
    THREADS = 6
};

struct run {
    struct frame_budget *budget;
    atomic_size_t held; /* our own count: never above what the budget has on record */
    uint64_t charges;
};

struct holder {
    struct run *run;
    struct parking parking;
    uint64_t seed;
    pthread_t thread;
};

static void charge_or_sleep(struct holder *holder, enum frame_budget_class class, size_t bytes)
{
    struct frame_budget *budget = holder->run->budget;
    while (!frame_budget_try_charge(budget, class, bytes)) {
        uint32_t ticket = parking_prepare(&holder->parking);
        if (frame_budget_try_charge(budget, class, bytes)) {
            parking_cancel(&holder->parking, ticket);
            return;
        }
        CHECK(parking_wait(&holder->parking, ticket, LOST_WAKE_NS));
    }
}

static void *charge_and_release(void *argument)
{
    struct holder *holder = argument;
    struct run *run = holder->run;
    for (uint64_t i = 0; i < run->charges; i++) {
        bool is_partial = one_in(&holder->seed, 2);
        size_t room = is_partial ? LIMIT - RESERVE : LIMIT;
        size_t bytes = 1 + random_next(&holder->seed) % room;
        charge_or_sleep(holder, is_partial ? FRAME_BUDGET_PARTIAL : FRAME_BUDGET_COMPLETE, bytes);
        size_t held = atomic_fetch_add_explicit(&run->held, bytes, memory_order_relaxed) + bytes;
        CHECK(held <= LIMIT);
        CHECK(frame_budget_used(run->budget) <= LIMIT);
        CHECK(frame_budget_used(run->budget) >= bytes);
        if (one_in(&holder->seed, 4)) {
            sched_yield();
        }
        atomic_fetch_sub_explicit(&run->held, bytes, memory_order_relaxed);
        frame_budget_release(run->budget, bytes);
    }
    return NULL;
}

static void never_passes_its_limit_and_returns_to_zero(void **state)
{
    (void)state;
    struct run run = {.charges = rounds(50000)};
    assert_int_equal(frame_budget_create(&run.budget, LIMIT, RESERVE), STATUS_OK);
    struct holder holders[THREADS];
    for (uint64_t i = 0; i < THREADS; i++) {
        holders[i].run = &run;
        holders[i].seed = i + 1;
        parking_init(&holders[i].parking);
        assert_int_equal(frame_budget_add_waiter(run.budget, &holders[i].parking), STATUS_OK);
    }
    for (int i = 0; i < THREADS; i++) {
        start_thread(&holders[i].thread, charge_and_release, &holders[i]);
    }
    for (int i = 0; i < THREADS; i++) {
        join_thread(holders[i].thread);
    }
    assert_int_equal(frame_budget_used(run.budget), 0);
    assert_true(frame_budget_peak(run.budget) <= LIMIT);
    assert_true(frame_budget_peak(run.budget) > LIMIT - RESERVE);
    frame_budget_destroy(&run.budget);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(never_passes_its_limit_and_returns_to_zero),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
