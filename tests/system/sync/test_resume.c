/* SPDX-License-Identifier: MIT */

/* A node that was down asks a store for what it has missed, when it starts again. */

#include <stdio.h>
#include <string.h>

#include "tests/support/archive_fixture.h"
#include "tests/support/archived_ids.h"
#include "tests/system/sync/sync_traffic.h"

#define HOUR_NS (INT64_C(3600) * NANOSECONDS_PER_SECOND)

static int64_t now_ns;

static void start_store(struct live_node *live)
{
    static const char *const settings[] = {
            "relay", "false", "store", "true", "archive", "memory", NULL};
    live_node_start(live, settings);
}

static void start_resuming(struct live_node *live, const char *folder, const char *store_node)
{
    char archive[320];
    snprintf(archive, sizeof(archive), "sqlite://%s/archive.db", folder);
    const char *settings[] = {"relay", "false", "archive", archive, "store-resume", "true",
            "storenode", store_node, NULL};
    live_node_start(live, settings);
}

static void asks_for_what_was_missed_since_the_last_archived_message(void **state)
{
    (void)state;
    struct live_node store;
    struct live_node live;
    char folder[256];
    fixture_make_folder(folder);
    start_store(&store);
    traffic_fill(&store, 0, 40, now_ns - 7 * HOUR_NS); /* before the range */
    traffic_fill(&store, 1000, 250, now_ns - 5 * HOUR_NS);
    traffic_fill(&store, 2000, 30, now_ns - 3 * HOUR_NS);
    wait_archived(store.node, 320);

    start_resuming(&live, folder, store.address);
    wait_archived(live.node, 280);
    assert_int_equal(live_node_metric(&live, METRIC_RESUME_MESSAGES), 280);
    live_node_wait_metric(&live, METRIC_RESUME_PAGES, 3);
    assert_int_equal(live_node_received(&live), 0); /* nothing of it is live */
    live_node_stop(&live);

    traffic_fill(&store, 3000, 110, now_ns - 2 * HOUR_NS);
    traffic_fill(&store, 4000, 5, now_ns - 4 * HOUR_NS); /* older than what the node has */
    wait_archived(store.node, 435);
    start_resuming(&live, folder, store.address);
    wait_archived(live.node, 390);
    live_node_wait_metric(&live, METRIC_RESUME_PAGES, 2);
    /* Those of the last 20 seconds before the end are asked for again, and recognised. */
    assert_int_equal(live_node_metric(&live, METRIC_RESUME_MESSAGES), 140);
    assert_int_equal(live_node_metric(&live, (enum metric)LEDGER_ARCHIVE_DUPLICATE), 30);
    live_node_stop(&live);
    live_node_stop(&store);
    fixture_remove_folder(folder);
}

static void takes_any_peer_with_a_store_when_none_is_named(void **state)
{
    (void)state;
    struct live_node store;
    struct live_node live;
    start_store(&store);
    traffic_fill(&store, 0, 120, now_ns - HOUR_NS);
    wait_archived(store.node, 120);
    const char *settings[] = {"relay", "false", "archive", "memory", "store-resume", "true",
            "staticnode", store.address, NULL};
    live_node_start(&live, settings);
    wait_archived(live.node, 120);
    live_node_stop(&live);
    live_node_stop(&store);
}

static void tries_again_when_the_store_is_not_there_yet(void **state)
{
    (void)state;
    struct live_node store;
    struct live_node live;
    char port[16];
    char store_node[sizeof(store.address)];
    const char *const key = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
    const char *first[] = {"nodekey", key, NULL};
    live_node_start(&store, first);
    memcpy(store_node, store.address, sizeof(store_node));
    snprintf(port, sizeof(port), "%d", atoi(strstr(store_node, "/tcp/") + 5));
    live_node_stop(&store);

    const char *settings[] = {"relay", "false", "archive", "memory", "store-resume", "true",
            "storenode", store_node, NULL};
    live_node_start(&live, settings);
    const char *second[] = {"nodekey", key, "tcp-port", port, "relay", "false", "store", "true",
            "archive", "memory", NULL};
    live_node_start(&store, second);
    traffic_fill(&store, 0, 20, now_ns - HOUR_NS);
    wait_archived(live.node, 20);
    live_node_stop(&live);
    live_node_stop(&store);
}

static void refuses_to_resume_without_an_archive(void **state)
{
    (void)state;
    static const struct option_spec *const tables[] = {options_of_node, NULL};
    struct options *options = NULL;
    struct options_error options_error;
    struct node_hooks hooks = {.has_network = true};
    struct node_error error = {.text = ""};
    struct node *node = NULL;
    assert_int_equal(options_create(&options, tables), STATUS_OK);
    static const char *const settings[][2] = {{"archive", "none"}, {"store-resume", "true"},
            {"tcp-port", "0"}, {"listen-address", "127.0.0.1"}};
    for (size_t i = 0; i < sizeof(settings) / sizeof(settings[0]); i++) {
        assert_int_equal(
                options_set(options, settings[i][0], settings[i][1], &options_error), STATUS_OK);
    }
    assert_int_equal(node_create(&node, options, &hooks, &error), STATUS_BAD_ARGUMENT);
    assert_non_null(strstr(error.text, "--store-resume with --archive=none"));
    options_destroy(&options);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(asks_for_what_was_missed_since_the_last_archived_message),
            cmocka_unit_test(takes_any_peer_with_a_store_when_none_is_named),
            cmocka_unit_test(tries_again_when_the_store_is_not_there_yet),
            cmocka_unit_test(refuses_to_resume_without_an_archive),
    };
    now_ns = clock_wall_ns();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
