/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/memory.h"
#include "net/peer_manager/peer_file.h"
#include "net/peer_manager/peer_manager.h"
#include "tests/unit/net/switch/test_node.h"

static const char any_port[] = "/ip4/127.0.0.1/tcp/0";

/* 0: so long that no test waits for it. */
static uint64_t identify_ms;

static struct peer_manager *create_manager(const struct test_node *node, const char *file)
{
    struct peer_manager *manager;
    struct peer_manager_options options = {.net_switch = node->net_switch,
            .backoff_first_ms = 20,
            .backoff_max_ms = 40,
            .static_backoff_max_ms = 40,
            .identify_ms = identify_ms,
            .connections_max = 12,
            .file = file};
    assert_int_equal(peer_manager_create(&manager, &options), STATUS_OK);
    peer_manager_start(manager);
    return manager;
}

static void fini_manager(struct peer_manager **manager, struct test_node *nodes[], size_t count)
{
    peer_manager_stop(*manager);
    for (size_t i = 0; i < count; i++) {
        switch_stop(nodes[i]->net_switch);
    }
    for (bool is_stopped = false; !is_stopped;) {
        is_stopped = true;
        test_nodes_turn(nodes, count, 1);
        for (size_t i = 0; i < count; i++) {
            is_stopped = is_stopped && switch_is_stopped(nodes[i]->net_switch);
        }
    }
    peer_manager_destroy(manager);
    test_nodes_fini(nodes, count);
}

static bool is_identified(void *context)
{
    const struct test_node *node = context;
    return node->identified > 0;
}

static bool is_identified_again(void *context)
{
    const struct test_node *node = context;
    return node->identified > 1;
}

static void a_static_peer_is_dialled_again_after_it_has_restarted(void **state)
{
    (void)state;
    struct test_node node;
    struct test_node peer;
    struct test_node *nodes[] = {&node, &peer};
    struct identity *identity;
    char listen[64];
    struct multiaddr_endpoint endpoint;
    assert_int_equal(identity_create(&identity, KEY_TYPE_SECP256K1), STATUS_OK);
    struct switch_options options = {.identity = identity};
    test_node_init(&node, NULL, NULL);
    test_node_init(&peer, &options, any_port);
    assert_int_equal(multiaddr_endpoint(&endpoint, &peer.address), STATUS_OK);
    snprintf(listen, sizeof(listen), "/ip4/127.0.0.1/tcp/%u", (unsigned)endpoint.port);
    struct peer_manager *manager = create_manager(&node, NULL);
    assert_int_equal(peer_manager_add(manager, &peer.address, PEER_ORIGIN_STATIC), STATUS_OK);
    test_nodes_run(nodes, 2, is_identified, &node);
    test_nodes_fini((struct test_node *[]){&peer}, 1);
    uint64_t failed = count_of(METRIC_NET_PEER_DIALS_FAILED);
    while (count_of(METRIC_NET_PEER_DIALS_FAILED) < failed + 2) {
        io_loop_run_once(node.loop);
    }
    test_node_init(&peer, &options, listen);
    test_nodes_run(nodes, 2, is_identified_again, &node);
    fini_manager(&manager, nodes, 2);
    identity_destroy(&identity);
}

static bool has_lost_one(void *context)
{
    const struct test_node *node = context;
    return node->disconnected > 0;
}

static void a_removed_peer_is_disconnected_and_not_dialled_again(void **state)
{
    (void)state;
    struct test_node node;
    struct test_node peer;
    struct test_node *nodes[] = {&node, &peer};
    test_node_init(&node, NULL, NULL);
    test_node_init(&peer, NULL, any_port);
    struct peer_manager *manager = create_manager(&node, NULL);
    assert_int_equal(peer_manager_add(manager, &peer.address, PEER_ORIGIN_STATIC), STATUS_OK);
    test_nodes_run(nodes, 2, is_identified, &node);
    uint64_t dials = count_of(METRIC_NET_DIALS);
    assert_int_equal(peer_manager_remove(manager, identity_peer_id(peer.identity)), STATUS_OK);
    test_nodes_run(nodes, 2, has_lost_one, &node);
    test_nodes_turn(nodes, 2, 1000);
    assert_int_equal(count_of(METRIC_NET_DIALS), dials);
    fini_manager(&manager, nodes, 2);
}

