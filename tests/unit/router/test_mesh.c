/* SPDX-License-Identifier: MIT */

/* Who is in the mesh: one mesh, and peers that do what each case says. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "tests/support/mesh_alone.h"

static void a_new_mesh_invites_six_and_leaves_enough_alone(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_init(&fixture, &mesh_defaults);
    add_peers(&fixture, 1, 20, true);
    join(&fixture);
    assert_int_equal(mesh_size(fixture.mesh, &topics[0]), 6);
    assert_int_equal(count_actions(&fixture, MESH_GRAFT), 6);
    wait_seconds(&fixture, 10);
    assert_int_equal(fixture.actions.count, 0);
    /* four are enough, three are not */
    size_t gone = 0;
    for (uint64_t peer = 1; peer <= 20 && gone < 2; peer++) {
        if (is_in_mesh(&fixture, peer)) {
            mesh_remove_peer(fixture.mesh, peer, fixture.turn.now_ns);
            gone++;
        }
    }
    wait_seconds(&fixture, 1);
    assert_int_equal(mesh_size(fixture.mesh, &topics[0]), 4);
    for (uint64_t peer = 1; peer <= 20 && gone < 3; peer++) {
        if (is_in_mesh(&fixture, peer)) {
            mesh_peer_unsubscribes(fixture.mesh, peer, &topics[0], fixture.turn.now_ns);
            gone++;
        }
    }
    wait_seconds(&fixture, 1);
    assert_int_equal(mesh_size(fixture.mesh, &topics[0]), 6);
    fixture_fini(&fixture);
}

/* Those who come before the first heartbeat are invited at once, as many as a join would have. */
static void a_topic_just_joined_takes_who_comes(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_init(&fixture, &mesh_defaults);
    join(&fixture);
    add_peers(&fixture, 1, 20, true);
    for (uint64_t peer = 1; peer <= 20; peer++) {
        mesh_invite_early(fixture.mesh, peer, &topics[0], &fixture.turn);
        mesh_invite_early(fixture.mesh, peer, &topics[0], &fixture.turn);
    }
    mesh_invite_early(fixture.mesh, 21, &topics[0], &fixture.turn); /* nobody */
    assert_int_equal(mesh_size(fixture.mesh, &topics[0]), 6);
    assert_int_equal(count_actions(&fixture, MESH_GRAFT), 6);
    for (uint64_t peer = 1; peer <= 6; peer++) {
        assert_true(is_in_mesh(&fixture, peer));
    }
    /* Later they wait for the heartbeat. */
    wait_seconds(&fixture, 1);
    mesh_remove_peer(fixture.mesh, 1, fixture.turn.now_ns);
    mesh_invite_early(fixture.mesh, 7, &topics[0], &fixture.turn);
    assert_false(is_in_mesh(&fixture, 7));
    fixture_fini(&fixture);
}

static void a_topic_just_joined_takes_nobody_whom_a_heartbeat_would_not(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_init(&fixture, &mesh_defaults);
    add_peers(&fixture, 4, 1, true);
    mesh_invite_early(fixture.mesh, 4, &topics[0], &fixture.turn); /* not joined yet */
    mesh_remove_peer(fixture.mesh, 4, fixture.turn.now_ns);
    join(&fixture);
    add_peers(&fixture, 1, 3, true);
    set_score(&fixture, 1, -0.5);
    mesh_on_prune(fixture.mesh, 2, &topics[0], 60, fixture.turn.now_ns);
    mesh_peer_unsubscribes(fixture.mesh, 3, &topics[0], fixture.turn.now_ns);
    for (uint64_t peer = 1; peer <= 3; peer++) {
        mesh_invite_early(fixture.mesh, peer, &topics[0], &fixture.turn);
    }
    assert_int_equal(mesh_size(fixture.mesh, &topics[0]), 0);
    assert_int_equal(fixture.actions.count, 0);
    fixture_fini(&fixture);
}

