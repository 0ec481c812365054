/* SPDX-License-Identifier: MIT */

/* The expected scores are worked out by hand from the parameters of the network. */

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "router/peer_scores.h"
#include "router/topic_scores.h"

#define SECOND_NS         UINT64_C(1000000000)
#define DECAY_NS          (12 * SECOND_NS)
#define ALICE             1
#define BOB               2
#define assert_near(a, b) assert_true(fabs((a) - (b)) < 1e-9)

static struct topic_scores *create_topics(uint32_t lane)
{
    struct topic_scores *scores = NULL;
    assert_int_equal(topic_scores_create(&scores, &score_defaults, lane), STATUS_OK);
    return scores;
}

static struct peer_scores *create_peers(void)
{
    struct peer_scores *scores = NULL;
    assert_int_equal(peer_scores_create(&scores, &score_defaults), STATUS_OK);
    return scores;
}

static void time_in_the_mesh_counts_up_to_ten_seconds(void **state)
{
    (void)state;
    struct score_card card = {0};
    struct topic_scores *scores = create_topics(0);
    assert_int_equal(topic_scores_connect(scores, ALICE, &card, 0), STATUS_OK);
    topic_scores_grafted(scores, ALICE, 7, 100 * SECOND_NS);
    assert_near(score_card_total(&card), 0);
    topic_scores_tick(scores, 105 * SECOND_NS);
    assert_near(score_card_total(&card), 0.05);
    topic_scores_tick(scores, 500 * SECOND_NS);
    assert_near(score_card_total(&card), 0.1);
    topic_scores_pruned(scores, ALICE, 7, 501 * SECOND_NS);
    assert_near(score_card_total(&card), 0);
    topic_scores_destroy(&scores);
}

static void first_deliveries_count_up_to_ten_and_halve_every_twelve_seconds(void **state)
{
    (void)state;
    struct score_card card = {0};
    struct topic_scores *scores = create_topics(0);
    assert_int_equal(topic_scores_connect(scores, ALICE, &card, 0), STATUS_OK);
    topic_scores_tick(scores, 0);
    for (int i = 1; i <= 12; i++) {
        topic_scores_delivered_first(scores, ALICE, 3, SECOND_NS);
        assert_near(score_card_total(&card), i < 10 ? i : 10);
    }
    topic_scores_tick(scores, DECAY_NS - 1);
    assert_near(score_card_total(&card), 10);
    topic_scores_tick(scores, DECAY_NS);
    assert_near(score_card_total(&card), 5);
    /* 10 / 2^10 is below 0.01 and counts as nothing */
    for (uint64_t i = 2; i <= 9; i++) {
        topic_scores_tick(scores, i * DECAY_NS);
    }
    assert_near(score_card_total(&card), 10.0 / 512);
    topic_scores_tick(scores, 10 * DECAY_NS);
    assert_near(score_card_total(&card), 0);
    topic_scores_destroy(&scores);
}

static void invalid_messages_cost_the_square_of_their_number(void **state)
{
    (void)state;
    struct score_card card = {0};
    struct topic_scores *scores = create_topics(0);
    assert_int_equal(topic_scores_connect(scores, ALICE, &card, 0), STATUS_OK);
    topic_scores_tick(scores, 0);
    topic_scores_delivered_invalid(scores, ALICE, 3, 0);
    assert_near(score_card_total(&card), -100);
    topic_scores_delivered_invalid(scores, ALICE, 3, 0);
    assert_near(score_card_total(&card), -400);
    topic_scores_delivered_invalid(scores, ALICE, 4, 0); /* topics are counted apart */
    assert_near(score_card_total(&card), -500);
    topic_scores_tick(scores, DECAY_NS);
    assert_near(score_card_total(&card), -125);
    topic_scores_destroy(&scores);
}

static void peers_of_one_address_cost_the_square_of_what_is_over_five(void **state)
{
    (void)state;
    struct score_card cards[8] = {{0}};
    struct peer_scores *scores = create_peers();
    for (uint64_t i = 0; i < 8; i++) {
        assert_int_equal(peer_scores_connect(scores, i, 0x7F000001, &cards[i]), STATUS_OK);
        assert_near(score_card_total(&cards[i]), i < 5 ? 0 : -50.0 * (double)((i - 4) * (i - 4)));
    }
    peer_scores_tick(scores, 0);
    assert_near(score_card_total(&cards[0]), -450);
    for (uint64_t i = 0; i < 3; i++) {
        peer_scores_disconnect(scores, i, 0);
    }
    peer_scores_tick(scores, 1);
    assert_near(score_card_total(&cards[7]), 0);
    assert_int_equal(peer_scores_peer_count(scores), 5);
    for (uint64_t i = 3; i < 8; i++) {
        peer_scores_disconnect(scores, i, 0);
    }
    assert_int_equal(peer_scores_peer_count(scores), 0);
    assert_int_equal(peer_scores_address_count(scores), 0);
    peer_scores_destroy(&scores);
}

