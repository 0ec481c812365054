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
            "lightpushlightpush:1/1s", "10/2", "10 2m"};
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
}

static struct rate_limiter *make(uint64_t volume, uint64_t period_ns)
{
    struct rate_limiter *limiter;
    struct rate_limit limit = {.volume = volume, .period_ns = period_ns};
    assert_int_equal(rate_limiter_create(&limiter, limit), STATUS_OK);
    return limiter;
}

static bool admits(struct rate_limiter *limiter, uint32_t peer, uint64_t now_ns)
{
    return rate_limiter_admit(limiter, span_of(&peer, sizeof(peer)), now_ns);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(texts_are_read_as_the_reference_reads_them),
            cmocka_unit_test(what_is_no_limit_is_named),
            cmocka_unit_test(the_defaults_are_the_references),
            cmocka_unit_test(a_period_holds_so_many_requests_and_no_more),
            cmocka_unit_test(no_limit_admits_everything),
            cmocka_unit_test(a_greedy_peer_takes_nothing_from_the_others),
            cmocka_unit_test(a_flood_of_peers_costs_no_memory_and_stops_nobody),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
