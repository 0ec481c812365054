/* SPDX-License-Identifier: MIT */

/* Nodes that do not relay, so that nothing but store-sync brings their archives together. */

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "codec/wire.h"
#include "tests/support/archive_fixture.h"
#include "tests/support/archived_ids.h"
#include "tests/support/cmocka.h"
#include "tests/system/sync/sync_traffic.h"

enum {
    NODES = 5
};

#define MINUTE_NS (INT64_C(60) * NANOSECONDS_PER_SECOND)

#define SYNCING                                                                                    \
    "relay", "false", "archive", "memory", "store-sync", "true", "store-sync-relay-jitter", "0",   \
            "store-sync-interval", "1s"

/* Without a peer it only answers. */
static void start(struct live_node *live, const struct live_node *peer)
{
    const char *settings[] = {
            SYNCING, peer == NULL ? NULL : "staticnode", peer == NULL ? NULL : peer->address, NULL};
    live_node_start(live, settings);
}

static void publish(struct live_node *live, uint64_t first, uint64_t count)
{
    for (uint64_t i = first; i < first + count; i++) {
        uint8_t message[512];
        live_node_publish(live, span_of(message, live_message(message, i, 100)));
    }
}

/* The same bytes everywhere. */
static void publish_to_all(
        struct live_node nodes[], size_t node_count, uint64_t first, uint64_t count)
{
    for (uint64_t i = first; i < first + count; i++) {
        uint8_t message[512];
        size_t length = live_message(message, i, 100);
        for (size_t n = 0; n < node_count; n++) {
            live_node_publish(&nodes[n], span_of(message, length));
        }
    }
}

static void a_node_that_was_away_comes_to_the_same_archive(void **state)
{
    (void)state;
    struct live_node nodes[2];
    start(&nodes[0], NULL);
    start(&nodes[1], &nodes[0]);
    publish_to_all(nodes, 2, 0, 500);
    publish(&nodes[0], 1000, 3000);
    publish(&nodes[1], 10000, 70);
    wait_archived(nodes[0].node, 3570);
    wait_same_archive(nodes[0].node, nodes[1].node);
    assert_int_equal(archived_ids(nodes[1].node).count, 3570);
    /* Nothing of it is live. */
    assert_int_equal(live_node_received(&nodes[0]), 3500);
    assert_int_equal(live_node_received(&nodes[1]), 570);
    live_node_stop(&nodes[1]);
    live_node_stop(&nodes[0]);
}

static void five_nodes_in_a_row_come_to_the_same_archive(void **state)
{
    (void)state;
    struct live_node nodes[NODES];
    for (size_t i = 0; i < NODES; i++) {
        start(&nodes[i], i == 0 ? NULL : &nodes[i - 1]);
    }
    publish_to_all(nodes, NODES, 0, 200);
    for (size_t i = 0; i < NODES; i++) {
        publish(&nodes[i], 1000 * (i + 1), 10 * (i + 1));
    }
    for (size_t i = 1; i < NODES; i++) {
        wait_same_archive(nodes[0].node, nodes[i].node);
    }
    for (size_t i = 0; i < NODES; i++) {
        wait_archived(nodes[i].node, 350);
    }
    for (size_t i = NODES; i > 0; i--) {
        live_node_stop(&nodes[i - 1]);
    }
}

static void ephemeral_messages_are_in_no_set(void **state)
{
    (void)state;
    struct live_node nodes[2];
    uint8_t message[512];
    start(&nodes[0], NULL);
    start(&nodes[1], &nodes[0]);
    for (uint64_t i = 0; i < 100; i++) {
        size_t length = live_message(message, i, 100);
        uint8_t *end = wire_write_number(message + length, WIRE_TAG(31, WIRE_VARINT), i % 2);
        live_node_publish(&nodes[i % 4 < 2], span_of(message, (size_t)(end - message)));
    }
    wait_archived(nodes[0].node, 50);
    wait_archived(nodes[1].node, 50);
    wait_same_archive(nodes[0].node, nodes[1].node);
    assert_int_equal(live_node_metric(&nodes[0], METRIC_SYNC_MESSAGES_IN) +
                             live_node_metric(&nodes[1], METRIC_SYNC_MESSAGES_IN),
            50);
    live_node_stop(&nodes[1]);
    live_node_stop(&nodes[0]);
}

