/* SPDX-License-Identifier: MIT */

/* The disk of the archive fills up while messages come, and has room again (tests/support/unsteady_disk.c). */

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "archive/verify.h"
#include "base/clock.h"
#include "codec/waku_message.h"
#include "tests/support/archive_fixture.h"
#include "tests/support/archived_ids.h"
#include "tests/support/cmocka.h"
#include "tests/support/live_node.h"

enum {
    BEFORE = 100,
    DURING = 600,
    AFTER = 100,
    PAYLOAD = 3000
};

struct three_nodes {
    struct live_node publisher;
    struct live_node store;
    struct live_node receiver;
    char folder[256];
    char address[300];
    char full[300]; /* while it is a file, the disk is full */
};

/* With syncs the receiver has an archive, too, and the store node asks it for what it lacks. */
static void start_nodes(struct three_nodes *nodes, bool syncs)
{
    char path[300];
    fixture_make_folder(nodes->folder);
    snprintf(path, sizeof(path), "%s/disk", nodes->folder);
    assert_int_equal(mkdir(path, 0755), 0);
    assert_int_equal(setenv("SLUICE_DISK_FOLDER", path, 1), 0);
    snprintf(nodes->full, sizeof(nodes->full), "%s/full", nodes->folder);
    assert_int_equal(setenv("SLUICE_DISK_FULL", nodes->full, 1), 0);
    snprintf(nodes->address, sizeof(nodes->address), "sqlite://%s/disk/archive.db", nodes->folder);
    live_node_start(&nodes->publisher, NULL);
    /* Little room on the way, so that something is lost. */
    const char *store[] = {"staticnode", nodes->publisher.address, "archive", nodes->address,
            "archive-ring", "64", "archive-batch", "16", "store-sync", syncs ? "true" : "false",
            "store-sync-relay-jitter", "0", "store-sync-interval", "1s", NULL};
    live_node_start(&nodes->store, store);
    const char *receiver[] = {"staticnode", nodes->store.address, "archive",
            syncs ? "memory" : "none", "store-sync", syncs ? "true" : "false",
            "store-sync-relay-jitter", "0", "store-sync-interval", "0", NULL};
    live_node_start(&nodes->receiver, receiver);
    live_node_wait_for_way(&nodes->publisher, &nodes->receiver);
}

static void publish_one(struct live_node *from)
{
    static uint64_t number;
    static uint8_t payload[PAYLOAD];
    uint8_t message[PAYLOAD + 200];
    memcpy(payload, &number, sizeof(number));
    number++;
    struct waku_message_view fields = {.payload = span_of(payload, sizeof(payload)),
            .content_topic = span_of_text("/test/1/disk/proto"),
            .timestamp_ns = clock_wall_ns(),
            .has_payload = true,
            .has_content_topic = true,
            .has_timestamp = true};
    live_node_publish(
            from, span_of(message, waku_message_encode(message, sizeof(message), &fields)));
}

/* The receiver, which has the store node between itself and the publisher, gets each of them. */
static void publish(struct three_nodes *nodes, size_t count)
{
    size_t before = live_node_received(&nodes->receiver);
    for (size_t i = 0; i < count; i++) {
        publish_one(&nodes->publisher);
        live_node_wait(&nodes->receiver, before + (i < 16 ? 0 : i - 16));
    }
    live_node_wait(&nodes->receiver, before + count);
}

static void wait_for_health(struct live_node *live, bool is_good)
{
    struct timespec slice = {.tv_nsec = 5L * NANOSECONDS_PER_MILLISECOND};
    uint64_t end = clock_monotonic_ns() + (uint64_t)LIVE_NODE_WAIT_S * NANOSECONDS_PER_SECOND;
    struct node_archive_state state;
    do {
        assert_true(node_archive_state(live->node, &state));
        nanosleep(&slice, NULL);
    } while ((state.health == STATUS_OK) != is_good && clock_monotonic_ns() < end);
    assert_int_equal(state.health == STATUS_OK, is_good);
    assert_int_equal(state.failing_since_ns == 0, is_good);
    assert_true(is_good || state.health == STATUS_DISK_FULL);
}

