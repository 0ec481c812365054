/* SPDX-License-Identifier: MIT */

#include "router/sync_wanted.h"

#include "tests/support/cmocka.h"
#include "tests/support/sync_ids.h"

#include "base/metrics.h"

enum {
    MAX = 1000,
    PATIENCE_MS = 100,
    ALICE = 7,
    BOB = 8
};

static struct sync_wanted *wanted;

static int set_up(void **state)
{
    (void)state;
    return sync_wanted_create(&wanted, MAX, PATIENCE_MS) != STATUS_OK;
}

static int tear_down(void **state)
{
    (void)state;
    sync_wanted_destroy(&wanted);
    return 0;
}

static struct id_key id_of(uint64_t number)
{
    struct topic topic = {.index = 0};
    struct id_record record = make_record((int64_t)(1000 + number), number, &topic, "/a/1/x/proto");
    return key_of(&record);
}

static void expect(uint64_t peer, uint64_t first, uint64_t count, uint64_t now_ms)
{
    for (uint64_t i = first; i < first + count; i++) {
        struct id_key id = id_of(i);
        sync_wanted_expect(wanted, peer, &id, 1, now_ms);
    }
}

static bool has(uint64_t number)
{
    struct id_key id = id_of(number);
    return sync_wanted_contains(wanted, &id);
}

static void arrive(uint64_t number)
{
    struct id_key id = id_of(number);
    sync_wanted_arrived(wanted, &id);
}

/* All steps that are due; how many. */
static unsigned tend(uint64_t now_ms)
{
    unsigned steps = 1;
    while (sync_wanted_tend(wanted, now_ms)) {
        steps++;
        assert_true(steps < 1000);
    }
    return steps;
}

static void an_id_is_wanted_until_it_arrives(void **state)
{
    (void)state;
    expect(ALICE, 0, 10, 0);
    assert_true(has(3));
    assert_false(has(10));
    arrive(3);
    arrive(10); /* of which nothing was known */
    assert_false(has(3));
    assert_true(has(4));
    assert_int_equal(sync_wanted_count(wanted), 9);
}

static void a_peer_that_delivers_nothing_for_the_patience_holds_nothing_back(void **state)
{
    (void)state;
    expect(ALICE, 0, 10, 0);
    expect(BOB, 10, 10, 50);
    (void)tend(PATIENCE_MS - 1);
    assert_true(has(0));
    (void)tend(PATIENCE_MS);
    assert_false(has(0));
    assert_false(has(9));
    assert_true(has(10)); /* of the other one */
    assert_int_equal(sync_wanted_count(wanted), 10);
}

static void what_arrives_prolongs_the_wait_but_not_for_ever(void **state)
{
    (void)state;
    uint64_t now_ms = 0;
    expect(ALICE, 0, 100, 0);
    for (uint64_t i = 0; has(99); i++) {
        assert_true(now_ms <= (SYNC_WANTED_WAITS_MAX + 1) * PATIENCE_MS);
        arrive(i);
        (void)tend(now_ms);
        now_ms += PATIENCE_MS - 1;
    }
    assert_true(now_ms > (SYNC_WANTED_WAITS_MAX - 1) * PATIENCE_MS);
    assert_int_equal(sync_wanted_count(wanted), 0);
}

/* What is not asked for does not count as delivery. */
static void other_messages_prolong_nothing(void **state)
{
    (void)state;
    expect(ALICE, 0, 10, 0);
    arrive(500);
    (void)tend(PATIENCE_MS - 1);
    arrive(501);
    (void)tend(PATIENCE_MS);
    assert_false(has(0));
}

static void a_peer_that_has_ended_is_waited_for_only_shortly(void **state)
{
    (void)state;
    sync_wanted_destroy(&wanted);
    assert_int_equal(sync_wanted_create(&wanted, MAX, 60000), STATUS_OK);
    expect(ALICE, 0, 10, 0);
    sync_wanted_peer_ended(wanted, BOB, 10); /* of whom nothing is wanted */
    sync_wanted_peer_ended(wanted, ALICE, 10);
    arrive(0); /* what came last is still on its way through the node */
    (void)tend(10 + SYNC_WANTED_SETTLE_MS - 1);
    assert_true(has(9));
    (void)tend(10 + SYNC_WANTED_SETTLE_MS);
    assert_false(has(9));
}

static void who_promises_again_is_believed_so_many_times(void **state)
{
    (void)state;
    uint64_t now_ms = 0;
    for (uint64_t i = 0; i < SYNC_WANTED_TRIES; i++) {
        expect(ALICE + i, 0, 10, now_ms);
        assert_true(has(0));
        now_ms += PATIENCE_MS;
        (void)tend(now_ms);
        assert_false(has(0));
    }
    expect(BOB + 100, 0, 11, now_ms);
    assert_false(has(0));
    assert_true(has(10)); /* a new one */
}

