/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "router/rate_limit.h"

#define SECOND ((uint64_t)NANOSECONDS_PER_SECOND)

static struct rate_limits parse(const char *a, const char *b, const char *c)
{
    const char *const texts[] = {a, b, c};
    struct rate_limits limits;
    size_t bad;
    size_t count = c != NULL ? 3 : b != NULL ? 2 : 1;
    assert_int_equal(rate_limits_parse(&limits, texts, count, &bad), STATUS_OK);
    return limits;
}

static void check(struct rate_limit limit, uint64_t volume, uint64_t period_ns)
{
    assert_int_equal(limit.volume, volume);
    assert_int_equal(limit.period_ns, period_ns);
}

/* What the reference's parser makes of them. */
static void texts_are_read_as_the_reference_reads_them(void **state)
{
    (void)state;
    struct rate_limits limits = parse("10/2m", NULL, NULL);
    check(limits.of[RATE_STORE], 10, 120 * SECOND);
    check(limits.of[RATE_LIGHTPUSH], 10, 120 * SECOND);
    check(limits.of[RATE_PEER_EXCHANGE], 10, 120 * SECOND);
    check(limits.of[RATE_FILTER], 30, 60 * SECOND);

    limits = parse("  store  :10  /1h", "lightpush:  6 /  100ms ", "FILTER:7/3S");
    check(limits.of[RATE_STORE], 10, 3600 * SECOND);
    check(limits.of[RATE_LIGHTPUSH], 6, SECOND / 10);
    check(limits.of[RATE_FILTER], 7, 3 * SECOND);
    check(limits.of[RATE_PEER_EXCHANGE], 0, 0);

    limits = parse("LIGHTPUSH: 10/ 1m", "px:10/2 s ", "storeV3:        12  /1s");
    check(limits.of[RATE_LIGHTPUSH], 10, 60 * SECOND);
    check(limits.of[RATE_PEER_EXCHANGE], 10, 2 * SECOND);
    check(limits.of[RATE_STORE], 12, SECOND);

    limits = parse("px:10/2m", "3/1s", "px:11/4m");
    check(limits.of[RATE_PEER_EXCHANGE], 11, 240 * SECOND);
    check(limits.of[RATE_STORE], 3, SECOND);
    check(parse("storev3:1/1s", "store:2/1s", NULL).of[RATE_STORE], 1, SECOND);
    check(parse("store:2/1s", "storev3:1/1s", NULL).of[RATE_STORE], 1, SECOND);
    check(parse("lightpush:0/1s", NULL, NULL).of[RATE_LIGHTPUSH], 0, SECOND);
}

/* "each" is our own word; filter counts each peer by itself in the reference, too. */
static void all_but_filter_are_shared_unless_it_says_each(void **state)
{
    (void)state;
    struct rate_limits limits = parse("10/2m", "store:5/1s EACH", "filter:7/3s");
    assert_true(limits.of[RATE_LIGHTPUSH].is_shared);
    assert_true(limits.of[RATE_PEER_EXCHANGE].is_shared);
    assert_false(limits.of[RATE_STORE].is_shared);
    assert_false(limits.of[RATE_FILTER].is_shared);
    check(limits.of[RATE_STORE], 5, SECOND);
    limits = parse("10/2m each", "filter:7/3s  each ", NULL);
    assert_false(limits.of[RATE_LIGHTPUSH].is_shared);
    assert_false(limits.of[RATE_FILTER].is_shared);
}

static void assert_refused(const char *text)
{
    const char *const texts[] = {"1/1s", text};
    struct rate_limits limits;
    size_t bad = 0;
    if (rate_limits_parse(&limits, texts, 2, &bad) != STATUS_BAD_ARGUMENT) {
        fail_msg("taken: %s", text);
    }
    assert_int_equal(bad, 1);
}

static void what_is_no_limit_is_named(void **state)
{
    (void)state;
    static const char *const bad_texts[] = {"", "10", "10/", "/1s", "10/2d", "10/1.5s", "-1/1s",
            "10/s", "10/1sx", "10/1s 2", ":10/1s", "relay:10/1s", "global:1/1s", "store 10/1s",
            "storev2:1/1s", "99999999999999999999/1s", "1/99999999999999999999s",
            "lightpushlightpu:1/1s", "lightpushlightpush:1/1s", "10/2", "10 2m", "10/2m all",
            "10/2m each each", "10/2m each 1"};
    for (size_t i = 0; i < sizeof(bad_texts) / sizeof(bad_texts[0]); i++) {
        assert_refused(bad_texts[i]);
    }
}

static void the_defaults_are_the_references(void **state)
{
    (void)state;
    struct rate_limits limits;
    rate_limits_default(&limits);
    check(limits.of[RATE_STORE], 0, 0);
    check(limits.of[RATE_FILTER], 100, SECOND);
    check(limits.of[RATE_LIGHTPUSH], 5, SECOND);
    check(limits.of[RATE_PEER_EXCHANGE], 5, SECOND);
    for (size_t i = 0; i < RATE_SERVICES; i++) {
        assert_false(limits.of[i].is_shared);
    }
}