static void invites_the_best_and_nobody_below_zero(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_init(&fixture, &mesh_defaults);
    add_peers(&fixture, 1, 12, true);
    for (uint64_t peer = 1; peer <= 12; peer++) {
        set_score(&fixture, peer, peer <= 4 ? -0.01 : (double)peer);
    }
    join(&fixture);
    for (uint64_t peer = 1; peer <= 12; peer++) {
        assert_int_equal(is_in_mesh(&fixture, peer), peer > 6);
    }
    /* one that falls below zero goes at the next heartbeat */
    set_score(&fixture, 12, -1);
    wait_seconds(&fixture, 1);
    assert_false(is_in_mesh(&fixture, 12));
    assert_int_equal(count_actions(&fixture, MESH_PRUNE), 1);
    assert_int_equal(fixture.actions.list[0].backoff_s, 60);
    fixture_fini(&fixture);
}

static void too_large_a_mesh_keeps_the_best_and_three_outbound_ones(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_init(&fixture, &mesh_defaults);
    add_peers(&fixture, 1, 8, false);
    add_peers(&fixture, 9, 3, true);
    join(&fixture);
    for (uint64_t peer = 1; peer <= 11; peer++) {
        set_score(&fixture, peer, peer <= 6 ? 100 : 1);
        graft(&fixture, peer);
    }
    /* eight, and outbound ones on top of that until there are three */
    assert_true(mesh_size(fixture.mesh, &topics[0]) > 8);
    wait_seconds(&fixture, 1);
    assert_int_equal(mesh_size(fixture.mesh, &topics[0]), 6);
    size_t outbound = 0;
    size_t best = 0;
    for (uint64_t peer = 1; peer <= 11; peer++) {
        outbound += is_in_mesh(&fixture, peer) && peer >= 9;
        best += is_in_mesh(&fixture, peer) && peer <= 6;
    }
    assert_int_equal(outbound, 3);
    assert_int_equal(best, 3);
    fixture_fini(&fixture);
}

static void brings_in_outbound_peers_when_there_are_too_few(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_init(&fixture, &mesh_defaults);
    add_peers(&fixture, 1, 6, false);
    join(&fixture);
    assert_int_equal(mesh_size(fixture.mesh, &topics[0]), 6);
    add_peers(&fixture, 7, 5, true);
    wait_seconds(&fixture, 1);
    size_t outbound = 0;
    for (uint64_t peer = 7; peer <= 11; peer++) {
        outbound += is_in_mesh(&fixture, peer);
    }
    assert_int_equal(outbound, 3);
    fixture_fini(&fixture);
}

static void a_full_mesh_refuses_a_graft_unless_outbound_ones_are_missing(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_init(&fixture, &mesh_defaults);
    add_peers(&fixture, 1, 9, false);
    add_peers(&fixture, 10, 4, true);
    for (uint64_t peer = 10; peer <= 13; peer++) {
        mesh_peer_unsubscribes(fixture.mesh, peer, &topics[0], fixture.turn.now_ns);
    }
    join(&fixture);
    for (uint64_t peer = 1; peer <= 9; peer++) {
        graft(&fixture, peer);
    }
    assert_int_equal(mesh_size(fixture.mesh, &topics[0]), 8);
    for (uint64_t peer = 10; peer <= 13; peer++) {
        graft(&fixture, peer);
        assert_int_equal(is_in_mesh(&fixture, peer), peer < 13);
        assert_int_equal(count_actions(&fixture, MESH_PRUNE), peer < 13 ? 0 : 1);
    }
    fixture_fini(&fixture);
}

