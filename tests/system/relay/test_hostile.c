/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "codec/varint.h"
#include "net/protocols/relay.h"
#include "node/network.h"
#include "tests/support/cmocka.h"
#include "tests/support/live_node.h"
#include "tests/support/stranger.h"

enum {
    MESSAGE = 50000,
    MESSAGES = 100, /* 5 MB */
    STALL_S = 600   /* until the test ends it */
};

static const struct stranger_options plain = {0};

#define TOPIC_FIELD "\x0f" LIVE_NODE_TOPIC

static void stall_decode(struct live_node *live)
{
    node_stall(live->node, NODE_ROLE_DECODE,
            clock_monotonic_ns() + (uint64_t)STALL_S * NANOSECONDS_PER_SECOND);
}

static void go_on(struct live_node *live)
{
    node_stall(live->node, NODE_ROLE_DECODE, 0);
}

/* An RPC of count entries, which go round. */
static void say_many(
        struct stranger *stranger, const struct span entries[], size_t entry_count, size_t count)
{
    size_t length = 0;
    for (size_t i = 0; i < count; i++) {
        length += entries[i % entry_count].length;
    }
    uint8_t *rpc = malloc(length + VARINT_MAX_BYTES);
    assert_non_null(rpc);
    uint8_t *end = varint_write(rpc, length);
    for (size_t i = 0; i < count; i++) {
        memcpy(end, entries[i % entry_count].bytes, entries[i % entry_count].length);
        end += entries[i % entry_count].length;
    }
    stranger_say(stranger, span_of(rpc, (size_t)(end - rpc)));
    free(rpc);
}

/* Publishes until the stranger gets one: the lane hears of it behind what it has heard before. */
static void wait_for_way(struct live_node *live, struct stranger *stranger)
{
    uint8_t message[256];
    size_t before = live_node_received(live);
    size_t received = stranger_received(stranger);
    uint64_t end_ns = clock_monotonic_ns() + (uint64_t)LIVE_NODE_WAIT_S * NANOSECONDS_PER_SECOND;
    for (uint64_t i = 1; stranger_received(stranger) < received + 200; i++) {
        assert_true(clock_monotonic_ns() < end_ns);
        live_node_publish(live, span_of(message, live_message(message, before + i, 200)));
        live_node_wait(live, before + i);
    }
}

/* What the honest peer says meanwhile is heard: it gets the node's message, and the node gets its. */
static void check_honest(struct live_node *live, struct stranger *honest)
{
    uint8_t message[256];
    stranger_subscribe(honest, LIVE_NODE_TOPIC);
    stranger_publish(honest, LIVE_NODE_TOPIC, span_of(message, live_message(message, 0, 100)));
    live_node_wait_metric(live, METRIC_RELAY_PEERS_JOINED, 2);
    go_on(live);
    live_node_wait(live, 1);
    wait_for_way(live, honest);
}

static void check_flood(const struct span entries[], size_t entry_count, uint64_t seen)
{
    struct stranger hostile;
    struct stranger honest;
    struct live_node live;
    live_node_start(&live, NULL);
    stranger_start(&hostile, &plain, live.address);
    stall_decode(&live);
    for (size_t i = 0; i < 80; i++) {
        say_many(&hostile, entries, entry_count, 1000);
    }
    live_node_wait_metric(&live, METRIC_RELAY_EVENTS_OVER_SHARE, 80000 - seen);
    stranger_start(&honest, &plain, live.address);
    check_honest(&live, &honest);
    assert_int_equal(live_node_metric(&live, METRIC_RELAY_EVENTS_DROPPED), 0);
    stranger_stop(&honest);
    stranger_stop(&hostile);
    live_node_stop(&live);
}

