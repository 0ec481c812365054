/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "codec/varint.h"
#include "hash/sha256.h"
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

static void check_honest_again(struct live_node *live)
{
    struct stranger honest;
    stranger_start(&honest, &plain, live->address);
    stranger_subscribe(&honest, LIVE_NODE_TOPIC);
    wait_for_way(live, &honest);
    stranger_stop(&honest);
}

#define TEXT(bytes)                                                                                \
    {                                                                                              \
        (const uint8_t *)(bytes), sizeof(bytes) - 1                                                \
    }

/* One of each kind of control entry: cut short, of a wrong type, or a group. */
static void malformed_control_of_every_kind_ends_its_peer_and_nobody_else(void **state)
{
    (void)state;
    static const struct span malformed[] = {
            TEXT("\x1a\x03\x0a\x05\x0a"),             /* IHAVE that is longer than the control */
            TEXT("\x1a\x04\x0a\x02\x12\x05"),         /* its id is longer than the IHAVE */
            TEXT("\x1a\x04\x12\x02\x0a\x7f"),         /* IWANT, likewise */
            TEXT("\x1a\x04\x1a\x02\x0a\x09"),         /* GRAFT: its topic */
            TEXT("\x1a\x04\x22\x02\x0a\x09"),         /* PRUNE: its topic */
            TEXT("\x1a\x05\x22\x03\x18\xff\xff"),     /* PRUNE: a backoff without end */
            TEXT("\x1a\x06\x22\x04\x12\x02\x0a\x09"), /* PRUNE: a peer */
            TEXT("\x1a\x04\x2a\x02\x0a\x09"),         /* IDONTWANT: its id */
            TEXT("\x0a\x02\x12\x09"),                 /* SUBSCRIBE: its topic */
            TEXT("\x1a\x02\x0b\x0c"),                 /* a group where IHAVE stands */
            TEXT("\x1a\x02\x00\x00"),                 /* field number 0 */
    };
    struct live_node live;
    live_node_start(&live, NULL);
    for (size_t i = 0; i < sizeof(malformed) / sizeof(malformed[0]); i++) {
        struct stranger hostile;
        stranger_start(&hostile, &plain, live.address);
        say_many(&hostile, &malformed[i], 1, 1);
        stranger_wait_disconnected(&hostile);
        stranger_stop(&hostile);
        live_node_wait_metric(&live, METRIC_RELAY_FRAMES_MALFORMED, i + 1);
    }
    check_honest_again(&live);
    live_node_stop(&live);
}

/* Well-formed, and of no use: topics of nobody, ids of any length, numbers of any size. */
static void odd_control_is_passed_over(void **state)
{
    (void)state;
    static const struct span odd[] = {
            TEXT("\x1a\x00"),                     /* control without anything */
            TEXT("\x1a\x02\x0a\x00"),             /* IHAVE without topic and ids */
            TEXT("\x1a\x04\x12\x02\x0a\x00"),     /* IWANT of an empty id */
            TEXT("\x1a\x05\x1a\x03\x0a\x01\xff"), /* GRAFT: a topic that is not UTF-8 */
            TEXT("\x1a\x04\x1a\x02\x0a\x00"),     /* and one without name */
            TEXT("\x1a\x1e\x22\x1c\x0a" TOPIC_FIELD
                 "\x18\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"), /* PRUNE for 2^64 - 1 seconds */
            TEXT("\x1a\x06\x2a\x04\x0a\x02xx"),                   /* IDONTWANT of two bytes */
            TEXT("\x1a\x04\x32\x02\x0a\x00"), /* a control entry of the future */
            TEXT("\x0a\x02\x08\x01"),         /* SUBSCRIBE to nothing */
    };
    struct stranger stranger;
    struct live_node live;
    live_node_start(&live, NULL);
    stranger_start(&stranger, &plain, live.address);
    for (size_t i = 0; i < sizeof(odd) / sizeof(odd[0]); i++) {
        say_many(&stranger, &odd[i], 1, 3);
    }
    stranger_subscribe(&stranger, LIVE_NODE_TOPIC);
    wait_for_way(&live, &stranger);
    assert_true(stranger_is_connected(&stranger));
    assert_int_equal(live_node_metric(&live, METRIC_RELAY_FRAMES_MALFORMED), 0);
    stranger_stop(&stranger);
    live_node_stop(&live);
}