static void answers_no_graft_for_a_topic_that_is_not_ours(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_init(&fixture, &mesh_defaults);
    add_peers(&fixture, 1, 1, false);
    graft(&fixture, 1);
    mesh_leave(fixture.mesh, &topics[0], &fixture.turn);
    mesh_leave(fixture.mesh, &topics[1], &fixture.turn); /* of which nobody has spoken */
    assert_int_equal(fixture.actions.count, 0);
    join(&fixture);
    graft(&fixture, 99); /* nobody we know */
    assert_int_equal(fixture.actions.count, 0);
    set_score(&fixture, 1, -0.5);
    wait_seconds(&fixture, 70);
    graft(&fixture, 1);
    assert_false(is_in_mesh(&fixture, 1));
    assert_int_equal(count_actions(&fixture, MESH_PRUNE), 1);
    assert_int_equal(count_actions(&fixture, MESH_PENALISE), 0);
    fixture_fini(&fixture);
}

static uint64_t seconds_until_invited(struct fixture *fixture, uint64_t max)
{
    uint64_t seconds = 0;
    while (!is_in_mesh(fixture, 1) && seconds < max) {
        wait_seconds(fixture, 1);
        seconds++;
    }
    return seconds;
}

static uint64_t backoff_after_prune(uint64_t backoff_s)
{
    struct fixture fixture;
    fixture_init(&fixture, &mesh_defaults);
    add_peers(&fixture, 1, 1, true);
    join(&fixture);
    mesh_on_prune(fixture.mesh, 1, &topics[0], backoff_s, fixture.turn.now_ns);
    assert_false(is_in_mesh(&fixture, 1));
    uint64_t seconds = seconds_until_invited(&fixture, 10000);
    fixture_fini(&fixture);
    return seconds;
}

static void waits_as_long_as_a_prune_says_but_not_for_ever(void **state)
{
    (void)state;
    /* two seconds of slack; whole heartbeats */
    uint64_t none = backoff_after_prune(0);
    assert_true(none >= 62 && none <= 63);
    uint64_t ten = backoff_after_prune(10);
    assert_true(ten >= 12 && ten <= 13);
    uint64_t endless = backoff_after_prune(UINT64_MAX);
    assert_true(endless >= 3602 && endless <= 3603);
}

static void a_graft_during_its_backoff_is_penalised_and_prolongs_it(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_init(&fixture, &mesh_defaults);
    add_peers(&fixture, 1, 1, true);
    join(&fixture);
    mesh_on_prune(fixture.mesh, 1, &topics[0], 60, fixture.turn.now_ns);
    fixture.turn.now_ns += 30 * SECOND_NS;
    graft(&fixture, 1);
    assert_false(is_in_mesh(&fixture, 1));
    assert_int_equal(count_actions(&fixture, MESH_PRUNE), 1);
    assert_int_equal(count_actions(&fixture, MESH_PENALISE), 1);
    assert_true(seconds_until_invited(&fixture, 100) >= 62);
    fixture_fini(&fixture);
}

/* Gossipsub 1.1: both sides of a PRUNE wait, also when the one who gets it had let the other go before. */
static void a_prune_of_a_peer_outside_the_mesh_counts_as_well(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_init(&fixture, &mesh_defaults);
    join(&fixture);
    add_peers(&fixture, 1, 1, true);
    mesh_on_prune(fixture.mesh, 1, &topics[0], 30, fixture.turn.now_ns);
    mesh_on_prune(fixture.mesh, 1, &topics[1], 30, fixture.turn.now_ns); /* no topic of ours */
    mesh_on_prune(fixture.mesh, 99, &topics[0], 30, fixture.turn.now_ns);
    assert_int_equal(mesh_counts(fixture.mesh).backoffs, 1);
    assert_true(seconds_until_invited(&fixture, 100) >= 32);
    fixture_fini(&fixture);
}