static void wait_for_nothing_held(struct live_node *live)
{
    struct timespec slice = {.tv_nsec = 5L * NANOSECONDS_PER_MILLISECOND};
    uint64_t end = clock_monotonic_ns() + (uint64_t)LIVE_NODE_WAIT_S * NANOSECONDS_PER_SECOND;
    while (node_held(live->node, LEDGER_STAGE_ARCHIVE) > 0 && clock_monotonic_ns() < end) {
        nanosleep(&slice, NULL);
    }
    assert_int_equal(node_held(live->node, LEDGER_STAGE_ARCHIVE), 0);
}

static void relays_on_says_degraded_counts_what_is_lost_and_recovers(void **state)
{
    (void)state;
    static struct three_nodes nodes;
    start_nodes(&nodes, false);
    publish(&nodes, BEFORE);
    live_node_wait_metric(&nodes.store, LEDGER_ARCHIVE_DELIVERED, BEFORE);
    wait_for_health(&nodes.store, true);
    assert_int_equal(live_node_metric(&nodes.store, LEDGER_ARCHIVE_ARCHIVE_UNAVAILABLE), 0);

    close(open(nodes.full, O_CREAT | O_WRONLY, 0644));
    publish(&nodes, DURING);
    wait_for_health(&nodes.store, false);
    live_node_wait_metric(&nodes.store, LEDGER_ARCHIVE_ARCHIVE_UNAVAILABLE, 1);

    assert_int_equal(unlink(nodes.full), 0);
    wait_for_health(&nodes.store, true);
    publish(&nodes, AFTER);
    wait_for_nothing_held(&nodes.store);
    uint64_t stored = live_node_metric(&nodes.store, LEDGER_ARCHIVE_DELIVERED);
    uint64_t lost = live_node_metric(&nodes.store, LEDGER_ARCHIVE_ARCHIVE_UNAVAILABLE);
    uint64_t refused = live_node_metric(&nodes.store, LEDGER_ARCHIVE_TIMESTAMP_OUT_OF_RANGE);
    /* Those that looked for a way are among them. */
    assert_int_equal(
            stored + lost + refused, live_node_metric(&nodes.store, LEDGER_ARCHIVE_RECEIVED));
    assert_true(stored + lost >= BEFORE + DURING + AFTER);
    assert_true(stored >= BEFORE + AFTER);
    struct node_archive_state extent;
    assert_true(node_archive_state(nodes.store.node, &extent));
    assert_int_equal(extent.held, 0);

    /* Every ledger is closed at the end: live_node_stop looks. */
    live_node_stop(&nodes.receiver);
    live_node_stop(&nodes.store);
    live_node_stop(&nodes.publisher);
    struct archive_verify_result result;
    struct archive_error error = {.text = ""};
    assert_int_equal(archive_verify(nodes.address, fixture_fail_on_problem, NULL, &result, &error),
            STATUS_OK);
    assert_int_equal(result.messages, stored);
    assert_int_equal(result.problems, 0);
    fixture_remove_folder(nodes.folder);
}

/* What was lost meanwhile comes from a node that has it, without anybody's doing. */
static void store_sync_brings_what_was_lost(void **state)
{
    (void)state;
    static struct three_nodes nodes;
    start_nodes(&nodes, true);
    close(open(nodes.full, O_CREAT | O_WRONLY, 0644));
    publish(&nodes, DURING);
    live_node_wait_metric(&nodes.store, LEDGER_ARCHIVE_ARCHIVE_UNAVAILABLE, 1);
    live_node_wait_metric(&nodes.receiver, LEDGER_ARCHIVE_DELIVERED, DURING);
    assert_int_equal(unlink(nodes.full), 0);
    wait_for_health(&nodes.store, true);
    wait_same_archive(nodes.store.node, nodes.receiver.node);
    assert_true(archived_ids(nodes.store.node).count >= DURING);
    /* Not as live messages: the receiver has heard of each once. */
    assert_int_equal(live_node_copies(&nodes.receiver), 0);
    assert_int_equal(live_node_copies(&nodes.store), 0);
    live_node_stop(&nodes.receiver);
    live_node_stop(&nodes.store);
    live_node_stop(&nodes.publisher);
    fixture_remove_folder(nodes.folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(relays_on_says_degraded_counts_what_is_lost_and_recovers),
            cmocka_unit_test(store_sync_brings_what_was_lost),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
