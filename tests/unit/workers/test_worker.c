/* SPDX-License-Identifier: MIT */
#include "workers/worker.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>

#include "base/clock.h"
#include "base/rcu.h"
#include "tests/support/cmocka.h"

/* A role whose work is a number that others raise. */
struct toy {
    struct parking parking;
    struct parking news; /* the test sleeps here */
    atomic_size_t work;
    atomic_size_t done;
    atomic_size_t turns;
    atomic_uint_least64_t deadline_ns;
    atomic_bool blocks; /* turn blocks, offline, until it is false */
    atomic_bool is_blocked;
    enum status start_status;
    bool has_stopped;
    bool was_named;
    bool was_pinned;
    size_t made; /* plain: by the start hook */
    size_t done_at_stop;
};

static struct metrics *metrics;
static struct toy toy;
static struct worker *worker;

static enum status start_toy(void *context)
{
    struct toy *self = context;
    char name[16] = "";
    cpu_set_t cpus;
    pthread_getname_np(pthread_self(), name, sizeof(name));
    self->was_named = strcmp(name, "toy") == 0;
    pthread_getaffinity_np(pthread_self(), sizeof(cpus), &cpus);
    self->was_pinned = CPU_COUNT(&cpus) == 1;
    metrics_add(METRIC_FRAMES, 1);
    self->made = 42;
    return self->start_status;
}

static void block(struct toy *self)
{
    worker_block_begin();
    atomic_store(&self->is_blocked, true);
    parking_wake(&self->news);
    while (atomic_load(&self->blocks)) {
        uint32_t ticket = parking_prepare(&self->parking);
        if (!atomic_load(&self->blocks)) {
            parking_cancel(&self->parking, ticket);
            break;
        }
        parking_wait(&self->parking, ticket, UINT64_MAX);
    }
    atomic_store(&self->is_blocked, false);
    worker_block_end();
}

static size_t turn_toy(void *context)
{
    struct toy *self = context;
    atomic_fetch_add(&self->turns, 1);
    if (atomic_load(&self->blocks)) {
        block(self);
    }
    size_t todo = atomic_exchange(&self->work, 0);
    atomic_fetch_add(&self->done, todo);
    parking_wake(&self->news);
    return todo;
}

static bool has_work(void *context)
{
    struct toy *self = context;
    return atomic_load(&self->work) > 0;
}

static uint64_t deadline(void *context)
{
    struct toy *self = context;
    return atomic_load(&self->deadline_ns);
}

static void stop_toy(void *context)
{
    struct toy *self = context;
    self->has_stopped = true;
    self->done_at_stop = atomic_load(&self->done);
}

static const struct worker_role toy_role = {.name = "toy",
        .context = &toy,
        .start = start_toy,
        .turn = turn_toy,
        .has_work = has_work,
        .deadline = deadline,
        .stop = stop_toy,
        .parking = &toy.parking};

static int set_up(void **state)
{
    (void)state;
    memset(&toy, 0, sizeof(toy));
    parking_init(&toy.parking);
    parking_init(&toy.news);
    atomic_init(&toy.deadline_ns, UINT64_MAX);
    return metrics_create(&metrics) == STATUS_OK ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    if (worker != NULL) {
        worker_request_stop(worker);
        worker_join(worker);
        worker_destroy(&worker);
    }
    metrics_destroy(&metrics);
    return 0;
}

static void create(enum idle_strategy idle, const struct cpu_set *cpus)
{
    struct worker_options options = {.cpus = cpus, .idle = idle, .metrics = metrics};
    assert_int_equal(worker_create(&worker, &toy_role, &options), STATUS_OK);
}

static void add_work(size_t amount)
{
    atomic_fetch_add(&toy.work, amount);
    parking_wake(&toy.parking);
}

/* Sleeps until the condition holds; ctest's time limit ends a test whose condition never does. */
#define WAIT_FOR(condition)                                                                        \
    for (;;) {                                                                                     \
        uint32_t ticket = parking_prepare(&toy.news);                                              \
        if (condition) {                                                                           \
            parking_cancel(&toy.news, ticket);                                                     \
            break;                                                                                 \
        }                                                                                          \
        parking_wait(&toy.news, ticket, 100ULL * NANOSECONDS_PER_MILLISECOND);                     \
    }

static void add_much_work(void)
{
    for (size_t n = 0; n < 100; n++) {
        add_work(1);
    }
}

