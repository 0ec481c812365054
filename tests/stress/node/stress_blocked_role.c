/* SPDX-License-Identifier: MIT */

/*
 * Each role blocked in turn under a budget of 16 MiB: the other stages take everything that is posted
 * meanwhile, far more than the budget holds, and grace periods end. SLUICE_BLOCK_SECONDS makes each
 * block last at least so long, with the load in rounds spread over that time.
 */

#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "base/rcu.h"
#include "tests/stress/node/node_fixture.h"
#include "tests/support/cmocka.h"

enum {
    MESSAGES = 250, /* of 150,000 bytes: 37 MB */
    PACE = 16,      /* messages on their way: 2.4 MB */
    ROUNDS_MAX = 16 /* what the memory archive then holds stays below its limit */
};

static uint64_t seconds_blocked(void)
{
    const char *text = getenv("SLUICE_BLOCK_SECONDS");
    return text != NULL ? strtoull(text, NULL, 10) : 0;
}

static void rest(void)
{
    uint64_t ms = seconds_blocked() * 1000 / ROUNDS_MAX;
    struct timespec pause = {.tv_sec = (time_t)(ms / 1000),
            .tv_nsec = (long)(ms % 1000) * NANOSECONDS_PER_MILLISECOND};
    nanosleep(&pause, NULL);
}

/* Messages that the stage of that role is done with, one way or the other. */
static uint64_t done_of(const struct node_fixture *fixture, enum ledger_stage stage)
{
    struct ledger ledger;
    ledger_read(&ledger, node_metrics(fixture->node), stage, 0);
    return ledger.sums[LEDGER_OUTCOME_DELIVERED] + ledger.sums[LEDGER_OUTCOME_REFUSED] +
           ledger.sums[LEDGER_OUTCOME_DROPPED];
}

static bool belongs_to(enum ledger_stage stage, enum node_role role)
{
    switch (role) {
    case NODE_ROLE_DECODE:
        return true; /* nothing comes further */
    case NODE_ROLE_ARCHIVE:
        return stage == LEDGER_STAGE_ARCHIVE;
    case NODE_ROLE_FILTER:
        return stage == LEDGER_STAGE_FILTER;
    case NODE_ROLE_SYNC:
        return stage == LEDGER_STAGE_SYNC;
    case NODE_ROLE_EVENT:
        return stage == LEDGER_STAGE_EVENT;
    case NODE_ROLE_SPILL:
    case NODE_ROLE_TEND:
    case NODE_ROLE_QUERY:
    case NODE_ROLE_WATCH:
    case NODE_ROLE_METRICS:
    case NODE_ROLE_REST:
    case NODE_ROLE_WAIT:
    case NODE_ROLE_IO:
    case NODE_ROLES:
        break;
    }
    return false;
}

/* ctest's time limit ends the test if the others never get there. */
static void wait_for_the_others(
        const struct node_fixture *fixture, enum node_role blocked, uint64_t messages)
{
    static const enum ledger_stage stages[] = {LEDGER_STAGE_INTAKE, LEDGER_STAGE_ARCHIVE,
            LEDGER_STAGE_FILTER, LEDGER_STAGE_SYNC, LEDGER_STAGE_EVENT};
    for (size_t i = 0; i < sizeof(stages) / sizeof(stages[0]); i++) {
        enum ledger_stage stage = stages[i];
        uint64_t wanted = stage == LEDGER_STAGE_FILTER ? 2 * messages : messages;
        while (!belongs_to(stage, blocked) && done_of(fixture, stage) < wanted) {
            struct timespec poll = {.tv_nsec = NANOSECONDS_PER_MILLISECOND};
            nanosleep(&poll, NULL);
        }
    }
}

static uint64_t post_round(struct node_fixture *fixture, enum node_role blocked, uint64_t first)
{
    uint64_t number = first;
    for (; number < first + MESSAGES; number++) {
        /* The others are in time, so whatever they lose they lose for the blocked one. */
        if (number % PACE == 0) {
            wait_for_the_others(fixture, blocked, number);
        }
        /* With decode blocked the budget fills up, and io would stop reading. */
        if (!node_fixture_post(fixture, number, blocked != NODE_ROLE_DECODE)) {
            break;
        }
    }
    wait_for_the_others(fixture, blocked, number);
    urcu_qsbr_synchronize_rcu();
    return number;
}

static void block_role(enum node_role role, bool is_on_disk)
{
    struct node_fixture fixture;
    struct node_fixture_options options = {
            .is_on_disk = is_on_disk, .sizes = "150000:1", .ring = "4096"};
    node_fixture_start(&fixture, &options);
    node_stall(fixture.node, role, UINT64_MAX);
    uint64_t until = clock_monotonic_ns() + seconds_blocked() * NANOSECONDS_PER_SECOND;
    uint64_t posted = 0;
    do {
        posted = post_round(&fixture, role, posted);
        rest();
    } while (clock_monotonic_ns() < until);
    /* What is not stalled has lost nothing. */
    if (role != NODE_ROLE_EVENT) {
        assert_int_equal(node_fixture_count(&fixture, LEDGER_EVENT_OVER_SHARE), 0);
    }
    if (role != NODE_ROLE_FILTER) {
        assert_int_equal(node_fixture_count(&fixture, LEDGER_FILTER_OVER_SHARE), 0);
    }
    if (role != NODE_ROLE_ARCHIVE && is_on_disk) {
        assert_int_equal(node_fixture_count(&fixture, LEDGER_ARCHIVE_ARCHIVE_UNAVAILABLE), 0);
    }
    node_stall(fixture.node, role, 0);
    /* And the role goes on where it was. */
    assert_true(node_wait_in_flight(fixture.node, posted, 0));
    node_fixture_wait_stored(&fixture);
    node_fixture_stop_checked(&fixture, posted, posted);
    node_fixture_end(&fixture);
}

#define BLOCKED(name, role)                                                                        \
    static void the_others_go_on_while_##name##_is_blocked(void **state)                           \
    {                                                                                              \
        (void)state;                                                                               \
        block_role(role, false);                                                                   \
        block_role(role, true);                                                                    \
    }

BLOCKED(decode, NODE_ROLE_DECODE)
BLOCKED(archive, NODE_ROLE_ARCHIVE)
BLOCKED(filter, NODE_ROLE_FILTER)
BLOCKED(sync, NODE_ROLE_SYNC)
BLOCKED(event, NODE_ROLE_EVENT)
BLOCKED(spill, NODE_ROLE_SPILL)
BLOCKED(tend, NODE_ROLE_TEND)

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(the_others_go_on_while_decode_is_blocked),
            cmocka_unit_test(the_others_go_on_while_archive_is_blocked),
            cmocka_unit_test(the_others_go_on_while_filter_is_blocked),
            cmocka_unit_test(the_others_go_on_while_sync_is_blocked),
            cmocka_unit_test(the_others_go_on_while_event_is_blocked),
            cmocka_unit_test(the_others_go_on_while_spill_is_blocked),
            cmocka_unit_test(the_others_go_on_while_tend_is_blocked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