static struct rate_limiter *make(uint64_t volume, uint64_t period_ns)
{
    struct rate_limiter *limiter;
    struct rate_limit limit = {.volume = volume, .period_ns = period_ns};
    assert_int_equal(rate_limiter_create(&limiter, limit), STATUS_OK);
    return limiter;
}

static struct rate_limiter *make_shared(uint64_t volume, uint64_t period_ns)
{
    struct rate_limiter *limiter;
    struct rate_limit limit = {.volume = volume, .period_ns = period_ns, .is_shared = true};
    assert_int_equal(rate_limiter_create(&limiter, limit), STATUS_OK);
    return limiter;
}

static bool admits(struct rate_limiter *limiter, uint32_t peer, uint64_t now_ns)
{
    return rate_limiter_admit(limiter, span_of(&peer, sizeof(peer)), now_ns);
}

static size_t count_admitted(
        struct rate_limiter *limiter, uint32_t peer, uint64_t now_ns, size_t requests)
{
    size_t count = 0;
    for (size_t i = 0; i < requests; i++) {
        count += admits(limiter, peer, now_ns);
    }
    return count;
}

static void a_period_holds_so_many_requests_and_no_more(void **state)
{
    (void)state;
    struct rate_limiter *limiter = make(5, SECOND);
    uint64_t now = 1000 * SECOND;
    for (size_t i = 0; i < 5; i++) {
        assert_true(admits(limiter, 1, now));
    }
    for (size_t i = 0; i < 1000; i++) {
        assert_false(admits(limiter, 1, now));
    }
    assert_true(admits(limiter, 2, now));
    assert_false(admits(limiter, 1, now + SECOND / 5 - 1));
    assert_true(admits(limiter, 1, now + SECOND / 5)); /* refusals have cost nothing */
    assert_false(admits(limiter, 1, now + SECOND / 5));
    for (size_t i = 0; i < 5; i++) {
        assert_true(admits(limiter, 1, now + 3 * SECOND));
    }
    assert_false(admits(limiter, 1, now + 3 * SECOND));
    rate_limiter_destroy(&limiter);
}

static void no_limit_admits_everything(void **state)
{
    (void)state;
    struct rate_limiter *limiter = make(0, SECOND);
    assert_null(limiter);
    assert_true(admits(limiter, 1, 0));
    limiter = make(5, 0);
    assert_null(limiter);
    rate_limiter_destroy(&limiter);
}

/* One asks a thousand times a second, twenty once: for a minute. */
static void a_greedy_peer_takes_nothing_from_the_others(void **state)
{
    (void)state;
    struct rate_limiter *limiter = make(5, SECOND);
    size_t greedy = 0;
    size_t others = 0;
    uint64_t start = 7 * SECOND;
    for (uint64_t ms = 0; ms < 60000; ms++) {
        uint64_t now = start + ms * NANOSECONDS_PER_MILLISECOND;
        greedy += admits(limiter, 0, now);
        for (uint32_t peer = 1; peer <= 20; peer++) {
            others += ms % 1000 == peer && admits(limiter, peer, now);
        }
    }
    assert_int_equal(others, 20 * 60);
    assert_true(greedy >= 300 && greedy <= 305);
    rate_limiter_destroy(&limiter);
}

/* Or new peer ids, which cost nothing, would buy a greedy peer as many requests as it likes. */
static void a_flood_of_peers_does_not_make_up_for_what_a_greedy_one_has_used(void **state)
{
    enum {
        GREEDY = 20
    };
    (void)state;
    struct rate_limiter *limiter = make(5, SECOND);
    uint64_t now = 1000 * SECOND;
    for (uint32_t peer = 0; peer < GREEDY; peer++) {
        assert_int_equal(count_admitted(limiter, peer, now, 100), 5);
    }
    for (uint32_t peer = GREEDY; peer < 4 * RATE_LIMITER_PEERS; peer++) {
        (void)admits(limiter, peer, now);
    }
    for (uint32_t peer = 0; peer < GREEDY; peer++) {
        assert_false(admits(limiter, peer, now));
    }
    rate_limiter_destroy(&limiter);
}

/* More peers than the table holds, then those of before once more. */
static void a_flood_of_peers_costs_no_memory_and_stops_nobody(void **state)
{
    (void)state;
    struct rate_limiter *limiter = make(2, SECOND);
    uint64_t now = 5 * SECOND;
    for (uint32_t peer = 0; peer < 10 * RATE_LIMITER_PEERS; peer++) {
        assert_true(admits(limiter, peer, now));
    }
    now += SECOND;
    for (uint32_t peer = 0; peer < 100; peer++) {
        assert_true(admits(limiter, peer, now));
        assert_true(admits(limiter, peer, now));
        assert_false(admits(limiter, peer, now));
    }
    rate_limiter_destroy(&limiter);
}