static void work_through(enum idle_strategy strategy, size_t expected)
{
    create(strategy, NULL);
    assert_int_equal(worker_start(worker), STATUS_OK);
    add_much_work();
    WAIT_FOR(atomic_load(&toy.done) == expected);
    worker_request_stop(worker);
    worker_join(worker);
    worker_destroy(&worker);
    assert_null(worker);
}

static void does_the_work_that_others_give_it(void **state)
{
    static const enum idle_strategy strategies[] = {IDLE_SPIN, IDLE_YIELD, IDLE_PARK, IDLE_AUTO};
    (void)state;
    for (size_t i = 0; i < 4; i++) {
        work_through(strategies[i], 100 * (i + 1));
    }
}

/* Looks at nothing but the worker's state, so only that can bring the start hook's work along. */
static void *wait_for_start(void *argument)
{
    while (!worker_is_started(worker)) {
        sched_yield();
    }
    *(size_t *)argument = toy.made;
    return NULL;
}

static void who_sees_it_started_sees_what_its_start_hook_made(void **state)
{
    (void)state;
    for (size_t i = 0; i < 20; i++) {
        pthread_t thread;
        size_t seen = 0;
        toy.made = 0;
        create(IDLE_PARK, NULL);
        assert_int_equal(pthread_create(&thread, NULL, wait_for_start, &seen), 0);
        assert_int_equal(worker_start(worker), STATUS_OK);
        pthread_join(thread, NULL);
        assert_int_equal(seen, 42);
        worker_request_stop(worker);
        worker_join(worker);
        worker_destroy(&worker);
    }
}

static void a_start_hook_that_fails_ends_the_thread_and_is_told_to_the_owner(void **state)
{
    (void)state;
    toy.start_status = STATUS_UNSUPPORTED;
    create(IDLE_PARK, NULL);
    assert_int_equal(worker_start(worker), STATUS_UNSUPPORTED);
    assert_false(worker_is_started(worker));
    assert_int_equal(atomic_load(&toy.turns), 0);
    assert_false(toy.has_stopped);
    worker_join(worker); /* does nothing */
    worker_destroy(&worker);
}

static void a_worker_that_was_never_started_can_be_destroyed(void **state)
{
    (void)state;
    create(IDLE_PARK, NULL);
    assert_false(worker_is_started(worker));
    worker_destroy(&worker);
    assert_null(worker);
}

static void a_stop_request_drains_what_was_given_before(void **state)
{
    (void)state;
    create(IDLE_PARK, NULL);
    assert_int_equal(worker_start(worker), STATUS_OK);
    atomic_fetch_add(&toy.work, 5); /* no wake */
    worker_request_stop(worker);
    worker_join(worker);
    assert_true(toy.has_stopped);
    assert_int_equal(toy.done_at_stop, 5);
}

static void gives_its_thread_a_name_a_processor_and_a_row_of_metrics(void **state)
{
    struct cpu_set allowed;
    struct cpu_set one;
    (void)state;
    assert_int_equal(cpu_set_allowed(&allowed), STATUS_OK);
    cpu_set_clear(&one);
    cpu_set_add(&one, cpu_set_next(&allowed, 0));
    create(IDLE_PARK, &one);
    assert_int_equal(worker_start(worker), STATUS_OK);
    assert_true(toy.was_named);
    assert_true(toy.was_pinned);
    assert_int_equal(metrics_sum(metrics, METRIC_FRAMES), 1);
    assert_string_equal(worker_name(worker), "toy");
}

static void is_offline_while_it_sleeps(void **state)
{
    (void)state;
    create(IDLE_PARK, NULL);
    assert_int_equal(worker_start(worker), STATUS_OK);
    WAIT_FOR(atomic_load(&toy.turns) > 0);
    /* Would wait for ever for a thread that sleeps online. */
    urcu_qsbr_synchronize_rcu();
}

static void is_offline_while_a_hook_blocks(void **state)
{
    (void)state;
    atomic_store(&toy.blocks, true);
    create(IDLE_PARK, NULL);
    assert_int_equal(worker_start(worker), STATUS_OK);
    WAIT_FOR(atomic_load(&toy.is_blocked));
    urcu_qsbr_synchronize_rcu();
    assert_true(atomic_load(&toy.is_blocked));
    atomic_store(&toy.blocks, false);
    parking_wake(&toy.parking);
    WAIT_FOR(!atomic_load(&toy.is_blocked));
}