static void say_topics(struct stranger *stranger, unsigned first, unsigned count)
{
    static const char before[] = "\x0a\x0c\x08\x01\x12\x08";
    char *entries = malloc((size_t)count * 16);
    assert_non_null(entries);
    for (unsigned i = 0; i < count; i++) {
        char name[9];
        snprintf(name, sizeof(name), "%08x", first + i);
        memcpy(entries + (size_t)i * 14, before, sizeof(before) - 1);
        memcpy(entries + (size_t)i * 14 + sizeof(before) - 1, name, 8);
    }
    struct span all = span_of((const uint8_t *)entries, (size_t)count * 14);
    say_many(stranger, &all, 1, 1);
    free(entries);
}

static void topics_without_end_are_bounded_and_go_with_their_peer(void **state)
{
    (void)state;
    enum {
        RPCS = 50,
        TOPICS = 1000
    };
    struct stranger hostile;
    struct live_node live;
    live_node_start(&live, NULL);
    stranger_start(&hostile, &plain, live.address);
    for (unsigned i = 0; i < RPCS; i++) {
        say_topics(&hostile, i * TOPICS, TOPICS);
    }
    live_node_wait_metric(&live, METRIC_RELAY_TOPICS_OVER_CAP, RPCS * TOPICS - 1024);
    assert_true(stranger_is_connected(&hostile));
    assert_int_equal(live_node_metric(&live, METRIC_RELAY_EVENTS_OVER_SHARE), 0);
    check_honest_again(&live);
    stranger_stop(&hostile);
    live_node_wait_metric(
            &live, METRIC_RELAY_PEERS_LEFT, live_node_metric(&live, METRIC_RELAY_PEERS_JOINED));
    live_node_stop(&live);
}

/* C8 of the field reports. */
static void a_storm_of_requests_for_one_message_gets_three_copies(void **state)
{
    (void)state;
    static uint8_t message[MESSAGE + 128];
    uint8_t id[SHA256_BYTES];
    uint8_t entry[6 + SHA256_BYTES] = {0x1a, 0x24, 0x12, 0x22, 0x0a, 0x20};
    struct stranger hostile;
    struct live_node live;
    live_node_start(&live, NULL);
    stranger_start(&hostile, &plain, live.address);
    live_node_wait_metric(&live, METRIC_RELAY_PEERS_JOINED, 1);
    /* It is not subscribed, so it gets nothing by itself. */
    struct span bytes = span_of(message, live_message(message, 1, MESSAGE));
    sha256(id, (struct sha256_pieces){&bytes, 1});
    memcpy(entry + 6, id, sizeof(id));
    live_node_publish(&live, bytes);
    live_node_wait(&live, 1);
    struct span request = span_of(entry, sizeof(entry));
    for (size_t i = 0; i < 1000; i++) {
        say_many(&hostile, &request, 1, 1);
    }
    live_node_wait_metric(&live, METRIC_RELAY_IWANT_IN, 1000);
    live_node_wait_metric(&live, (enum metric)LEDGER_RELAY_OUT_DELIVERED, 3);
    stranger_wait_received(&hostile, (size_t)3 * MESSAGE);
    check_honest_again(&live);
    assert_true(stranger_received(&hostile) < (size_t)4 * MESSAGE);
    stranger_stop(&hostile);
    live_node_stop(&live);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(a_flood_of_control_entries_by_one_peer_does_not_silence_another),
            cmocka_unit_test(a_subscription_that_was_lost_in_a_flood_is_made_good),
            cmocka_unit_test(one_peer_cannot_fill_the_frame_budget_and_loses_nothing),
            cmocka_unit_test(malformed_control_of_every_kind_ends_its_peer_and_nobody_else),
            cmocka_unit_test(odd_control_is_passed_over),
            cmocka_unit_test(topics_without_end_are_bounded_and_go_with_their_peer),
            cmocka_unit_test(a_storm_of_requests_for_one_message_gets_three_copies),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
