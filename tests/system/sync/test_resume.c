/* SPDX-License-Identifier: MIT */

/* A node that was down asks a store for what it has missed, when it starts again. */

#include <stdio.h>
#include <string.h>

#include "net/protocols/exchange.h"
#include "net/protocols/store_message.h"
#include "node/network.h"
#include "tests/support/archive_fixture.h"
#include "tests/support/archived_ids.h"
#include "tests/system/sync/sync_traffic.h"
#include "tools/sluice/net_host.h"

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

/* A store that has always one page more: of one message, or of none. */
struct endless_store {
    struct identity *identity;
    struct net_host *host;
    struct exchange_server server;
    _Atomic unsigned asked;
    bool has_messages;
};

/* By the store protocol's specification: request id 1, status 10, messages 20, cursor 51. */
static void answer_without_end(void *context, struct exchange *exchange, struct span request)
{
    struct endless_store *store = context;
    uint8_t answer[1024];
    uint8_t entry[512];
    uint8_t message[TRAFFIC_MESSAGE_MAX];
    uint8_t hash[32] = {0};
    (void)request;
    unsigned number = atomic_fetch_add(&store->asked, 1);
    memcpy(hash, &number, sizeof(number));
    uint8_t *end = wire_write_bytes(answer, WIRE_TAG(1, WIRE_LENGTH), span_of_text("resume"));
    end = wire_write_number(end, WIRE_TAG(10, WIRE_VARINT), 200);
    if (store->has_messages) {
        size_t length = traffic_message(message, number, now_ns - HOUR_NS);
        uint8_t *entry_end = wire_write_bytes(entry, WIRE_TAG(1, WIRE_LENGTH), span_of(hash, 32));
        entry_end = wire_write_bytes(entry_end, WIRE_TAG(2, WIRE_LENGTH), span_of(message, length));
        entry_end = wire_write_bytes(
                entry_end, WIRE_TAG(3, WIRE_LENGTH), span_of_text(LIVE_NODE_TOPIC));
        end = wire_write_bytes(
                end, WIRE_TAG(20, WIRE_LENGTH), span_of(entry, (size_t)(entry_end - entry)));
    }
    end = wire_write_bytes(end, WIRE_TAG(51, WIRE_LENGTH), span_of(hash, 32));
    exchange_answer_copy(exchange, span_of(answer, (size_t)(end - answer)));
}

static void start_endless(struct endless_store *store, char address[MULTIADDR_TEXT_SIZE])
{
    struct multiaddr listening;
    char peer[PEER_ID_TEXT_SIZE];
    assert_int_equal(identity_create(&store->identity, KEY_TYPE_ED25519), STATUS_OK);
    struct net_host_options options = {.identity = store->identity};
    assert_int_equal(net_host_create(&store->host, &options), STATUS_OK);
    store->server = (struct exchange_server){.id = STORE_PROTOCOL_ID,
            .request_max = 4096,
            .requested = answer_without_end,
            .context = store};
    assert_int_equal(exchange_serve(net_host_switch(store->host), &store->server), STATUS_OK);
    assert_int_equal(net_host_listen(store->host, "/ip4/127.0.0.1/tcp/0"), STATUS_OK);
    assert_int_equal(net_host_start(store->host), STATUS_OK);
    listening = *switch_listen_address(net_host_switch(store->host), 0);
    multiaddr_print(address, &listening);
    strcat(address, "/p2p/");
    strcat(address, peer_id_print(peer, identity_peer_id(store->identity)));
}

static void pages_without_end_are_taken_up_to_a_limit(void **state)
{
    (void)state;
    struct endless_store store = {.has_messages = true};
    struct live_node live;
    char address[MULTIADDR_TEXT_SIZE];
    start_endless(&store, address);
    const char *settings[] = {"relay", "false", "archive", "memory", "store-resume", "true",
            "storenode", address, "store-resume-limit", "30", NULL};
    live_node_start(&live, settings);
    live_node_wait_metric(&live, METRIC_RESUME_LIMITED, 1);
    wait_archived(live.node, 30);
    assert_int_equal(atomic_load(&store.asked), 30);
    assert_int_equal(live_node_metric(&live, METRIC_RESUME_FAILURES), 0);
    live_node_stop(&live);
    net_host_destroy(&store.host);
    identity_destroy(&store.identity);
}

static void an_empty_page_that_names_another_is_a_failure(void **state)
{
    (void)state;
    struct endless_store store = {.has_messages = false};
    struct live_node live;
    char address[MULTIADDR_TEXT_SIZE];
    start_endless(&store, address);
    const char *settings[] = {"relay", "false", "archive", "memory", "store-resume", "true",
            "storenode", address, NULL};
    live_node_start(&live, settings);
    live_node_wait_metric(&live, METRIC_RESUME_FAILURES, 1);
    assert_in_range(atomic_load(&store.asked), 1, 2); /* and again after a while */
    live_node_stop(&live);
    net_host_destroy(&store.host);
    identity_destroy(&store.identity);
}

/* As the reference: a node whose store was switched off runs, and neither resumes nor syncs. */
static void runs_without_an_archive_though_resume_and_sync_are_asked_for(void **state)
{
    (void)state;
    struct live_node live;
    const char *settings[] = {
            "archive", "none", "store-resume", "true", "store-sync", "true", NULL};
    live_node_start(&live, settings);
    assert_false(network_has_sync(node_network(live.node)));
    live_node_stop(&live);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(asks_for_what_was_missed_since_the_last_archived_message),
            cmocka_unit_test(takes_any_peer_with_a_store_when_none_is_named),
            cmocka_unit_test(tries_again_when_the_store_is_not_there_yet),
            cmocka_unit_test(pages_without_end_are_taken_up_to_a_limit),
            cmocka_unit_test(an_empty_page_that_names_another_is_a_failure),
            cmocka_unit_test(runs_without_an_archive_though_resume_and_sync_are_asked_for),
    };
    now_ns = clock_wall_ns();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