static void peers_of_an_unknown_address_share_no_place(void **state)
{
    (void)state;
    struct score_card cards[8] = {0};
    struct peer_scores *scores = create_peers();
    for (uint64_t i = 0; i < 8; i++) {
        assert_int_equal(peer_scores_connect(scores, 1 + i, 0, &cards[i]), STATUS_OK);
    }
    assert_int_equal(peer_scores_address_count(scores), 0);
    peer_scores_tick(scores, SECOND_NS);
    for (uint64_t i = 0; i < 8; i++) {
        assert_near(score_card_total(&cards[i]), 0);
        peer_scores_disconnect(scores, 1 + i, SECOND_NS);
    }
    assert_int_equal(peer_scores_peer_count(scores), 0);
    peer_scores_destroy(&scores);
}

static void a_threshold_of_none_turns_colocation_off(void **state)
{
    (void)state;
    struct score_card cards[20] = {{0}};
    struct score_options options = score_defaults;
    options.colocation_threshold = 0;
    struct peer_scores *scores = NULL;
    assert_int_equal(peer_scores_create(&scores, &options), STATUS_OK);
    for (uint64_t i = 0; i < 20; i++) {
        assert_int_equal(peer_scores_connect(scores, i, 9, &cards[i]), STATUS_OK);
    }
    peer_scores_tick(scores, 0);
    assert_near(score_card_total(&cards[0]), 0);
    peer_scores_destroy(&scores);
}

static void penalties_cost_their_square_and_fade(void **state)
{
    (void)state;
    struct score_card card = {0};
    struct peer_scores *scores = create_peers();
    assert_int_equal(peer_scores_connect(scores, ALICE, 1, &card), STATUS_OK);
    peer_scores_tick(scores, 0);
    peer_scores_penalise(scores, ALICE, 1);
    peer_scores_penalise(scores, ALICE, 2);
    peer_scores_penalise(scores, BOB, 2); /* unknown */
    assert_near(score_card_total(&card), -90);
    peer_scores_tick(scores, DECAY_NS);
    assert_near(score_card_total(&card), -10 * (3 * 0.986) * (3 * 0.986));
    peer_scores_destroy(&scores);
}

static void reconnecting_washes_nothing_off_for_ten_minutes(void **state)
{
    (void)state;
    struct score_card old = {0};
    struct score_card new = {0};
    struct topic_scores *topics = create_topics(1);
    struct peer_scores *peers = create_peers();
    assert_int_equal(topic_scores_connect(topics, ALICE, &old, 0), STATUS_OK);
    assert_int_equal(peer_scores_connect(peers, ALICE, 1, &old), STATUS_OK);
    topic_scores_grafted(topics, ALICE, 3, 0);
    topic_scores_delivered_first(topics, ALICE, 3, 0);
    topic_scores_delivered_invalid(topics, ALICE, 3, 0);
    peer_scores_penalise(peers, ALICE, 1);
    topic_scores_disconnect(topics, ALICE, 0);
    peer_scores_disconnect(peers, ALICE, 0);
    topic_scores_tick(topics, 600 * SECOND_NS);
    peer_scores_tick(peers, 600 * SECOND_NS);
    assert_int_equal(topic_scores_connect(topics, ALICE, &new, 600 * SECOND_NS), STATUS_OK);
    assert_int_equal(peer_scores_connect(peers, ALICE, 1, &new), STATUS_OK);
    assert_near(score_card_total(&new), -110);

    topic_scores_disconnect(topics, ALICE, 600 * SECOND_NS);
    peer_scores_disconnect(peers, ALICE, 600 * SECOND_NS);
    assert_int_equal(topic_scores_peer_count(topics), 1);
    topic_scores_tick(topics, 1200 * SECOND_NS + 1);
    peer_scores_tick(peers, 1200 * SECOND_NS + 1);
    assert_int_equal(topic_scores_peer_count(topics), 0);
    assert_int_equal(peer_scores_peer_count(peers), 0);
    topic_scores_destroy(&topics);
    peer_scores_destroy(&peers);
}