/* No address of such a one is kept. */
static void a_removed_client_is_disconnected(void **state)
{
    (void)state;
    struct test_node node;
    struct test_node client;
    struct test_node *nodes[] = {&node, &client};
    test_node_init(&node, NULL, any_port);
    test_node_init(&client, NULL, NULL);
    struct peer_manager *manager = create_manager(&node, NULL);
    test_node_dial(&client, &node.address);
    test_nodes_run(nodes, 2, is_identified, &node);
    assert_int_equal(peer_manager_remove(manager, identity_peer_id(client.identity)), STATUS_OK);
    test_nodes_run(nodes, 2, has_lost_one, &node);
    assert_int_equal(node.last_reason, CLOSE_REQUESTED);
    fini_manager(&manager, nodes, 2);
}

enum {
    CLIENTS = 8 /* the node has 12 connections, 6 of them for services */
};

static size_t service_clients_kept(const struct test_node *node)
{
    return node->connected - node->disconnected;
}

static bool all_clients_judged(void *context)
{
    const struct test_node *node = context;
    return node->connected == CLIENTS && service_clients_kept(node) == 6;
}

static struct peer_manager *manager_of_test;

static void set_service(void *context, struct connection *connection, enum close_reason reason)
{
    (void)context;
    (void)connection;
    (void)reason;
}

static void report_service(void *context, struct connection *connection)
{
    (void)context;
    peer_manager_set_kind(manager_of_test, connection_id(connection), PEER_SERVICE);
}

static void clients_beyond_the_slots_of_services_are_closed(void **state)
{
    (void)state;
    static const struct switch_observer observer = {
            .connected = report_service, .disconnected = set_service};
    struct test_node node;
    struct test_node clients[CLIENTS];
    struct test_node *nodes[CLIENTS + 1] = {&node};
    test_node_init(&node, NULL, any_port);
    manager_of_test = create_manager(&node, NULL);
    assert_int_equal(switch_add_observer(node.net_switch, &observer, NULL), STATUS_OK);
    for (size_t i = 0; i < CLIENTS; i++) {
        nodes[i + 1] = &clients[i];
        test_node_init(&clients[i], NULL, NULL);
        test_node_dial(&clients[i], &node.address);
    }
    test_nodes_run(nodes, CLIENTS + 1, all_clients_judged, &node);
    assert_int_equal(node.last_reason, CLOSE_SLOTS_MAX);
    fini_manager(&manager_of_test, nodes, CLIENTS + 1);
}

static void clients_that_do_not_identify_count_as_such_in_the_end(void **state)
{
    (void)state;
    struct test_node node;
    struct test_node clients[CLIENTS];
    struct test_node *nodes[CLIENTS + 1] = {&node};
    test_node_init(&node, NULL, any_port);
    identify_ms = 100;
    struct peer_manager *manager = create_manager(&node, NULL);
    identify_ms = 0;
    for (size_t i = 0; i < CLIENTS; i++) {
        nodes[i + 1] = &clients[i];
        test_node_init(&clients[i], NULL, NULL);
        test_node_dial(&clients[i], &node.address);
    }
    test_nodes_run(nodes, CLIENTS + 1, all_clients_judged, &node);
    assert_int_equal(node.last_reason, CLOSE_SLOTS_MAX);
    fini_manager(&manager, nodes, CLIENTS + 1);
}

static bool has_lost_all(void *context)
{
    const struct test_node *node = context;
    return node->connected > 0 && node->connected == node->disconnected;
}

