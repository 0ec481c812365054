/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "codec/gossip_writer.h"
#include "codec/wire.h"
#include "net/protocols/relay.h"
#include "node/network.h"
#include "tests/support/cmocka.h"
#include "tests/support/heap.h"
#include "tests/support/live_node.h"
#include "tests/support/stranger.h"

enum {
    LARGE = 50000
};

static const struct stranger_options plain = {0};

/* The stranger's message reaches the application, and the application's the stranger. */
static void check_both_ways(struct live_node *live, struct stranger *stranger)
{
    uint8_t message[256];
    size_t before = live_node_received(live);
    stranger_subscribe(stranger, LIVE_NODE_TOPIC);
    stranger_publish(stranger, LIVE_NODE_TOPIC,
            span_of(message, live_message(message, clock_monotonic_ns(), 100)));
    live_node_wait(live, before + 1);
    size_t received = stranger_received(stranger);
    live_node_publish(live, span_of(message, live_message(message, clock_monotonic_ns(), 200)));
    stranger_wait_received(stranger, received + 200);
    /* The application hears its own too; or the next check would take it for its stranger's. */
    live_node_wait(live, before + 2);
}

static void check_that_frame_ends_all_and_peer_comes_again(
        struct live_node *live, const struct identity *identity, struct span frame)
{
    struct stranger_options options = {.identity = identity};
    struct stranger stranger;
    uint64_t closed = live_node_metric(live, METRIC_NET_CLOSED_RELAY_FRAME);
    uint64_t left = live_node_metric(live, METRIC_RELAY_PEERS_LEFT);
    stranger_start(&stranger, &options, live->address);
    stranger_subscribe(&stranger, LIVE_NODE_TOPIC);
    stranger_say(&stranger, frame);
    stranger_wait_disconnected(&stranger);
    stranger_stop(&stranger);
    live_node_wait_metric(live, METRIC_RELAY_PEERS_LEFT, left + 1);
    assert_int_equal(live_node_metric(live, METRIC_NET_CLOSED_RELAY_FRAME), closed + 1);
    stranger_start(&stranger, &options, live->address);
    check_both_ways(live, &stranger);
    stranger_stop(&stranger);
    live_node_wait_metric(live, METRIC_RELAY_PEERS_LEFT, left + 2);
}