/* Or reconnecting would be a way around it; but who has gone is owed no more than the minute of ours. */
static void a_backoff_outlives_the_connection_by_a_minute_at_most(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_init(&fixture, &mesh_defaults);
    add_peers(&fixture, 1, 2, true);
    join(&fixture);
    for (uint64_t peer = 1; peer <= 2; peer++) {
        mesh_on_prune(fixture.mesh, peer, &topics[0], 3600, fixture.turn.now_ns);
        mesh_remove_peer(fixture.mesh, peer, fixture.turn.now_ns);
    }
    add_peers(&fixture, 1, 2, true);
    fixture.turn.now_ns += 30 * SECOND_NS;
    graft(&fixture, 1);
    assert_false(is_in_mesh(&fixture, 1));
    assert_int_equal(count_actions(&fixture, MESH_PENALISE), 1);
    fixture.turn.now_ns += 31 * SECOND_NS;
    graft(&fixture, 2);
    assert_true(is_in_mesh(&fixture, 2));
    fixture_fini(&fixture);
}

/* Its clock may be ahead of ours by the slack, and its backoff has begun that much earlier. */
static void a_graft_at_the_end_of_its_backoff_is_taken(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_init(&fixture, &mesh_defaults);
    add_peers(&fixture, 1, 1, true);
    join(&fixture);
    mesh_on_prune(fixture.mesh, 1, &topics[0], 60, fixture.turn.now_ns);
    fixture.turn.now_ns += 57 * SECOND_NS;
    graft(&fixture, 1);
    assert_true(is_in_mesh(&fixture, 1));
    assert_int_equal(fixture.actions.count, 0);
    fixture_fini(&fixture);
}

/* P7 of a peer that grafts as fast as it can takes it below the graylist. */
static void grafting_through_its_backoff_again_and_again_ends_a_peer(void **state)
{
    (void)state;
    struct fixture fixture;
    double penalty = 0;
    fixture_init(&fixture, &mesh_defaults);
    add_peers(&fixture, 1, 1, true);
    join(&fixture);
    mesh_on_prune(fixture.mesh, 1, &topics[0], 60, fixture.turn.now_ns);
    for (int i = 0; i < 400; i++) {
        graft(&fixture, 1);
        assert_int_equal(count_actions(&fixture, MESH_PENALISE), 1);
        penalty += fixture.actions.list[0].penalty;
    }
    assert_false(is_in_mesh(&fixture, 1));
    set_score(&fixture, 1, score_defaults.behaviour_weight * penalty * penalty);
    assert_false(mesh_accepts(fixture.mesh, 1));
    fixture_fini(&fixture);
}

/* Peers 1 to 6 in the mesh and 7 to 12 outside, whose scores are 10; 60 heartbeats later. */
static size_t invited_beside(double score_inside, double threshold, size_t *bad)
{
    struct fixture fixture;
    struct mesh_options options = mesh_defaults;
    options.opportunistic_threshold = threshold;
    fixture_init(&fixture, &options);
    add_peers(&fixture, 1, 6, true);
    join(&fixture);
    add_peers(&fixture, 7, 6, true);
    for (uint64_t peer = 1; peer <= 12; peer++) {
        /* the middle of the mesh is what counts, not its best */
        set_score(&fixture, peer, peer <= 4 ? score_inside : peer <= 6 ? 100 : peer <= 9 ? 10 : 0);
    }
    wait_seconds(&fixture, 59);
    assert_int_equal(mesh_size(fixture.mesh, &topics[0]), 6);
    wait_seconds(&fixture, 1);
    size_t invited = mesh_size(fixture.mesh, &topics[0]) - 6;
    assert_int_equal(count_actions(&fixture, MESH_GRAFT), invited);
    for (uint64_t peer = 10; peer <= 12; peer++) {
        *bad += is_in_mesh(&fixture, peer);
    }
    fixture_fini(&fixture);
    return invited;
}

