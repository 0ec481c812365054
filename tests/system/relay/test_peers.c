/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "net/protocols/metadata.h"
#include "node/network.h"
#include "node/peers.h"
#include "tests/support/cmocka.h"
#include "tests/support/live_node.h"

enum {
    LIST_TIMEOUT_MS = 10 * 1000
};

static struct node_peer_list *list_of(struct live_node *live)
{
    struct node_peer_list *list = NULL;
    assert_int_equal(node_peers_list(live->node, &list, LIST_TIMEOUT_MS), STATUS_OK);
    return list;
}

static const struct node_peer *find_peer(
        const struct node_peer_list *list, const char *address_of_peer)
{
    struct multiaddr address;
    struct peer_id peer;
    const struct peer_id *id = &peer;
    assert_int_equal(multiaddr_parse(&address, span_of_text(address_of_peer)), STATUS_OK);
    assert_true(multiaddr_peer(&peer, &address));
    for (size_t i = 0; i < list->count; i++) {
        if (peer_id_equal(&list->peers[i].id, id)) {
            return &list->peers[i];
        }
    }
    return NULL;
}

/* Lists until the peer is as condition wants it; the list is the caller's. */
static struct node_peer_list *wait_for_peer(
        struct live_node *live, const char *peer, bool (*condition)(const struct node_peer *peer))
{
    uint64_t end_ns = clock_monotonic_ns() + (uint64_t)LIVE_NODE_WAIT_S * NANOSECONDS_PER_SECOND;
    struct timespec slice = {.tv_nsec = 10 * NANOSECONDS_PER_MILLISECOND};
    for (;;) {
        struct node_peer_list *list = list_of(live);
        const struct node_peer *found = find_peer(list, peer);
        if (found != NULL && condition(found)) {
            return list;
        }
        node_peer_list_destroy(&list);
        assert_true(clock_monotonic_ns() < end_ns);
        nanosleep(&slice, NULL);
    }
}

static bool is_complete(const struct node_peer *peer)
{
    return peer->state == NODE_PEER_CONNECTED && peer->protocol_count > 0 && peer->has_cluster &&
           peer->has_score && peer->mesh_topic_count > 0;
}

static bool is_gone(const struct node_peer *peer)
{
    return peer->state != NODE_PEER_CONNECTED;
}

static bool is_connected(const struct node_peer *peer)
{
    return peer->state == NODE_PEER_CONNECTED;
}

static bool has_protocol(const struct node_peer *peer, const char *id)
{
    for (size_t i = 0; i < peer->protocol_count; i++) {
        if (strcmp(peer->protocols[i], id) == 0) {
            return true;
        }
    }
    return false;
}

static void the_list_shows_what_peers_are_and_do(void **state)
{
    (void)state;
    struct live_node a;
    struct live_node b;
    char text[MULTIADDR_TEXT_SIZE];
    const char *settings_a[] = {"agent-string", "the listener", "decode-lanes", "2", NULL};
    live_node_start(&a, settings_a);
    const char *settings_b[] = {"staticnode", a.address, "io-threads", "2", NULL};
    live_node_start(&b, settings_b);
    struct node_peer_list *list = wait_for_peer(&b, a.address, is_complete);
    const struct node_peer *peer = find_peer(list, a.address);
    assert_int_equal(list->count, 1);
    assert_int_equal(peer->origin, PEER_ORIGIN_STATIC);
    assert_true(peer->is_outbound);
    assert_string_equal(peer->agent, "the listener");
    assert_true(has_protocol(peer, RELAY_PROTOCOL_ID));
    assert_true(has_protocol(peer, METADATA_PROTOCOL_ID));
    assert_int_equal(peer->cluster_id, 16);
    assert_int_equal(peer->shard_count, 1);
    assert_int_equal(peer->shards[0], 0);
    assert_int_equal(peer->mesh_topic_count, 1);
    assert_string_equal(peer->mesh_topics[0], LIVE_NODE_TOPIC);
    assert_string_equal(multiaddr_print(text, &peer->addresses[0]), a.address);
    node_peer_list_destroy(&list);
    list = wait_for_peer(&a, b.address, is_complete);
    peer = find_peer(list, b.address);
    assert_int_equal(peer->origin, PEER_ORIGIN_INBOUND);
    assert_false(peer->is_outbound);
    /* Where it listens comes before the port that it dialled from. */
    assert_string_equal(multiaddr_print(text, &peer->addresses[0]), b.address);
    assert_int_equal(peer->address_count, 2);
    node_peer_list_destroy(&list);
    live_node_stop(&b);
    list = wait_for_peer(&a, b.address, is_gone);
    node_peer_list_destroy(&list);
    live_node_stop(&a);
}

