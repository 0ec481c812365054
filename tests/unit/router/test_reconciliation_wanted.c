/* SPDX-License-Identifier: MIT */

/* What a session asks for and offers while others are under way (router/sync_wanted.h). */

#include "router/reconciliation.h"
#include "tests/support/cmocka.h"
#include "tests/support/sync_ids.h"
#include "tests/support/sync_side.h"

/*
 * One that lacks messages meets two that have them before anything was transferred, as starter or not:
 * the first is to send them all, the second one none, but for those that only it has.
 */
static void check_two_givers(size_t lacking, size_t shared, size_t apart_ns, unsigned starters)
{
    struct sync_side taker;
    struct sync_side givers[2];
    struct sync_gap window = {.from_ns = START_NS, .to_ns = START_NS + HOUR_NS};
    sync_side_init(&taker);
    assert_int_equal(sync_wanted_create(&taker.wanted, 200000, 1000), STATUS_OK);
    for (size_t g = 0; g < 2; g++) {
        sync_side_init(&givers[g]);
        for (uint64_t i = 0; i < lacking + shared; i++) {
            sync_side_insert(&givers[g], START_NS + SECOND_NS + (int64_t)(i * apart_ns), i);
        }
    }
    for (uint64_t i = lacking; i < lacking + shared; i++) {
        sync_side_insert(&taker, START_NS + SECOND_NS + (int64_t)(i * apart_ns), i);
    }
    sync_side_insert(&givers[1], START_NS + HOUR_NS / 2, 1000000);
    sync_side_insert(&taker, START_NS + HOUR_NS / 3, 2000000);
    for (size_t g = 0; g < 2; g++) {
        bool starts = (starters >> g) % 2 == 1;
        struct sync_talk_size session =
                starts ? sync_talk(&taker, &givers[g], window, &reconciliation_defaults)
                       : sync_talk(&givers[g], &taker, window, &reconciliation_defaults);
        assert_true(session.payloads < RECONCILIATION_ROUNDS_MAX / 2);
        assert_int_equal(givers[g].they_lack.count, g == 0 ? lacking : 1);
    }
    assert_int_equal(taker.we_lack.count, lacking + 1);
    assert_int_equal(taker.they_lack.count, 2);
    assert_int_equal(sync_wanted_count(taker.wanted), lacking + 1);
    sync_side_fini(&taker);
    sync_side_fini(&givers[0]);
    sync_side_fini(&givers[1]);
}

static void what_one_peer_is_to_send_no_other_is_asked_for(void **state)
{
    (void)state;
    static const struct {
        size_t lacking;
        size_t shared;
        size_t apart_ns;
    } cases[] = {{1, 0, 1}, {40, 0, 1000000}, {90, 300, 1000000}, {1500, 0, 1}, {1500, 0, 1000000},
            {1500, 200, 1000000}, {300, 3000, 100000}, {20000, 20000, 50000}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        for (unsigned starters = 0; starters < 4; starters++) {
            check_two_givers(cases[i].lacking, cases[i].shared, cases[i].apart_ns, starters);
        }
    }
}

/* Who lacks the same is told nothing of what we do not have yet, and what we have is sent. */
static void what_is_wanted_is_not_offered_to_others(void **state)
{
    (void)state;
    struct sync_gap window = {.from_ns = START_NS, .to_ns = START_NS + HOUR_NS};
    for (unsigned starter = 0; starter < 2; starter++) {
        struct sync_side giver;
        struct sync_side takers[2];
        sync_side_init(&giver);
        for (size_t t = 0; t < 2; t++) {
            sync_side_init(&takers[t]);
            assert_int_equal(sync_wanted_create(&takers[t].wanted, 200000, 1000), STATUS_OK);
        }
        for (uint64_t i = 0; i < 1500; i++) {
            sync_side_insert(&giver, START_NS + (int64_t)i * SECOND_NS, i);
        }
        sync_side_insert(&takers[0], START_NS + SECOND_NS / 2, 5000);
        (void)sync_talk(&takers[0], &giver, window, &reconciliation_defaults);
        assert_int_equal(takers[0].we_lack.count, 1500);
        takers[0].they_lack.count = 0;
        (void)sync_talk(&takers[starter], &takers[1 - starter], window, &reconciliation_defaults);
        assert_int_equal(takers[1].we_lack.count, 1);
        assert_int_equal(takers[0].they_lack.count, 1);
        /* So the one that has them can still be asked. */
        (void)sync_talk(&takers[1], &giver, window, &reconciliation_defaults);
        assert_int_equal(takers[1].we_lack.count, 1501);
        sync_side_fini(&giver);
        sync_side_fini(&takers[0]);
        sync_side_fini(&takers[1]);
    }
}

/* Two that want much of others, in the same places, come to an end with each other. */
static void two_that_want_of_others_come_to_an_end(void **state)
{
    (void)state;
    struct sync_side sides[2];
    struct sync_gap window = {.from_ns = START_NS, .to_ns = START_NS + HOUR_NS};
    for (uint64_t s = 0; s < 2; s++) {
        sync_side_init(&sides[s]);
        assert_int_equal(sync_wanted_create(&sides[s].wanted, 200000, 1000), STATUS_OK);
        for (uint64_t i = 0; i < 3000; i++) {
            struct id_record far = make_record(START_NS + (int64_t)i * SECOND_NS,
                    1000000 * (s + 1) + i, &sync_side_topics[0], "/a/1/x/proto");
            struct id_key key = key_of(&far);
            sync_wanted_expect(sides[s].wanted, 99, &key, 1, 0);
            sync_side_insert(&sides[s], START_NS + (int64_t)i * SECOND_NS + 1, 2 * i + s);
        }
    }
    struct sync_talk_size session =
            sync_talk(&sides[0], &sides[1], window, &reconciliation_defaults);
    sync_talk_report("two that want 3,000 each of others", &session);
    assert_int_equal(sides[0].they_lack.count, 3000);
    assert_int_equal(sides[1].they_lack.count, 3000);
    sync_side_fini(&sides[0]);
    sync_side_fini(&sides[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(what_one_peer_is_to_send_no_other_is_asked_for),
            cmocka_unit_test(what_is_wanted_is_not_offered_to_others),
            cmocka_unit_test(two_that_want_of_others_come_to_an_end),
    };
    return cmocka_run_group_tests(tests, sync_side_name_topics, NULL);
}