static void a_peer_of_another_cluster_is_left_alone_for_a_while(void **state)
{
    (void)state;
    struct test_node node;
    struct test_node peer;
    struct test_node *nodes[] = {&node, &peer};
    test_node_init(&node, NULL, NULL);
    test_node_init(&peer, NULL, any_port);
    struct peer_manager *manager = create_manager(&node, NULL);
    assert_int_equal(peer_manager_add(manager, &peer.address, PEER_ORIGIN_STATIC), STATUS_OK);
    test_nodes_run(nodes, 2, is_identified, &node);
    uint64_t dials = count_of(METRIC_NET_DIALS);
    switch_close_connection(node.net_switch, node.last_id, CLOSE_OTHER_CLUSTER);
    test_nodes_run(nodes, 2, has_lost_all, &node);
    /* Far more than its backoff of 40 ms. */
    uint64_t until_ms = io_loop_now_ms(node.loop) + 400;
    while (io_loop_now_ms(node.loop) < until_ms) {
        test_nodes_turn(nodes, 2, 1);
    }
    assert_int_equal(count_of(METRIC_NET_DIALS), dials);
    fini_manager(&manager, nodes, 2);
}

struct outcome {
    size_t count;
    enum status status;
};

static void note_outcome(void *context, enum status status)
{
    struct outcome *outcome = context;
    outcome->count++;
    outcome->status = status;
}

static bool is_known_outcome(void *context)
{
    const struct outcome *outcome = context;
    return outcome->count > 0;
}

static struct outcome dial_and_wait(struct peer_manager *manager, struct test_node *nodes[],
        size_t count, const struct multiaddr *address)
{
    struct outcome outcome = {.count = 0};
    assert_int_equal(peer_manager_dial(manager, address, note_outcome, &outcome), STATUS_OK);
    test_nodes_run(nodes, count, is_known_outcome, &outcome);
    assert_int_equal(outcome.count, 1);
    return outcome;
}

static void a_dial_that_is_asked_for_tells_its_outcome_once(void **state)
{
    (void)state;
    struct test_node node;
    struct test_node peer;
    struct test_node *nodes[] = {&node, &peer};
    struct multiaddr nobody;
    test_node_init(&node, NULL, NULL);
    test_node_init(&peer, NULL, any_port);
    struct peer_manager *manager = create_manager(&node, NULL);
    assert_int_equal(dial_and_wait(manager, nodes, 2, &peer.address).status, STATUS_OK);
    uint64_t dials = count_of(METRIC_NET_DIALS);
    assert_int_equal(dial_and_wait(manager, nodes, 2, &peer.address).status, STATUS_OK);
    assert_int_equal(count_of(METRIC_NET_DIALS), dials);
    assert_int_equal(multiaddr_parse(&nobody, span_of_text("/ip4/127.0.0.1/tcp/1")), STATUS_OK);
    assert_int_equal(peer_manager_dial(manager, &nobody, note_outcome, NULL), STATUS_BAD_ADDRESS);
    assert_int_equal(multiaddr_set_peer(&nobody, identity_peer_id(node.identity)), STATUS_OK);
    assert_int_not_equal(dial_and_wait(manager, nodes, 2, &nobody).status, STATUS_OK);
    fini_manager(&manager, nodes, 2);
}

static void a_peer_that_dialled_us_is_not_dialled_when_it_becomes_known(void **state)
{
    (void)state;
    struct test_node node;
    struct test_node peer;
    struct test_node *nodes[] = {&node, &peer};
    test_node_init(&node, NULL, any_port);
    test_node_init(&peer, NULL, any_port);
    struct peer_manager *manager = create_manager(&node, NULL);
    test_node_dial(&peer, &node.address);
    test_nodes_run(nodes, 2, is_identified, &node);
    uint64_t dials = count_of(METRIC_NET_DIALS);
    assert_int_equal(peer_manager_add(manager, &peer.address, PEER_ORIGIN_STATIC), STATUS_OK);
    test_nodes_turn(nodes, 2, 100);
    assert_int_equal(count_of(METRIC_NET_DIALS), dials);
    fini_manager(&manager, nodes, 2);
}