static void wakes_by_itself_at_its_deadline(void **state)
{
    (void)state;
    create(IDLE_PARK, NULL);
    assert_int_equal(worker_start(worker), STATUS_OK);
    WAIT_FOR(atomic_load(&toy.turns) > 0);
    atomic_store(&toy.deadline_ns, clock_monotonic_ns() + NANOSECONDS_PER_MILLISECOND);
    size_t turns = atomic_load(&toy.turns);
    parking_wake(&toy.parking); /* so that it asks for the deadline */
    WAIT_FOR(atomic_load(&toy.turns) > turns + 2);
}

static void a_stalled_worker_does_nothing_and_is_offline(void **state)
{
    (void)state;
    create(IDLE_PARK, NULL);
    worker_stall(worker, UINT64_MAX);
    assert_int_equal(worker_start(worker), STATUS_OK);
    add_work(3);
    urcu_qsbr_synchronize_rcu();
    assert_int_equal(atomic_load(&toy.turns), 0);
    worker_request_stop(worker); /* ends the stall, and what waits is done */
    worker_join(worker);
    assert_int_equal(atomic_load(&toy.done), 3);
}

static void a_stall_ends_by_its_time(void **state)
{
    uint64_t until = clock_monotonic_ns() + 20ULL * NANOSECONDS_PER_MILLISECOND;
    (void)state;
    create(IDLE_PARK, NULL);
    worker_stall(worker, until);
    assert_int_equal(worker_start(worker), STATUS_OK);
    add_work(1);
    WAIT_FOR(atomic_load(&toy.done) == 1);
    assert_true(clock_monotonic_ns() >= until);
}

static void counts_the_time_of_turns_with_work_as_busy(void **state)
{
    uint64_t busy = 0;
    uint64_t total = 0;
    (void)state;
    create(IDLE_PARK, NULL);
    assert_int_equal(worker_start(worker), STATUS_OK);
    add_work(1);
    WAIT_FOR(atomic_load(&toy.done) == 1);
    worker_request_stop(worker);
    worker_join(worker);
    worker_times(worker, &busy, &total);
    assert_true(busy > 0);
    assert_true(busy <= total);
}

/* A role that sleeps in its own way, as io does. */
struct sleeper {
    struct parking parking;
    atomic_size_t waits;
    atomic_size_t wakes;
};

static size_t turn_nothing(void *context)
{
    (void)context;
    return 0;
}

static void wait_own(void *context, uint64_t timeout_ns)
{
    struct sleeper *self = context;
    uint32_t ticket = parking_prepare(&self->parking);
    (void)timeout_ns;
    atomic_fetch_add(&self->waits, 1);
    if (atomic_load(&self->wakes) > 0) {
        parking_cancel(&self->parking, ticket);
        return;
    }
    parking_wait(&self->parking, ticket, UINT64_MAX);
}

static void wake_own(void *context)
{
    struct sleeper *self = context;
    atomic_fetch_add(&self->wakes, 1);
    parking_wake(&self->parking);
}

static void sleeps_and_wakes_in_the_role_s_own_way(void **state)
{
    static struct sleeper sleeper;
    struct worker_role role = {.name = "sleeper",
            .context = &sleeper,
            .turn = turn_nothing,
            .wait = wait_own,
            .wake = wake_own};
    struct worker_options options = {.idle = IDLE_PARK, .metrics = metrics};
    (void)state;
    parking_init(&sleeper.parking);
    assert_int_equal(worker_create(&worker, &role, &options), STATUS_OK);
    assert_int_equal(worker_start(worker), STATUS_OK);
    worker_request_stop(worker);
    worker_join(worker);
    assert_int_equal(atomic_load(&sleeper.wakes), 1);
    worker_destroy(&worker);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
            CASE(does_the_work_that_others_give_it),
            CASE(who_sees_it_started_sees_what_its_start_hook_made),
            CASE(a_start_hook_that_fails_ends_the_thread_and_is_told_to_the_owner),
            CASE(a_worker_that_was_never_started_can_be_destroyed),
            CASE(a_stop_request_drains_what_was_given_before),
            CASE(gives_its_thread_a_name_a_processor_and_a_row_of_metrics),
            CASE(is_offline_while_it_sleeps),
            CASE(is_offline_while_a_hook_blocks),
            CASE(wakes_by_itself_at_its_deadline),
            CASE(a_stalled_worker_does_nothing_and_is_offline),
            CASE(a_stall_ends_by_its_time),
            CASE(counts_the_time_of_turns_with_work_as_busy),
            CASE(sleeps_and_wakes_in_the_role_s_own_way),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
