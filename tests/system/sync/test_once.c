/* SPDX-License-Identifier: MIT */

/*
 * Sessions that begin while what an earlier one found is still on its way, with the same peer and with
 * others: every message is transferred once.
 */

#include <inttypes.h>
#include <string.h>

#include "tests/support/archive_fixture.h"
#include "tests/support/archived_ids.h"
#include "tests/system/sync/sync_traffic.h"

enum {
    MISSING = 1500,
    COMMON = 200,
    PAYLOAD_BYTES = 20000,
    APART_NS = 1000 * 1000,
    WINDOW = 64 /* messages that a node may have taken in and not stored when it is cut off */
};

#define MINUTE_NS (INT64_C(60) * NANOSECONDS_PER_SECOND)

static int64_t first_ns;

/* Sessions come five times a second; with 1 MiB for frames a transfer takes some seconds. */
static void start(struct live_node *live, const struct live_node *peer, const char *budget,
        const struct live_node *other)
{
    const char *settings[] = {"relay", "false", "archive", "memory", "archive-memory-limit",
            "256MiB", "store-sync", "true", "store-sync-relay-jitter", "0", "store-sync-interval",
            "200ms", "memory-budget", budget, peer == NULL ? NULL : "staticnode",
            peer == NULL ? NULL : peer->address, other == NULL ? NULL : "staticnode",
            other == NULL ? NULL : other->address, NULL};
    live_node_start(live, settings);
}

static void fill(struct live_node *live, uint64_t first, uint64_t count)
{
    static uint8_t payload[PAYLOAD_BYTES];
    static uint8_t message[PAYLOAD_BYTES + 128];
    for (uint64_t i = first; i < first + count; i++) {
        memcpy(payload, &i, sizeof(i));
        uint8_t *end = wire_write_bytes(
                message, WIRE_TAG(1, WIRE_LENGTH), span_of(payload, sizeof(payload)));
        end = wire_write_bytes(end, WIRE_TAG(2, WIRE_LENGTH), span_of_text("/test/1/sync/proto"));
        end = wire_write_number(
                end, WIRE_TAG(10, WIRE_VARINT), varint_zigzag(first_ns + (int64_t)i * APART_NS));
        traffic_post(live, span_of(message, (size_t)(end - message)));
    }
}

static int set_up(void **state)
{
    (void)state;
    first_ns = clock_wall_ns() - 30 * MINUTE_NS;
    return 0;
}

static uint64_t taken(const struct live_node *live)
{
    return live_node_metric(live, METRIC_SYNC_MESSAGES_IN);
}

static void report(const char *what, const struct live_node *live)
{
    print_message("%s: %" PRIu64 " messages transferred for %d that were missing\n", what,
            taken(live), COMMON + MISSING);
}

/* Both ask for sessions all the time, and what is lacking is on its way meanwhile. */
static void two_nodes_transfer_each_message_once(void **state)
{
    (void)state;
    struct live_node full;
    struct live_node empty;
    start(&full, NULL, "512MiB", NULL);
    fill(&full, 0, COMMON + MISSING);
    wait_archived(full.node, COMMON + MISSING);
    start(&empty, &full, "1MiB", NULL);
    wait_archived(empty.node, COMMON + MISSING);
    report("two nodes", &empty);
    assert_int_equal(taken(&empty), COMMON + MISSING);
    assert_int_equal(live_node_metric(&full, METRIC_SYNC_MESSAGES_OUT), COMMON + MISSING);
    live_node_stop(&empty);
    live_node_stop(&full);
}

/* Two that have everything, and one that has nothing and meets both. */
static void three_nodes_transfer_each_message_once(void **state)
{
    (void)state;
    struct live_node full[2];
    struct live_node empty;
    for (size_t i = 0; i < 2; i++) {
        start(&full[i], i == 0 ? NULL : &full[0], "512MiB", NULL);
        fill(&full[i], 0, COMMON + MISSING);
        wait_archived(full[i].node, COMMON + MISSING);
    }
    start(&empty, &full[0], "1MiB", &full[1]);
    wait_archived(empty.node, COMMON + MISSING);
    report("three nodes", &empty);
    assert_int_equal(taken(&empty), COMMON + MISSING);
    live_node_stop(&empty);
    live_node_stop(&full[1]);
    live_node_stop(&full[0]);
}

/* In the middle of it the one that sends is gone; the other one sends the rest, and nothing twice. */
static void what_a_peer_did_not_deliver_the_next_one_does(void **state)
{
    (void)state;
    struct live_node full[2];
    struct live_node empty;
    start(&full[0], NULL, "512MiB", NULL);
    fill(&full[0], 0, COMMON + MISSING);
    wait_archived(full[0].node, COMMON + MISSING);
    start(&empty, &full[0], "1MiB", NULL);
    start(&full[1], &empty, "512MiB", NULL);
    live_node_wait_metric(&empty, METRIC_SYNC_MESSAGES_IN, MISSING / 4);
    live_node_stop(&full[0]);
    fill(&full[1], 0, COMMON + MISSING);
    wait_archived(empty.node, COMMON + MISSING);
    report("the first of two peers leaves", &empty);
    /* What was on its way when the connection was cut may come twice: a stream's window of it. */
    assert_in_range(taken(&empty), COMMON + MISSING, COMMON + MISSING + WINDOW);
    live_node_stop(&full[1]);
    live_node_stop(&empty);
}

/* The one that lacks them restarts with what it has stored, and gets the rest from the same peer. */
static void a_peer_that_restarts_gets_the_rest(void **state)
{
    (void)state;
    struct live_node full;
    struct live_node empty;
    char folder[256];
    char archive[320];
    fixture_make_folder(folder);
    snprintf(archive, sizeof(archive), "sqlite://%s/archive.db", folder);
    start(&full, NULL, "512MiB", NULL);
    fill(&full, 0, COMMON + MISSING);
    wait_archived(full.node, COMMON + MISSING);
    const char *settings[] = {"relay", "false", "archive", archive, "store-sync", "true",
            "store-sync-relay-jitter", "0", "store-sync-interval", "200ms", "memory-budget", "1MiB",
            "staticnode", full.address, NULL};
    live_node_start(&empty, settings);
    live_node_wait_metric(&empty, METRIC_SYNC_MESSAGES_IN, MISSING / 4);
    live_node_stop(&empty);
    live_node_start(&empty, settings);
    size_t had = archived_ids(empty.node).count;
    assert_in_range(had, 1, COMMON + MISSING - 1);
    wait_archived(empty.node, COMMON + MISSING);
    report("after a restart", &empty);
    assert_in_range(taken(&empty), COMMON + MISSING - had, COMMON + MISSING - had + WINDOW);
    live_node_stop(&empty);
    live_node_stop(&full);
    fixture_remove_folder(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test_setup(two_nodes_transfer_each_message_once, set_up),
            cmocka_unit_test_setup(three_nodes_transfer_each_message_once, set_up),
            cmocka_unit_test_setup(what_a_peer_did_not_deliver_the_next_one_does, set_up),
            cmocka_unit_test_setup(a_peer_that_restarts_gets_the_rest, set_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