struct seen_peer {
    size_t count;
    size_t ended;
    bool is_connected;
    char agent[32];
    char protocol[32];
    uint32_t cluster_id;
    uint16_t shard;
    size_t addresses;
};

static void look_at_peer(void *context, const struct peer_view *view)
{
    struct seen_peer *seen = context;
    if (view == NULL) {
        seen->ended++;
        return;
    }
    seen->count++;
    seen->addresses = view->record == NULL ? 0 : view->record->address_count;
    seen->is_connected = view->connection != NULL;
    if (seen->is_connected && view->connection->facts != NULL) {
        snprintf(seen->agent, sizeof(seen->agent), "%s", view->connection->facts->agent);
        snprintf(seen->protocol, sizeof(seen->protocol), "%s",
                view->connection->facts->protocols[1]);
    }
    if (seen->is_connected && view->connection->metadata != NULL) {
        seen->cluster_id = view->connection->metadata->cluster_id;
        seen->shard = view->connection->metadata->shards[0];
    }
}

static bool has_ended(void *context)
{
    const struct seen_peer *seen = context;
    return seen->ended > 0;
}

static void tell_about(
        struct peer_manager *manager, uint64_t connection, const struct multiaddr *address)
{
    const struct span protocols[] = {span_of_text("/ipfs/id/1.0.0"), span_of_text("/relay/2")};
    struct peer_facts *facts = peer_facts_create(span_of_text("somebody"), protocols, 2);
    struct peer_metadata *metadata =
            memory_allocate_zeroed(sizeof(*metadata) + sizeof(metadata->shards[0]));
    assert_non_null(facts);
    assert_non_null(metadata);
    facts->has_protocols = true;
    facts->addresses[0] = *address;
    facts->address_count = 1;
    metadata->cluster_id = 16;
    metadata->shard_count = 1;
    metadata->shards[0] = 7;
    peer_manager_identified(manager, connection, PEER_RELAY, facts);
    peer_manager_set_metadata(manager, connection, metadata);
}

static void what_peers_tell_is_shown_and_relay_peers_are_remembered(void **state)
{
    (void)state;
    struct test_node node;
    struct test_node peer;
    struct test_node *nodes[] = {&node, &peer};
    struct seen_peer seen = {.count = 0};
    struct seen_peer later = {.count = 0};
    test_node_init(&node, NULL, any_port);
    test_node_init(&peer, NULL, any_port);
    struct peer_manager *manager = create_manager(&node, NULL);
    test_node_dial(&peer, &node.address);
    test_nodes_run(nodes, 2, is_identified, &node);
    tell_about(manager, node.last_id, &peer.address);
    tell_about(manager, node.last_id + 1, &peer.address); /* of nobody: freed */
    assert_int_equal(peer_manager_visit(manager, look_at_peer, &seen), STATUS_OK);
    test_nodes_run(nodes, 2, has_ended, &seen);
    assert_int_equal(seen.count, 1);
    assert_true(seen.is_connected);
    assert_string_equal(seen.agent, "somebody");
    assert_string_equal(seen.protocol, "/relay/2");
    assert_int_equal(seen.cluster_id, 16);
    assert_int_equal(seen.shard, 7);
    assert_int_equal(seen.addresses, 1);
    /* Gone, and dialled by the address that it announced. */
    switch_close_connection(peer.net_switch, peer.last_id, CLOSE_REQUESTED);
    test_nodes_run(nodes, 2, is_identified_again, &node);
    assert_int_equal(peer_manager_visit(manager, look_at_peer, &later), STATUS_OK);
    test_nodes_run(nodes, 2, has_ended, &later);
    assert_int_equal(later.count, 1);
    assert_true(later.is_connected);
    fini_manager(&manager, nodes, 2);
}