static void a_dial_that_is_asked_for_connects(void **state)
{
    (void)state;
    struct live_node a;
    struct live_node b;
    struct multiaddr address;
    live_node_start(&a, NULL);
    live_node_start(&b, NULL);
    assert_int_equal(multiaddr_parse(&address, span_of_text(a.address)), STATUS_OK);
    assert_int_equal(node_dial_and_wait(b.node, &address), STATUS_OK);
    struct node_peer_list *list = wait_for_peer(&b, a.address, is_connected);
    assert_int_equal(find_peer(list, a.address)->origin, PEER_ORIGIN_REQUESTED);
    node_peer_list_destroy(&list);
    live_node_stop(&a);
    assert_int_not_equal(node_dial_and_wait(b.node, &address), STATUS_OK);
    live_node_stop(&b);
}

static void a_peer_of_another_cluster_is_disconnected_once(void **state)
{
    (void)state;
    struct live_node a;
    struct live_node b;
    const char *settings_a[] = {"cluster-id", "17", NULL};
    live_node_start(&a, settings_a);
    const char *settings_b[] = {"staticnode", a.address, NULL};
    live_node_start(&b, settings_b);
    struct node_peer_list *list = wait_for_peer(&b, a.address, is_gone);
    while (live_node_metric(&b, METRIC_NET_CLOSED_OTHER_CLUSTER) +
                    live_node_metric(&a, METRIC_NET_CLOSED_OTHER_CLUSTER) ==
            0) {
        node_peer_list_destroy(&list);
        list = wait_for_peer(&b, a.address, is_gone);
    }
    node_peer_list_destroy(&list);
    /* The first redial of any other reason would come within two seconds. */
    struct timespec slice = {.tv_sec = 3};
    nanosleep(&slice, NULL);
    assert_int_equal(live_node_metric(&b, METRIC_NET_DIALS), 1);
    live_node_stop(&b);
    live_node_stop(&a);
}

static void peers_are_found_again_after_a_restart(void **state)
{
    (void)state;
    struct live_node a;
    struct live_node b;
    struct multiaddr address;
    char path[] = "/tmp/sluice-peers-XXXXXX";
    int descriptor = mkstemp(path);
    assert_true(descriptor >= 0);
    close(descriptor);
    const char *settings[] = {"peer-persistence", "true", "peer-store-file", path, NULL};
    live_node_start(&a, NULL);
    live_node_start(&b, settings);
    assert_int_equal(multiaddr_parse(&address, span_of_text(a.address)), STATUS_OK);
    assert_int_equal(node_dial_and_wait(b.node, &address), STATUS_OK);
    live_node_stop(&b);
    live_node_start(&b, settings);
    struct node_peer_list *list = wait_for_peer(&b, a.address, is_connected);
    assert_int_equal(find_peer(list, a.address)->origin, PEER_ORIGIN_FILE);
    node_peer_list_destroy(&list);
    live_node_stop(&b);
    live_node_stop(&a);
    unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(the_list_shows_what_peers_are_and_do),
            cmocka_unit_test(a_dial_that_is_asked_for_connects),
            cmocka_unit_test(a_peer_of_another_cluster_is_disconnected_once),
            cmocka_unit_test(peers_are_found_again_after_a_restart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