static void an_id_is_wanted_of_the_first_that_has_it(void **state)
{
    (void)state;
    expect(ALICE, 0, 10, 0);
    expect(BOB, 0, 10, 50);
    (void)tend(PATIENCE_MS);
    assert_false(has(0));
    assert_int_equal(sync_wanted_count(wanted), 0);
}

static void a_peer_has_half_of_the_places_and_all_have_no_more(void **state)
{
    (void)state;
    expect(ALICE, 0, MAX, 0);
    assert_int_equal(sync_wanted_count(wanted), MAX / SYNC_WANTED_SHARE);
    expect(BOB, MAX, MAX, 0);
    expect(BOB + 1, 2 * MAX, MAX, 0);
    assert_int_equal(sync_wanted_count(wanted), MAX);
    for (uint64_t peer = 100; peer < 100 + 2 * SYNC_WANTED_PEERS; peer++) {
        expect(peer, peer * MAX, 1, 0);
    }
    assert_int_equal(sync_wanted_count(wanted), MAX);
}

static void more_peers_than_places_are_not_kept_in_mind(void **state)
{
    (void)state;
    for (uint64_t peer = 1; peer <= 2 * SYNC_WANTED_PEERS; peer++) {
        expect(peer, peer, 1, 0);
    }
    assert_int_equal(sync_wanted_count(wanted), SYNC_WANTED_PEERS);
    (void)tend(PATIENCE_MS);
    assert_int_equal(sync_wanted_count(wanted), 0);
    expect(2 * SYNC_WANTED_PEERS, 5000, 1, PATIENCE_MS);
    assert_true(has(5000));
}

static void many_ids_are_let_go_in_steps(void **state)
{
    (void)state;
    enum {
        MANY = 100000
    };
    sync_wanted_destroy(&wanted);
    assert_int_equal(sync_wanted_create(&wanted, 2 * MANY, PATIENCE_MS), STATUS_OK);
    expect(ALICE, 0, MANY, 0);
    expect(BOB, MANY, 10, 60);
    assert_int_equal(sync_wanted_count(wanted), MANY + 10);
    assert_true(tend(PATIENCE_MS) >= MANY / SYNC_WANTED_STEP_IDS);
    assert_int_equal(sync_wanted_count(wanted), 10);
}

static void the_range_of_what_is_wanted_is_known(void **state)
{
    (void)state;
    expect(ALICE, 50, 2, 0); /* at 1,050 and 1,051 */
    assert_false(sync_wanted_has_between(wanted, 0, 1049));
    assert_true(sync_wanted_has_between(wanted, 0, 1050));
    assert_true(sync_wanted_has_between(wanted, 1051, 5000));
    assert_false(sync_wanted_has_between(wanted, 1052, INT64_MAX));
}

static void a_question_is_open_until_it_is_answered_or_old(void **state)
{
    (void)state;
    sync_wanted_ask(wanted, 1, 100, 200, 1000);
    assert_true(sync_wanted_has_between(wanted, 200, 300));
    assert_true(sync_wanted_is_asked(wanted, 200));
    assert_false(sync_wanted_is_asked(wanted, 201));
    assert_false(sync_wanted_has_between(wanted, 201, 300));
    sync_wanted_ask(wanted, 2, 150, 250, 1000);
    sync_wanted_answered(wanted, 1);
    assert_false(sync_wanted_has_between(wanted, 100, 149));
    assert_true(sync_wanted_has_between(wanted, 100, 150));
    (void)tend(1000 + SYNC_WANTED_ASK_MS);
    assert_false(sync_wanted_has_between(wanted, 0, 300));
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
            CASE(an_id_is_wanted_until_it_arrives),
            CASE(a_peer_that_delivers_nothing_for_the_patience_holds_nothing_back),
            CASE(what_arrives_prolongs_the_wait_but_not_for_ever),
            CASE(other_messages_prolong_nothing),
            CASE(a_peer_that_has_ended_is_waited_for_only_shortly),
            CASE(who_promises_again_is_believed_so_many_times),
            CASE(an_id_is_wanted_of_the_first_that_has_it),
            CASE(a_peer_has_half_of_the_places_and_all_have_no_more),
            CASE(more_peers_than_places_are_not_kept_in_mind),
            CASE(many_ids_are_let_go_in_steps),
            CASE(the_range_of_what_is_wanted_is_known),
            CASE(a_question_is_open_until_it_is_answered_or_old),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