/* The numbers are of the reference's own test of its limiter (tests/common/test_requestratelimiter). */
static void a_shared_limit_is_that_of_the_reference(void **state)
{
    (void)state;
    uint64_t now = 1000 * SECOND;
    uint64_t minute = 60 * SECOND;
    struct rate_limiter *limiter = make_shared(10, 2 * minute);
    assert_int_equal(count_admitted(limiter, 1, now, 10), 10);
    assert_false(admits(limiter, 1, now)); /* the first period's number is used up */
    now += 3 * minute;                     /* 15 of 20 in two periods are there again */
    assert_int_equal(count_admitted(limiter, 1, now, 4), 4);
    for (uint32_t i = 0; i < 5; i++) {
        assert_true(admits(limiter, 2 + i % 2, now));
    }
    rate_limiter_destroy(&limiter);

    now = 1000 * SECOND;
    limiter = make_shared(1, SECOND);
    assert_true(admits(limiter, 1, now + SECOND / 2));
    assert_false(admits(limiter, 1, now + SECOND * 8 / 10));
    assert_false(admits(limiter, 1, now + SECOND * 1499 / 1000));
    assert_true(admits(limiter, 1, now + SECOND * 1501 / 1000));
    rate_limiter_destroy(&limiter);
}

/* What is saved up in ten periods of a second is 50; one peer may have 37, and leaves one or two. */
static void one_peer_has_three_quarters_and_the_rest_is_for_others(void **state)
{
    (void)state;
    struct rate_limiter *limiter = make_shared(5, SECOND);
    uint64_t now = 1000 * SECOND;
    assert_int_equal(count_admitted(limiter, 1, now, 100), 5);
    now += 100 * SECOND;
    assert_int_equal(count_admitted(limiter, 1, now, 1000), 37);
    assert_int_equal(count_admitted(limiter, 2, now, 1000), 11);
    assert_int_equal(count_admitted(limiter, 3, now, 1000), 2);
    assert_int_equal(count_admitted(limiter, 4, now, 1000), 0);
    /* What was refused for the sake of all has cost the peer nothing. */
    now += 2 * SECOND;
    assert_int_equal(count_admitted(limiter, 4, now, 1000), 8);
    rate_limiter_destroy(&limiter);
}

/* The reference's ratios: 10 up to a second, 3 up to a minute, 2 beyond (request_limiter.nim). */
static void a_shared_limit_saves_up_for_the_periods_of_the_reference(void **state)
{
    static const struct {
        uint64_t period_ns;
        size_t periods;
    } cases[] = {{SECOND / 10, 10}, {SECOND, 10}, {SECOND + 1, 3}, {60 * SECOND, 3},
            {60 * SECOND + 1, 2}};
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct rate_limiter *limiter = make_shared(8, cases[i].period_ns);
        uint64_t now = 1000 * SECOND;
        size_t admitted = 0;
        assert_true(admits(limiter, 1000, now));
        now += 100 * cases[i].period_ns;
        for (uint32_t peer = 0; peer < 100; peer++) {
            admitted += admits(limiter, peer, now);
        }
        assert_int_equal(admitted, 8 * cases[i].periods);
        rate_limiter_destroy(&limiter);
    }
}

/* Field report H5, with a limit that the others stay below. */
static void a_greedy_peer_leaves_a_quarter_of_a_shared_limit(void **state)
{
    (void)state;
    struct rate_limiter *limiter = make_shared(100, SECOND);
    size_t greedy = 0;
    size_t others = 0;
    for (uint64_t ms = 0; ms < 60000; ms++) {
        uint64_t now = 7 * SECOND + ms * NANOSECONDS_PER_MILLISECOND;
        greedy += admits(limiter, 0, now);
        for (uint32_t peer = 1; peer <= 20; peer++) {
            others += ms % 1000 == peer && admits(limiter, peer, now);
        }
    }
    assert_true(others >= 20 * 60 * 99 / 100);
    assert_true(greedy <= 75 * 60 + 750);
    rate_limiter_destroy(&limiter);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(texts_are_read_as_the_reference_reads_them),
            cmocka_unit_test(what_is_no_limit_is_named),
            cmocka_unit_test(the_defaults_are_the_references),
            cmocka_unit_test(a_period_holds_so_many_requests_and_no_more),
            cmocka_unit_test(no_limit_admits_everything),
            cmocka_unit_test(a_greedy_peer_takes_nothing_from_the_others),
            cmocka_unit_test(all_but_filter_are_shared_unless_it_says_each),
            cmocka_unit_test(a_shared_limit_is_that_of_the_reference),
            cmocka_unit_test(one_peer_has_three_quarters_and_the_rest_is_for_others),
            cmocka_unit_test(a_shared_limit_saves_up_for_the_periods_of_the_reference),
            cmocka_unit_test(a_greedy_peer_leaves_a_quarter_of_a_shared_limit),
            cmocka_unit_test(a_flood_of_peers_does_not_make_up_for_what_a_greedy_one_has_used),
            cmocka_unit_test(a_flood_of_peers_costs_no_memory_and_stops_nobody),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