static void a_flood_of_control_entries_by_one_peer_does_not_silence_another(void **state)
{
    (void)state;
    static const struct span offers[] = {
            {(const uint8_t *)"\x1a\x16\x0a\x14\x0a" TOPIC_FIELD "\x12\x01x", 24}};
    static const struct span requests[] = {{(const uint8_t *)"\x1a\x05\x12\x03\x0a\x01x", 7}};
    static const struct span grafts[] = {{(const uint8_t *)"\x1a\x13\x1a\x11\x0a" TOPIC_FIELD, 21}};
    static const struct span comings_and_goings[] = {
            {(const uint8_t *)"\x0a\x13\x08\x01\x12" TOPIC_FIELD, 21},
            {(const uint8_t *)"\x0a\x13\x08\x00\x12" TOPIC_FIELD, 21}};
    check_flood(offers, 1, RELAY_PEER_EVENTS_MAX);
    check_flood(requests, 1, RELAY_PEER_EVENTS_MAX);
    check_flood(grafts, 1, RELAY_PEER_TOPIC_EVENTS_MAX);
    check_flood(comings_and_goings, 2, RELAY_PEER_TOPIC_EVENTS_MAX);
}

/* The lanes miss the last word of it, and are told again. */
static void a_subscription_that_was_lost_in_a_flood_is_made_good(void **state)
{
    (void)state;
    static const struct span leave[] = {{(const uint8_t *)"\x0a\x13\x08\x00\x12" TOPIC_FIELD, 21}};
    struct stranger stranger;
    struct live_node live;
    live_node_start(&live, NULL);
    stranger_start(&stranger, &plain, live.address);
    stall_decode(&live);
    for (size_t i = 0; i < 5; i++) {
        say_many(&stranger, leave, 1, 1000);
    }
    live_node_wait_metric(
            &live, METRIC_RELAY_EVENTS_OVER_SHARE, 5000 - RELAY_PEER_TOPIC_EVENTS_MAX);
    stranger_subscribe(&stranger, LIVE_NODE_TOPIC);
    /* The subscription and the GRAFT beside it. */
    live_node_wait_metric(
            &live, METRIC_RELAY_EVENTS_OVER_SHARE, 5002 - RELAY_PEER_TOPIC_EVENTS_MAX);
    go_on(&live);
    wait_for_way(&live, &stranger);
    stranger_stop(&stranger);
    live_node_stop(&live);
}

static void one_peer_cannot_fill_the_frame_budget_and_loses_nothing(void **state)
{
    (void)state;
    static const char *const settings[] = {
            "memory-budget", "32MiB", "relay-peer-budget", "1MiB", NULL};
    static uint8_t message[MESSAGE + 128];
    struct stranger sender;
    struct stranger honest;
    struct live_node live;
    live_node_start(&live, settings);
    stranger_start(&sender, &plain, live.address);
    stranger_subscribe(&sender, LIVE_NODE_TOPIC);
    stall_decode(&live);
    for (uint64_t i = 0; i < MESSAGES; i++) {
        stranger_publish(
                &sender, LIVE_NODE_TOPIC, span_of(message, live_message(message, i, MESSAGE)));
    }
    live_node_wait_metric(&live, METRIC_RELAY_WAITS, 1);
    assert_true(frame_budget_used(node_budget(live.node)) <= (size_t)1 << 20);
    stranger_start(&honest, &plain, live.address);
    stranger_subscribe(&honest, LIVE_NODE_TOPIC);
    stranger_publish(
            &honest, LIVE_NODE_TOPIC, span_of(message, live_message(message, MESSAGES, MESSAGE)));
    go_on(&live);
    live_node_wait_metric(&live, (enum metric)LEDGER_INTAKE_DELIVERED, MESSAGES + 1);
    stranger_stop(&honest);
    stranger_stop(&sender);
    live_node_stop(&live);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(a_flood_of_control_entries_by_one_peer_does_not_silence_another),
            cmocka_unit_test(a_subscription_that_was_lost_in_a_flood_is_made_good),
            cmocka_unit_test(one_peer_cannot_fill_the_frame_budget_and_loses_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