/* The set is read from the archive again, so that only what is new has to be sent. */
static void a_node_that_restarts_gets_only_what_it_lacks(void **state)
{
    (void)state;
    struct live_node nodes[2];
    char folder[256];
    char archive[320];
    int64_t now_ns = clock_wall_ns();
    fixture_make_folder(folder);
    snprintf(archive, sizeof(archive), "sqlite://%s/archive.db", folder);
    start(&nodes[0], NULL);
    traffic_fill(&nodes[0], 0, 9000, now_ns - 30 * MINUTE_NS);
    const char *settings[] = {SYNCING, "archive", archive, "staticnode", nodes[0].address, NULL};
    live_node_start(&nodes[1], settings);
    wait_archived(nodes[1].node, 9000);
    live_node_stop(&nodes[1]);

    traffic_fill(&nodes[0], 10000, 33, now_ns - 10 * MINUTE_NS);
    live_node_start(&nodes[1], settings);
    wait_archived(nodes[1].node, 9033);
    assert_true(live_node_metric(&nodes[1], METRIC_SYNC_FILLED) >= 9000);
    assert_int_equal(live_node_metric(&nodes[1], METRIC_SYNC_MESSAGES_IN), 33);
    assert_int_equal(live_node_metric(&nodes[0], METRIC_SYNC_MESSAGES_IN), 0);
    live_node_stop(&nodes[1]);
    live_node_stop(&nodes[0]);
    fixture_remove_folder(folder);
}

/* Nobody is offered for ever what an archive with a limit has given up. */
static void what_the_archive_has_evicted_leaves_the_set(void **state)
{
    (void)state;
    struct live_node nodes[2];
    int64_t now_ns = clock_wall_ns();
    const char *settings[] = {SYNCING, "archive-memory-limit", "1MiB", NULL};
    live_node_start(&nodes[0], settings);
    traffic_fill(&nodes[0], 0, 6000, now_ns - 30 * MINUTE_NS);
    live_node_wait_metric(&nodes[0], (enum metric)LEDGER_ARCHIVE_DELIVERED, 6000);
    assert_true(live_node_metric(&nodes[0], METRIC_ARCHIVE_EVICTED) > 0);
    start(&nodes[1], &nodes[0]);
    wait_same_archive(nodes[0].node, nodes[1].node);
    uint64_t evicted = live_node_metric(&nodes[0], METRIC_ARCHIVE_EVICTED);
    live_node_wait_metric(&nodes[0], METRIC_SYNC_FORGOTTEN, evicted);
    uint64_t unsent = live_node_metric(&nodes[0], METRIC_SYNC_UNSENT_NOT_STORED);
    live_node_wait_metric(&nodes[0], METRIC_SYNC_SESSIONS_ENDED,
            live_node_metric(&nodes[0], METRIC_SYNC_SESSIONS_ENDED) + 2);
    assert_int_equal(live_node_metric(&nodes[0], METRIC_SYNC_UNSENT_NOT_STORED), unsent);
    live_node_stop(&nodes[1]);
    live_node_stop(&nodes[0]);
}

static void a_cap_on_messages_takes_several_sessions(void **state)
{
    (void)state;
    struct live_node nodes[2];
    int64_t now_ns = clock_wall_ns();
    const char *settings[] = {SYNCING, "store-sync-ids", "40", NULL};
    live_node_start(&nodes[0], settings);
    traffic_fill(&nodes[0], 0, 100, now_ns - 30 * MINUTE_NS);
    start(&nodes[1], &nodes[0]);
    wait_archived(nodes[1].node, 100);
    assert_true(live_node_metric(&nodes[0], METRIC_SYNC_INCOMPLETE) >= 2);
    assert_int_equal(live_node_metric(&nodes[1], METRIC_SYNC_MESSAGES_IN), 100);
    live_node_stop(&nodes[1]);
    live_node_stop(&nodes[0]);
}