static void a_frame_that_is_too_large_or_malformed_ends_the_whole_peer_which_may_come_again(
        void **state)
{
    (void)state;
    static const uint8_t too_large[] = {0x80, 0x80, 0x20}; /* 512 KiB */
    static const uint8_t endless[] = {
            0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
    static const uint8_t malformed[] = {3, 0x12, 0x7f, 0x00}; /* a message cut short */
    struct identity *identity;
    struct live_node live;
    live_node_start(&live, NULL);
    assert_int_equal(identity_create(&identity, KEY_TYPE_SECP256K1), STATUS_OK);
    check_that_frame_ends_all_and_peer_comes_again(
            &live, identity, span_of(too_large, sizeof(too_large)));
    check_that_frame_ends_all_and_peer_comes_again(
            &live, identity, span_of(endless, sizeof(endless)));
    check_that_frame_ends_all_and_peer_comes_again(
            &live, identity, span_of(malformed, sizeof(malformed)));
    assert_int_equal(live_node_metric(&live, METRIC_RELAY_PEERS_JOINED),
            live_node_metric(&live, METRIC_RELAY_PEERS_LEFT));
    identity_destroy(&identity);
    live_node_stop(&live);
}

static void peers_that_drop_in_any_phase_leave_nothing_behind(void **state)
{
    (void)state;
    uint8_t message[256];
    struct live_node live;
    live_node_start(&live, NULL);
    for (unsigned i = 0; i < 60; i++) {
        struct stranger stranger;
        struct stranger_options options = {.muxer = i % 2 == 0 ? "yamux" : "mplex"};
        stranger_start(&stranger, &options, live.address);
        if (i % 5 > 0) {
            stranger_subscribe(&stranger, LIVE_NODE_TOPIC);
        }
        if (i % 5 > 1) {
            stranger_publish(
                    &stranger, LIVE_NODE_TOPIC, span_of(message, live_message(message, i, 100)));
        }
        if (i % 5 > 2) {
            stranger_say(&stranger, span_of("\xff\x07 in the middle of a frame", 27));
        }
        stranger_stop(&stranger);
    }
    live_node_wait_metric(&live, METRIC_RELAY_PEERS_LEFT, 1);
    live_node_wait_metric(
            &live, METRIC_RELAY_PEERS_LEFT, live_node_metric(&live, METRIC_RELAY_PEERS_JOINED));
    assert_int_equal(relay_peer_count(network_relay(node_network(live.node))), 0);
    assert_int_equal(relay_held(network_relay(node_network(live.node))), 0);
    live_node_stop(&live);
}

static void a_peer_that_reads_nothing_costs_the_others_no_message(void **state)
{
    (void)state;
    static uint8_t message[LARGE + 128];
    struct stranger_options deaf = {.reads_nothing = true};
    struct stranger stranger;
    struct live_node a;
    struct live_node b;
    live_node_start(&a, NULL);
    const char *settings[] = {"staticnode", a.address, NULL};
    live_node_start(&b, settings);
    live_node_wait_for_way(&a, &b);
    stranger_start(&stranger, &deaf, a.address);
    stranger_subscribe(&stranger, LIVE_NODE_TOPIC);
    size_t before = live_node_received(&b);
    for (uint64_t i = 0; i < 600; i++) {
        live_node_publish(&a, span_of(message, live_message(message, i, LARGE)));
        live_node_wait(&b, before + (i < 8 ? 0 : i - 8));
        /* 4 MiB and what one message is above */
        assert_true(
                relay_held(network_relay(node_network(a.node))) * LARGE <= (size_t)8 * 1024 * 1024);
    }
    live_node_wait(&b, before + 600);
    live_node_wait_metric(&a, (enum metric)LEDGER_RELAY_OUT_QUEUE_FULL, 100);
    assert_true(stranger_is_connected(&stranger));
    stranger_stop(&stranger);
    live_node_stop(&a);
    live_node_stop(&b);
}

static void check_waiting_for_credit(const char *muxer)
{
    static uint8_t message[LARGE + 128];
    static const char *const settings[] = {"memory-budget", "2MiB", "recent-limit", "0", NULL};
    struct stranger_options options = {.muxer = muxer};
    struct stranger stranger;
    struct live_node live;
    live_node_start(&live, settings);
    stranger_start(&stranger, &options, live.address);
    stranger_subscribe(&stranger, LIVE_NODE_TOPIC);
    node_stall(live.node, NODE_ROLE_DECODE,
            clock_monotonic_ns() + (uint64_t)3 * NANOSECONDS_PER_SECOND);
    for (uint64_t i = 0; i < 100; i++) {
        stranger_publish(
                &stranger, LIVE_NODE_TOPIC, span_of(message, live_message(message, i, LARGE)));
    }
    live_node_wait_metric(&live, METRIC_RELAY_WAITS, 1);
    /* The application's share of so small a budget is smaller: it may miss some. */
    live_node_wait_metric(&live, (enum metric)LEDGER_INTAKE_DELIVERED, 100);
    assert_true(frame_budget_peak(node_budget(live.node)) <=
                frame_budget_limit(node_budget(live.node)));
    check_both_ways(&live, &stranger);
    stranger_stop(&stranger);
    live_node_stop(&live);
}

static void a_peer_waits_while_there_is_no_room_and_loses_nothing(void **state)
{
    (void)state;
    check_waiting_for_credit("yamux");
    check_waiting_for_credit("mplex");
}

/* The RPC that carries a message of length bytes has so many more. */
static size_t overhead(size_t length)
{
    struct span topic = span_of_text(LIVE_NODE_TOPIC);
    size_t header = gossip_publish_header_size(topic, length);
    return header - varint_size(header + length);
}

static void the_largest_messages_are_taken_relayed_or_refused_and_the_peer_stays(void **state)
{
    (void)state;
    static uint8_t message[160 * 1024];
    struct stranger sender;
    struct stranger receiver;
    struct live_node live;
    size_t max = 153600;
    size_t rest = live_message(message, 0, max) - max;
    live_node_start(&live, NULL);
    stranger_start(&sender, &plain, live.address);
    stranger_start(&receiver, &plain, live.address);
    check_both_ways(&live, &sender);
    check_both_ways(&live, &receiver);
    size_t before = live_node_received(&live);
    size_t carried = max - overhead(max);
    const size_t lengths[] = {carried, carried + 1, max, max + 1};
    for (uint64_t i = 0; i < 4; i++) {
        size_t length = live_message(message, i, lengths[i] - rest);
        assert_int_equal(length, lengths[i]);
        stranger_publish(&sender, LIVE_NODE_TOPIC, span_of(message, length));
    }
    live_node_wait_metric(&live, (enum metric)LEDGER_INTAKE_TOO_LARGE, 1);
    live_node_wait(&live, before + 3);
    live_node_wait_metric(&live, (enum metric)LEDGER_RELAY_OUT_TOO_LARGE, 2);
    stranger_wait_received(&receiver, max);
    check_both_ways(&live, &sender);
    check_both_ways(&live, &receiver);
    stranger_stop(&sender);
    stranger_stop(&receiver);
    live_node_stop(&live);
}

/* An RPC of about that length, full of one kind of entry. */
static struct span full_of(uint8_t *out, size_t length, struct span entry)
{
    size_t count = length / entry.length;
    uint8_t *end = varint_write(out, count * entry.length);
    for (size_t i = 0; i < count; i++) {
        memcpy(end, entry.bytes, entry.length);
        end += entry.length;
    }
    return span_of(out, (size_t)(end - out));
}

static size_t memory_of(const struct live_node *live)
{
    return heap_bytes() + frame_budget_used(node_budget(live->node));
}

/* The frame is dealt with, but what was made of it waits for a lane that does nothing. */
static void check_memory(struct live_node *live, size_t before, size_t frame_bytes)
{
    struct timespec slice = {.tv_nsec = (long)5 * NANOSECONDS_PER_MILLISECOND};
    uint64_t end_ns = clock_monotonic_ns() + (uint64_t)LIVE_NODE_WAIT_S * NANOSECONDS_PER_SECOND;
    /* The sender, which is of this process, may not have freed its own copy yet. */
    while (memory_of(live) > before + 2 * frame_bytes) {
        assert_true(clock_monotonic_ns() < end_ns);
        nanosleep(&slice, NULL);
    }
}

static void frames_full_of_tiny_entries_cost_little_and_the_others_nothing(void **state)
{
    (void)state;
    enum {
        FRAME = 200 * 1024
    };
    static const struct span entries[] = {
            {(const uint8_t *)"\x0a\x05\x08\x01\x12\x01t", 7},                  /* SUBSCRIBE */
            {(const uint8_t *)"\x1a\x05\x0a\x03\x12\x01x", 7},                  /* IHAVE id */
            {(const uint8_t *)"\x1a\x05\x12\x03\x0a\x01x", 7},                  /* IWANT id */
            {(const uint8_t *)"\x1a\x05\x2a\x03\x0a\x01x", 7},                  /* IDONTWANT id */
            {(const uint8_t *)"\x1a\x05\x1a\x03\x0a\x01t", 7},                  /* GRAFT */
            {(const uint8_t *)"\x1a\x09\x22\x07\x0a\x01t\x12\x02\x0a\x00", 11}, /* PRUNE peer */
    };
    static uint8_t rpc[FRAME + 1024];
    struct stranger hostile;
    struct stranger honest;
    struct live_node live;
    live_node_start(&live, NULL);
    stranger_start(&hostile, &plain, live.address);
    stranger_start(&honest, &plain, live.address);
    for (size_t i = 0; i < sizeof(entries) / sizeof(entries[0]); i++) {
        uint64_t before = live_node_metric(&live, METRIC_RPC_ENTRIES_OVER_CAP);
        size_t memory = memory_of(&live);
        node_stall(live.node, NODE_ROLE_DECODE, UINT64_MAX);
        stranger_say(&hostile, full_of(rpc, FRAME, entries[i]));
        live_node_wait_metric(&live, METRIC_RPC_ENTRIES_OVER_CAP, before + 1);
        check_memory(&live, memory, FRAME);
        node_stall(live.node, NODE_ROLE_DECODE, 0);
        check_both_ways(&live, &honest);
    }
    stranger_stop(&honest);
    stranger_stop(&hostile);
    live_node_stop(&live);
}

static void signed_messages_are_passed_over_and_their_sender_stays(void **state)
{
    (void)state;
    struct stranger stranger;
    struct live_node live;
    uint8_t message[256];
    uint8_t publish[512];
    uint8_t rpc[512];
    live_node_start(&live, NULL);
    stranger_start(&stranger, &plain, live.address);
    stranger_subscribe(&stranger, LIVE_NODE_TOPIC);
    for (uint64_t number = 1; number <= 6; number++) {
        size_t length = live_message(message, number, 100);
        uint8_t *end =
                wire_write_bytes(publish, WIRE_TAG(2, WIRE_LENGTH), span_of(message, length));
        end = wire_write_bytes(end, WIRE_TAG(4, WIRE_LENGTH), span_of_text(LIVE_NODE_TOPIC));
        if (number != 2 && number != 4) { /* from, seqno, signature, key: present, though empty */
            end = wire_write_bytes(end, WIRE_TAG(number, WIRE_LENGTH), span_of(NULL, 0));
        }
        size_t size = (size_t)(end - publish);
        uint8_t *rpc_end = varint_write(rpc, wire_bytes_size(WIRE_TAG(2, WIRE_LENGTH), size));
        rpc_end = wire_write_bytes(rpc_end, WIRE_TAG(2, WIRE_LENGTH), span_of(publish, size));
        stranger_say(&stranger, span_of(rpc, (size_t)(rpc_end - rpc)));
    }
    live_node_wait_metric(&live, (enum metric)LEDGER_INTAKE_SIGNED_FIELDS_PRESENT, 4);
    live_node_wait(&live, 2);
    check_both_ways(&live, &stranger);
    assert_true(stranger_is_connected(&stranger));
    stranger_stop(&stranger);
    live_node_stop(&live);
}

static void peers_are_kept_whatever_their_metadata_but_another_cluster(void **state)
{
    (void)state;
    enum {
        RUBBISH = 1
    };
    static const struct span answers[] = {
            {(const uint8_t *)"\x08\x10", 2},         /* our cluster, no shards */
            {(const uint8_t *)"\xff\xff\xff\xff", 4}, /* rubbish */
            {(const uint8_t *)"", 0},                 /* nothing */
    };
    struct live_node live;
    live_node_start(&live, NULL);
    for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); i++) {
        struct stranger_options options = {.metadata = &answers[i]};
        struct stranger stranger;
        stranger_start(&stranger, &options, live.address);
        stranger_wait_answered(&stranger);
        /* Before the stranger of the rubbish goes: what a peer that left has answered is not read. */
        live_node_wait_metric(&live, METRIC_METADATA_REFUSED, i >= RUBBISH);
        check_both_ways(&live, &stranger);
        assert_true(stranger_is_connected(&stranger));
        stranger_stop(&stranger);
    }
    live_node_wait_metric(&live, METRIC_METADATA_REFUSED, 1);
    assert_int_equal(live_node_metric(&live, METRIC_NET_CLOSED_OTHER_CLUSTER), 0);
    static const struct span other = {(const uint8_t *)"\x08\x11", 2};
    struct stranger_options options = {.metadata = &other};
    struct stranger stranger;
    stranger_start(&stranger, &options, live.address);
    stranger_wait_disconnected(&stranger);
    live_node_wait_metric(&live, METRIC_NET_CLOSED_OTHER_CLUSTER, 1);
    stranger_stop(&stranger);
    live_node_stop(&live);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(
                    a_frame_that_is_too_large_or_malformed_ends_the_whole_peer_which_may_come_again),
            cmocka_unit_test(peers_that_drop_in_any_phase_leave_nothing_behind),
            cmocka_unit_test(a_peer_that_reads_nothing_costs_the_others_no_message),
            cmocka_unit_test(a_peer_waits_while_there_is_no_room_and_loses_nothing),
            cmocka_unit_test(the_largest_messages_are_taken_relayed_or_refused_and_the_peer_stays),
            cmocka_unit_test(frames_full_of_tiny_entries_cost_little_and_the_others_nothing),
            cmocka_unit_test(signed_messages_are_passed_over_and_their_sender_stays),
            cmocka_unit_test(peers_are_kept_whatever_their_metadata_but_another_cluster),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
