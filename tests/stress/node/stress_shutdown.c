/* SPDX-License-Identifier: MIT */

/* A node stopped at any moment: what was accepted before is carried through, and nothing leaks. */

#include "base/clock.h"
#include "tests/stress/node/node_fixture.h"
#include "tests/support/cmocka.h"

enum {
    ROUNDS = 12,
    MESSAGES_MOST = 300
};

static void stop_after(uint64_t seed, bool is_on_disk)
{
    struct node_fixture fixture;
    uint64_t random = seed * 2 + 1;
    uint64_t count = node_fixture_draw(&random) % MESSAGES_MOST;
    struct node_fixture_options options = {.is_on_disk = is_on_disk, .sizes = "200:8,60k:2"};
    node_fixture_start(&fixture, &options);
    /* Each role in turn is found blocked. */
    node_stall(fixture.node, (enum node_role)(seed % NODE_ROLES), UINT64_MAX);
    uint64_t posted = 0;
    while (posted < count && node_fixture_post(&fixture, posted, false)) {
        posted++;
    }
    node_fixture_stop_checked(&fixture, posted, posted);
    node_fixture_end(&fixture);
}

static void stops_cleanly_at_any_moment_with_the_memory_archive(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < ROUNDS; seed++) {
        stop_after(seed, false);
    }
}

static void stops_cleanly_at_any_moment_with_sqlite_and_a_spill_file(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < ROUNDS; seed++) {
        stop_after(seed, true);
    }
}

static void a_node_that_was_never_used_stops(void **state)
{
    struct node_fixture fixture;
    struct node_fixture_options options = {.sizes = "200:1"};
    (void)state;
    node_fixture_start(&fixture, &options);
    node_fixture_stop_checked(&fixture, 0, 0);
    node_stop(fixture.node); /* again does nothing */
    node_fixture_end(&fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(a_node_that_was_never_used_stops),
            cmocka_unit_test(stops_cleanly_at_any_moment_with_the_memory_archive),
            cmocka_unit_test(stops_cleanly_at_any_moment_with_sqlite_and_a_spill_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
