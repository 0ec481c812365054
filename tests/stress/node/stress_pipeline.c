/* SPDX-License-Identifier: MIT */

/*
 * A whole node with rings of 16 slots, three lanes and 16 MiB, several producers with copies among
 * their messages, and every role stalled at random. Whatever a stage loses must stand in its ledger.
 */

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "tests/stress/node/node_fixture.h"
#include "tests/support/cmocka.h"

enum {
    PRODUCERS = 2,
    UNIQUE_PER_PRODUCER = 1200,
    COPIES_PERCENT = 30,
    WINDOW = 15 /* what a ring of 16 holds */
};

static const char mixed[] = "200:60,3k:20,50k:10,150000:10";

struct producer {
    struct node_fixture *fixture;
    pthread_t thread;
    uint64_t first;
    uint64_t posted;
};

struct staller {
    struct node_fixture *fixture;
    pthread_t thread;
    atomic_bool is_ending;
};

static void *produce(void *argument)
{
    struct producer *producer = argument;
    uint64_t random = producer->first + 1;
    for (uint64_t i = 0; i < UNIQUE_PER_PRODUCER;) {
        bool repeats = i > 0 && node_fixture_draw(&random) % 100 < COPIES_PERCENT;
        uint64_t back = repeats ? 1 + node_fixture_draw(&random) % (i < 20 ? i : 20) : 0;
        node_fixture_post(producer->fixture, producer->first + i - back, true);
        producer->posted++;
        i += !repeats;
    }
    return NULL;
}

/* Short stalls, one after the other: they are the load, nothing waits for them. */
static void *stall(void *argument)
{
    struct staller *staller = argument;
    uint64_t random = 7;
    while (!atomic_load(&staller->is_ending)) {
        enum node_role role = (enum node_role)(node_fixture_draw(&random) % NODE_ROLES);
        uint64_t ns = (uint64_t)(node_fixture_draw(&random) % 8 + 1) * NANOSECONDS_PER_MILLISECOND;
        node_stall(staller->fixture->node, role, clock_monotonic_ns() + ns);
        struct timespec pause = {.tv_nsec = (long)(ns / 2)};
        nanosleep(&pause, NULL);
    }
    return NULL;
}

static void start_stalls(struct staller *staller, struct node_fixture *fixture)
{
    staller->fixture = fixture;
    atomic_init(&staller->is_ending, false);
    assert_int_equal(pthread_create(&staller->thread, NULL, stall, staller), 0);
}

static void end_stalls(struct staller *staller)
{
    atomic_store(&staller->is_ending, true);
    pthread_join(staller->thread, NULL);
}

static void run_open_loop(bool is_on_disk)
{
    struct node_fixture fixture;
    struct staller staller;
    struct producer producers[PRODUCERS] = {0};
    uint64_t posted = 0;
    struct node_fixture_options options = {.is_on_disk = is_on_disk, .sizes = mixed};
    node_fixture_start(&fixture, &options);
    start_stalls(&staller, &fixture);
    for (size_t i = 0; i < PRODUCERS; i++) {
        producers[i].fixture = &fixture;
        producers[i].first = i * UNIQUE_PER_PRODUCER;
        assert_int_equal(pthread_create(&producers[i].thread, NULL, produce, &producers[i]), 0);
    }
    for (size_t i = 0; i < PRODUCERS; i++) {
        pthread_join(producers[i].thread, NULL);
        posted += producers[i].posted;
    }
    end_stalls(&staller);
    node_fixture_wait_stored(&fixture);
    node_fixture_stop_checked(&fixture, posted, (uint64_t)PRODUCERS * UNIQUE_PER_PRODUCER);
    node_fixture_end(&fixture);
}

static void accounts_for_every_message_with_the_memory_archive(void **state)
{
    (void)state;
    run_open_loop(false);
}

static void accounts_for_every_message_with_sqlite_and_a_spill_file(void **state)
{
    (void)state;
    run_open_loop(true);
}

static void run_closed_loop(bool is_on_disk)
{
    struct node_fixture fixture;
    struct staller staller;
    uint64_t random = 99;
    uint64_t posted = 0;
    struct node_fixture_options options = {.is_on_disk = is_on_disk, .sizes = mixed};
    node_fixture_start(&fixture, &options);
    start_stalls(&staller, &fixture);
    for (uint64_t i = 0; i < UNIQUE_PER_PRODUCER;) {
        bool repeats = i > 0 && node_fixture_draw(&random) % 100 < COPIES_PERCENT;
        assert_true(node_wait_in_flight(fixture.node, posted, WINDOW - 1));
        node_fixture_post_closed(&fixture, repeats ? i - 1 : i);
        posted++;
        i += !repeats;
    }
    assert_true(node_wait_in_flight(fixture.node, posted, 0));
    end_stalls(&staller);
    node_fixture_wait_stored(&fixture);
    node_fixture_stop_checked(&fixture, posted, UNIQUE_PER_PRODUCER);
    const struct node_fixture *f = &fixture;
    assert_int_equal(node_fixture_count(f, LEDGER_ARCHIVE_DELIVERED), UNIQUE_PER_PRODUCER);
    assert_int_equal(node_fixture_count(f, LEDGER_EVENT_DELIVERED), UNIQUE_PER_PRODUCER);
    assert_int_equal(node_fixture_count(f, LEDGER_SYNC_DELIVERED), UNIQUE_PER_PRODUCER);
    assert_int_equal(node_fixture_count(f, LEDGER_FILTER_DELIVERED), 2 * UNIQUE_PER_PRODUCER);
    node_fixture_end(&fixture);
}

static void a_closed_loop_loses_nothing_with_the_memory_archive(void **state)
{
    (void)state;
    run_closed_loop(false);
}

static void a_closed_loop_loses_nothing_with_sqlite_and_a_spill_file(void **state)
{
    (void)state;
    run_closed_loop(true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(accounts_for_every_message_with_the_memory_archive),
            cmocka_unit_test(accounts_for_every_message_with_sqlite_and_a_spill_file),
            cmocka_unit_test(a_closed_loop_loses_nothing_with_the_memory_archive),
            cmocka_unit_test(a_closed_loop_loses_nothing_with_sqlite_and_a_spill_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