static void who_leaves_with_nothing_bad_is_forgotten_at_once(void **state)
{
    (void)state;
    struct score_card card = {0};
    struct topic_scores *scores = create_topics(0);
    assert_int_equal(topic_scores_connect(scores, ALICE, &card, 0), STATUS_OK);
    topic_scores_grafted(scores, ALICE, 3, 0);
    topic_scores_delivered_first(scores, ALICE, 3, 0);
    topic_scores_disconnect(scores, ALICE, 0);
    assert_int_equal(topic_scores_peer_count(scores), 0);
    topic_scores_delivered_first(scores, ALICE, 3, 0); /* a late one */
    assert_int_equal(topic_scores_peer_count(scores), 0);
    topic_scores_destroy(&scores);
}

static void lanes_add_up_on_one_card(void **state)
{
    (void)state;
    struct score_card card = {0};
    struct topic_scores *first = create_topics(0);
    struct topic_scores *last = create_topics(SCORE_LANES_MAX - 1);
    struct topic_scores *none = NULL;
    struct peer_scores *peers = create_peers();
    assert_int_equal(topic_scores_connect(first, ALICE, &card, 0), STATUS_OK);
    assert_int_equal(topic_scores_connect(last, ALICE, &card, 0), STATUS_OK);
    assert_int_equal(peer_scores_connect(peers, ALICE, 1, &card), STATUS_OK);
    topic_scores_delivered_first(first, ALICE, 0, 0);
    topic_scores_delivered_invalid(last, ALICE, 1, 0);
    peer_scores_penalise(peers, ALICE, 1);
    assert_near(score_card_total(&card), 1 - 100 - 10);
    assert_int_equal(
            topic_scores_create(&none, &score_defaults, SCORE_LANES_MAX), STATUS_BAD_ARGUMENT);
    topic_scores_destroy(&first);
    topic_scores_destroy(&last);
    peer_scores_destroy(&peers);
}

static void remembers_only_so_many_who_left(void **state)
{
    (void)state;
    struct score_card card = {0};
    struct score_options options = score_defaults;
    options.retained_max = 100;
    struct topic_scores *scores = NULL;
    assert_int_equal(topic_scores_create(&scores, &options, 0), STATUS_OK);
    for (uint64_t i = 0; i < 1000; i++) {
        assert_int_equal(topic_scores_connect(scores, i, &card, 0), STATUS_OK);
        topic_scores_delivered_invalid(scores, i, 0, 0);
        topic_scores_disconnect(scores, i, 0);
    }
    assert_int_equal(topic_scores_peer_count(scores), 100);
    topic_scores_tick(scores, 601 * SECOND_NS);
    assert_int_equal(topic_scores_peer_count(scores), 0);
    topic_scores_destroy(&scores);
}

static void leave_after_a_penalty(struct peer_scores *scores, uint64_t peer)
{
    struct score_card card = {0};
    assert_int_equal(peer_scores_connect(scores, peer, 0, &card), STATUS_OK);
    peer_scores_penalise(scores, peer, 1);
    peer_scores_disconnect(scores, peer, 0);
}

/* Who comes back, and who is forgotten, gives its place among them to another. */
static void remembers_only_so_many_who_left_with_penalties(void **state)
{
    (void)state;
    struct score_options options = score_defaults;
    struct peer_scores *scores = NULL;
    options.retained_max = 10;
    assert_int_equal(peer_scores_create(&scores, &options), STATUS_OK);
    for (uint64_t round = 0; round < 3; round++) {
        for (uint64_t i = 0; i < 20; i++) {
            leave_after_a_penalty(scores, ALICE);
        }
        for (uint64_t peer = 1; peer < 50; peer++) {
            leave_after_a_penalty(scores, ALICE + peer);
        }
        assert_int_equal(peer_scores_peer_count(scores), 10);
        peer_scores_tick(scores, 601 * SECOND_NS);
        assert_int_equal(peer_scores_peer_count(scores), 0);
    }
    peer_scores_destroy(&scores);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(time_in_the_mesh_counts_up_to_ten_seconds),
            cmocka_unit_test(first_deliveries_count_up_to_ten_and_halve_every_twelve_seconds),
            cmocka_unit_test(invalid_messages_cost_the_square_of_their_number),
            cmocka_unit_test(peers_of_one_address_cost_the_square_of_what_is_over_five),
            cmocka_unit_test(peers_of_an_unknown_address_share_no_place),
            cmocka_unit_test(a_threshold_of_none_turns_colocation_off),
            cmocka_unit_test(penalties_cost_their_square_and_fade),
            cmocka_unit_test(reconnecting_washes_nothing_off_for_ten_minutes),
            cmocka_unit_test(who_leaves_with_nothing_bad_is_forgotten_at_once),
            cmocka_unit_test(lanes_add_up_on_one_card),
            cmocka_unit_test(remembers_only_so_many_who_left),
            cmocka_unit_test(remembers_only_so_many_who_left_with_penalties),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