static void a_mesh_with_a_bad_median_takes_two_better_peers_in_each_minute(void **state)
{
    (void)state;
    size_t bad = 0;
    /* what time in the mesh earns (P1) is at most 0.1 */
    assert_int_equal(invited_beside(1, 5, &bad), 2);
    assert_int_equal(invited_beside(5, 5, &bad), 0);
    assert_int_equal(invited_beside(20, 30, &bad), 0); /* nobody outside is above the median */
    assert_int_equal(invited_beside(1, 0, &bad), 0);
    assert_int_equal(bad, 0);
}

static void leaving_a_topic_asks_for_five_seconds_only(void **state)
{
    (void)state;
    struct fixture fixture;
    fixture_init(&fixture, &mesh_defaults);
    add_peers(&fixture, 1, 6, true);
    join(&fixture);
    mesh_actions_clear(&fixture.actions);
    mesh_leave(fixture.mesh, &topics[0], &fixture.turn);
    assert_int_equal(count_actions(&fixture, MESH_PRUNE), 6);
    assert_int_equal(fixture.actions.list[0].backoff_s, 5);
    join(&fixture);
    assert_int_equal(mesh_size(fixture.mesh, &topics[0]), 0);
    wait_seconds(&fixture, 8);
    assert_int_equal(mesh_size(fixture.mesh, &topics[0]), 6);
    fixture_fini(&fixture);
}

static void refuses_options_that_contradict_each_other(void **state)
{
    (void)state;
    struct mesh *mesh = NULL;
    struct mesh_options options = mesh_defaults;
    options.d_low = 7;
    assert_int_equal(mesh_create(&mesh, &options, NULL), STATUS_BAD_ARGUMENT);
    options = mesh_defaults;
    options.gossip = 7;
    assert_int_equal(mesh_create(&mesh, &options, NULL), STATUS_BAD_ARGUMENT);
    options = mesh_defaults;
    options.d_out = 4; /* not below d_low, and more than half of d */
    assert_int_equal(mesh_create(&mesh, &options, NULL), STATUS_BAD_ARGUMENT);
    options = mesh_defaults;
    options.publish_threshold = -99;
    assert_int_equal(mesh_create(&mesh, &options, NULL), STATUS_BAD_ARGUMENT);
    options = mesh_defaults;
    options.graylist_threshold = -999;
    assert_int_equal(mesh_create(&mesh, &options, NULL), STATUS_BAD_ARGUMENT);
    assert_null(mesh);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(a_new_mesh_invites_six_and_leaves_enough_alone),
            cmocka_unit_test(a_topic_just_joined_takes_who_comes),
            cmocka_unit_test(a_topic_just_joined_takes_nobody_whom_a_heartbeat_would_not),
            cmocka_unit_test(invites_the_best_and_nobody_below_zero),
            cmocka_unit_test(too_large_a_mesh_keeps_the_best_and_three_outbound_ones),
            cmocka_unit_test(brings_in_outbound_peers_when_there_are_too_few),
            cmocka_unit_test(a_full_mesh_refuses_a_graft_unless_outbound_ones_are_missing),
            cmocka_unit_test(answers_no_graft_for_a_topic_that_is_not_ours),
            cmocka_unit_test(waits_as_long_as_a_prune_says_but_not_for_ever),
            cmocka_unit_test(a_graft_during_its_backoff_is_penalised_and_prolongs_it),
            cmocka_unit_test(a_prune_of_a_peer_outside_the_mesh_counts_as_well),
            cmocka_unit_test(a_backoff_outlives_the_connection_by_a_minute_at_most),
            cmocka_unit_test(a_graft_at_the_end_of_its_backoff_is_taken),
            cmocka_unit_test(grafting_through_its_backoff_again_and_again_ends_a_peer),
            cmocka_unit_test(a_mesh_with_a_bad_median_takes_two_better_peers_in_each_minute),
            cmocka_unit_test(leaving_a_topic_asks_for_five_seconds_only),
            cmocka_unit_test(refuses_options_that_contradict_each_other),
    };
    return cmocka_run_group_tests(tests, enter_rcu, leave_rcu);
}