static void peers_of_the_file_are_dialled_after_a_restart(void **state)
{
    (void)state;
    char path[] = "/tmp/sluice-peers-XXXXXX";
    char text[MULTIADDR_TEXT_SIZE];
    struct test_node node;
    struct test_node peer;
    struct test_node *nodes[] = {&node, &peer};
    int descriptor = mkstemp(path);
    test_node_init(&node, NULL, NULL);
    test_node_init(&peer, NULL, any_port);
    multiaddr_print(text, &peer.address);
    assert_int_equal(write(descriptor, text, strlen(text)), strlen(text));
    close(descriptor);
    struct peer_manager *manager = create_manager(&node, path);
    test_nodes_run(nodes, 2, is_identified, &node);
    fini_manager(&manager, nodes, 2);
    unlink(path);
}

static void count_address(void *context, const struct multiaddr *address)
{
    (void)address;
    (*(size_t *)context)++;
}

static void peers_are_saved_and_read_again(void **state)
{
    (void)state;
    char path[] = "/tmp/sluice-peers-XXXXXX";
    int descriptor = mkstemp(path);
    assert_true(descriptor >= 0);
    close(descriptor);
    struct test_node node;
    struct test_node *nodes[] = {&node};
    struct multiaddr address;
    struct stat information;
    size_t count = 0;
    test_node_init(&node, NULL, any_port);
    struct peer_manager *manager = create_manager(&node, path);
    assert_int_equal(multiaddr_parse(&address, span_of_text("/ip4/127.0.0.1/tcp/1")), STATUS_OK);
    assert_int_equal(multiaddr_set_peer(&address, identity_peer_id(node.identity)), STATUS_OK);
    assert_int_equal(peer_manager_add(manager, &address, PEER_ORIGIN_FILE), STATUS_OK);
    test_nodes_turn(nodes, 1, 2);
    fini_manager(&manager, nodes, 1);
    assert_int_equal(peer_file_read(path, count_address, &count), STATUS_OK);
    assert_int_equal(count, 1);
    assert_int_equal(stat(path, &information), 0);
    assert_int_equal(information.st_mode & 0777, 0600);
    unlink(path);
}

static void lines_that_are_no_peers_are_skipped(void **state)
{
    (void)state;
    char path[] = "/tmp/sluice-peers-XXXXXX";
    int descriptor = mkstemp(path);
    static const char text[] =
            "nonsense\n/ip4/127.0.0.1/tcp/1\n\n"
            "/ip4/10.0.0.1/tcp/5/p2p/16Uiu2HAmQqLv5rimByC1sVNCiC3bRpmZCXLN6ys9DLmHpaEY7QUH\n"
            "/ip4/10.0.0.1/tcp/5/p2p/16Uiu2HAm";
    size_t count = 0;
    assert_int_equal(write(descriptor, text, sizeof(text) - 1), sizeof(text) - 1);
    close(descriptor);
    assert_int_equal(peer_file_read(path, count_address, &count), STATUS_OK);
    assert_int_equal(count, 1);
    unlink(path);
    assert_int_equal(peer_file_read(path, count_address, &count), STATUS_NOT_FOUND);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(a_static_peer_is_dialled_again_after_it_has_restarted),
            cmocka_unit_test(a_removed_peer_is_disconnected_and_not_dialled_again),
            cmocka_unit_test(a_removed_client_is_disconnected),
            cmocka_unit_test(clients_beyond_the_slots_of_services_are_closed),
            cmocka_unit_test(clients_that_do_not_identify_count_as_such_in_the_end),
            cmocka_unit_test(a_peer_of_another_cluster_is_left_alone_for_a_while),
            cmocka_unit_test(a_dial_that_is_asked_for_tells_its_outcome_once),
            cmocka_unit_test(a_peer_that_dialled_us_is_not_dialled_when_it_becomes_known),
            cmocka_unit_test(what_peers_tell_is_shown_and_relay_peers_are_remembered),
            cmocka_unit_test(peers_of_the_file_are_dialled_after_a_restart),
            cmocka_unit_test(peers_are_saved_and_read_again),
            cmocka_unit_test(lines_that_are_no_peers_are_skipped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
