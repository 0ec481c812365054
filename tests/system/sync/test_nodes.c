/* SPDX-License-Identifier: MIT */

/* Nodes that do not relay, so that nothing but store-sync brings their archives together. */

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "codec/wire.h"
#include "tests/support/archived_ids.h"
#include "tests/support/cmocka.h"
#include "tests/support/live_node.h"

enum {
    SETTINGS_MAX = 40
};

#define SYNCING                                                                                    \
    "relay", "false", "archive", "memory", "store-sync", "true", "store-sync-relay-jitter", "0",   \
            "store-sync-interval", "1s"

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

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(a_node_that_was_away_comes_to_the_same_archive),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