/* The window is the initiator's, so both sides mean the same messages by it. */
static void messages_outside_the_range_stay_where_they_are(void **state)
{
    (void)state;
    struct live_node nodes[2];
    int64_t now_ns = clock_wall_ns();
    const char *const old[] = {"relay", "false", "archive", "memory", "store-sync", "true",
            "store-sync-interval", "0", "store-sync-range", "2h", NULL};
    live_node_start(&nodes[0], old);
    traffic_fill(&nodes[0], 0, 20, now_ns - 90 * MINUTE_NS);
    traffic_fill(&nodes[0], 100, 5, now_ns - 59 * MINUTE_NS);
    traffic_fill(&nodes[0], 200, 5, now_ns - MINUTE_NS);
    traffic_fill(&nodes[0], 300, 5, now_ns + 10 * (int64_t)NANOSECONDS_PER_SECOND);
    const char *settings[] = {"relay", "false", "archive", "memory", "store-sync", "true",
            "store-sync-interval", "1s", "staticnode", nodes[0].address, NULL};
    live_node_start(&nodes[1], settings);
    live_node_wait_metric(&nodes[1], METRIC_SYNC_SESSIONS_ENDED, 2);
    /* Neither those older than an hour nor those younger than the jitter of 20 s. */
    wait_archived(nodes[1].node, 10);
    live_node_stop(&nodes[1]);
    live_node_stop(&nodes[0]);
}

/* By time, whether anybody syncs or not: then the set would be of no use, and it is no larger. */
static void check_ids_leave_the_set(const char *store_sync)
{
    struct live_node live;
    uint8_t message[TRAFFIC_MESSAGE_MAX];
    int64_t now_ns = clock_wall_ns();
    const char *settings[] = {"archive", "memory", "store-sync", store_sync, "store-sync-range",
            "1s", "store-sync-relay-jitter", "0", NULL};
    live_node_start(&live, settings);
    for (uint64_t i = 0; i < 100; i++) {
        size_t length = traffic_message(message, i, now_ns);
        live_node_publish(&live, span_of(message, length));
    }
    live_node_wait_metric(&live, (enum metric)LEDGER_ARCHIVE_DELIVERED, 100);
    uint64_t end_ns = clock_monotonic_ns() + (uint64_t)LIVE_NODE_WAIT_S * NANOSECONDS_PER_SECOND;
    struct timespec slice = {.tv_nsec = (long)5 * NANOSECONDS_PER_MILLISECOND};
    while (live_node_metric(&live, METRIC_SYNC_PRUNED) +
                    live_node_metric(&live, (enum metric)LEDGER_SYNC_TOO_OLD) <
            100) {
        assert_true(clock_monotonic_ns() < end_ns);
        nanosleep(&slice, NULL);
    }
    live_node_stop(&live);
}

static void ids_leave_the_set_with_the_range(void **state)
{
    (void)state;
    check_ids_leave_the_set("true");
    check_ids_leave_the_set("false");
}

/* Each way more than a step reads, a payload's item set holds and the muxer's window takes. */
static void thousands_of_differences_both_ways_are_made_good(void **state)
{
    (void)state;
    enum {
        OWN = 4000
    };
    struct live_node nodes[2];
    int64_t now_ns = clock_wall_ns();
    start(&nodes[0], NULL);
    traffic_fill(&nodes[0], 0, 1000, now_ns - 50 * MINUTE_NS);
    for (uint64_t i = 0; i < OWN / 10; i++) {
        traffic_fill(&nodes[0], 10000 + i * 10, 10,
                now_ns - 40 * MINUTE_NS + (int64_t)i * 5 * (int64_t)NANOSECONDS_PER_SECOND);
    }
    wait_archived(nodes[0].node, OWN + 1000);
    start(&nodes[1], &nodes[0]);
    traffic_fill(&nodes[1], 0, 1000, now_ns - 50 * MINUTE_NS);    /* the same */
    traffic_fill(&nodes[1], 50000, OWN, now_ns - 30 * MINUTE_NS); /* in one microsecond */
    wait_archived(nodes[1].node, 2 * OWN + 1000);
    wait_archived(nodes[0].node, 2 * OWN + 1000);
    wait_same_archive(nodes[0].node, nodes[1].node);
    live_node_stop(&nodes[1]);
    live_node_stop(&nodes[0]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(a_node_that_was_away_comes_to_the_same_archive),
            cmocka_unit_test(five_nodes_in_a_row_come_to_the_same_archive),
            cmocka_unit_test(ephemeral_messages_are_in_no_set),
            cmocka_unit_test(a_node_that_restarts_gets_only_what_it_lacks),
            cmocka_unit_test(what_the_archive_has_evicted_leaves_the_set),
            cmocka_unit_test(a_cap_on_messages_takes_several_sessions),
            cmocka_unit_test(messages_outside_the_range_stay_where_they_are),
            cmocka_unit_test(ids_leave_the_set_with_the_range),
            cmocka_unit_test(thousands_of_differences_both_ways_are_made_good),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
