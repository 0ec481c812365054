/* SPDX-License-Identifier: MIT */
#include "hash/sha256.h"
#include "net/protocols/relay.h"
#include "node/network.h"
#include "tests/support/cmocka.h"
#include "tests/support/live_node.h"

enum {
    MESSAGES = 1000,
    WINDOW = 32,
    SIZES = 3
};

static const size_t sizes[SIZES] = {100, 10000, 50000};

struct sent {
    uint8_t digests[MESSAGES][SHA256_BYTES];
    size_t count;
};

static void start_two(struct live_node *a, struct live_node *b)
{
    live_node_start(a, NULL);
    const char *settings[] = {"staticnode", a->address, NULL};
    live_node_start(b, settings);
    live_node_wait_for_way(a, b);
    live_node_wait_for_way(b, a);
}

static void publish(struct live_node *from, struct sent *sent, uint64_t number)
{
    static uint8_t message[64 * 1024];
    struct span bytes = span_of(message, live_message(message, number, sizes[number % SIZES]));
    sha256(sent->digests[sent->count++], (struct sha256_pieces){&bytes, 1});
    live_node_publish(from, bytes);
}

/* All that was sent comes, byte for byte, and nothing comes twice. */
static void check_received(struct live_node *live, const struct sent *sent)
{
    for (size_t i = 0; i < sent->count; i++) {
        live_node_wait_for(live, sent->digests[i]);
    }
    assert_int_equal(live_node_copies(live), 0);
}

static void two_nodes_exchange_a_thousand_messages_each_way_unchanged(void **state)
{
    (void)state;
    static struct sent from_a;
    static struct sent from_b;
    struct live_node a;
    struct live_node b;
    start_two(&a, &b);
    size_t before_a = live_node_received(&a);
    size_t before_b = live_node_received(&b);
    for (size_t i = 0; i < MESSAGES; i++) {
        publish(&a, &from_a, i);
        publish(&b, &from_b, i + MESSAGES);
        size_t behind = i < WINDOW ? 0 : (i - WINDOW) * 2; /* each has its own as well */
        live_node_wait(&a, before_a + behind);
        live_node_wait(&b, before_b + behind);
    }
    check_received(&a, &from_b);
    check_received(&b, &from_a);
    assert_int_equal(live_node_metric(&a, METRIC_COPIES), 0);
    assert_true(live_node_metric(&b, METRIC_UNKNOWN_FIELDS) >= 2 * (uint64_t)MESSAGES);
    live_node_stop(&a);
    live_node_stop(&b);
}

static void a_message_crosses_a_node_between_two_others(void **state)
{
    (void)state;
    static struct sent from_a;
    struct live_node a;
    struct live_node b;
    struct live_node c;
    start_two(&a, &b);
    const char *settings[] = {"staticnode", b.address, NULL};
    live_node_start(&c, settings);
    live_node_wait_for_way(&a, &c);
    size_t before = live_node_received(&c);
    for (uint64_t i = 0; i < 100; i++) {
        publish(&a, &from_a, i);
        live_node_wait(&c, before + i + 1);
    }
    check_received(&c, &from_a);
    live_node_stop(&a);
    live_node_stop(&b);
    live_node_stop(&c);
}

/* gossipsub 1.0, "fanout": whoever takes no part in a topic publishes to peers that do. */
static void to_a_shard_without_us_messages_go_by_fanout_and_to_no_stage(void **state)
{
    (void)state;
    static const char name[] = "/waku/2/rs/16/7";
    static const char beyond[] = "/waku/2/rs/16/8";
    struct live_node a;
    struct live_node b;
    bool is_fanout;
    const char *network[] = {"num-shards-in-network", "8", "relay-all-shards", "false", NULL};
    live_node_start(&a, network);
    const char *settings[] = {"staticnode", a.address, NULL};
    live_node_start(&b, settings);
    assert_int_equal(node_subscribe_topic(b.node, &b.topic, span_of_text(name)), STATUS_OK);
    a.topic = node_publish_topic(a.node, span_of_text(name), &is_fanout);
    assert_non_null(a.topic);
    assert_true(is_fanout);
    assert_null(node_publish_topic(a.node, span_of_text(beyond), &is_fanout));
    live_node_wait_for_way(&a, &b);
    assert_int_equal(live_node_received(&a), 0);
    assert_true(live_node_metric(&a, METRIC_PUBLISH_FANOUT) > 0);
    assert_int_equal(live_node_metric(&a, (enum metric)LEDGER_EVENT_RECEIVED), 0);
    assert_int_equal(live_node_metric(&a, (enum metric)LEDGER_ARCHIVE_RECEIVED), 0);
    /* Joined, it is a topic as any other. */
    assert_int_equal(node_subscribe_topic(a.node, &a.topic, span_of_text(name)), STATUS_OK);
    live_node_wait_for_way(&b, &a);
    live_node_stop(&a);
    live_node_stop(&b);
}

static void a_topic_that_is_joined_later_is_relayed_and_one_that_is_left_is_not(void **state)
{
    (void)state;
    static const char name[] = "/waku/2/rs/16/7";
    struct live_node a;
    struct live_node b;
    start_two(&a, &b);
    assert_int_equal(node_subscribe_topic(b.node, &b.topic, span_of_text(name)), STATUS_OK);
    assert_int_equal(node_subscribe_topic(a.node, &a.topic, span_of_text(name)), STATUS_OK);
    live_node_wait_for_way(&a, &b);
    live_node_wait_for_way(&b, &a);
    assert_int_equal(node_unsubscribe_topic(a.node, span_of_text(name)), STATUS_OK);
    assert_int_equal(node_unsubscribe_topic(b.node, span_of_text(name)), STATUS_OK);
    uint64_t refused = live_node_metric(&b, (enum metric)LEDGER_INTAKE_TOPIC_NOT_SUBSCRIBED);
    assert_int_equal(
            node_subscribe_topic(a.node, &a.topic, span_of_text(LIVE_NODE_TOPIC)), STATUS_OK);
    assert_int_equal(
            node_subscribe_topic(b.node, &b.topic, span_of_text(LIVE_NODE_TOPIC)), STATUS_OK);
    live_node_wait_for_way(&a, &b);
    assert_true(
            live_node_metric(&b, (enum metric)LEDGER_INTAKE_TOPIC_NOT_SUBSCRIBED) - refused <= 1);
    live_node_stop(&a);
    live_node_stop(&b);
}

static void never_sends_an_rpc_that_others_would_refuse(void **state)
{
    (void)state;
    static uint8_t message[160 * 1024];
    struct live_node a;
    struct live_node b;
    start_two(&a, &b);
    uint64_t before = live_node_metric(&a, (enum metric)LEDGER_RELAY_OUT_TOO_LARGE);
    size_t length = live_message(message, 1, 153600 - 60);
    while (length > 153600) {
        length = live_message(message, 1, 153600 - 60 - (length - 153600));
    }
    live_node_publish(&a, span_of(message, length));
    live_node_wait_metric(&a, (enum metric)LEDGER_RELAY_OUT_TOO_LARGE, before + 1);
    live_node_wait_for_way(&a, &b);
    assert_int_equal(live_node_metric(&b, METRIC_RELAY_FRAMES_TOO_LARGE), 0);
    live_node_stop(&a);
    live_node_stop(&b);
}

static void a_peer_that_comes_again_is_one_peer(void **state)
{
    (void)state;
    struct live_node a;
    live_node_start(&a, NULL);
    const char *settings[] = {"staticnode", a.address, NULL};
    for (uint64_t i = 1; i <= 5; i++) {
        struct live_node b;
        live_node_start(&b, settings);
        live_node_wait_for_way(&a, &b);
        assert_int_equal(relay_peer_count(network_relay(node_network(a.node))), 1);
        live_node_stop(&b);
        live_node_wait_metric(&a, METRIC_RELAY_PEERS_LEFT, i);
        assert_int_equal(live_node_metric(&a, METRIC_RELAY_PEERS_JOINED), i);
    }
    assert_int_equal(relay_peer_count(network_relay(node_network(a.node))), 0);
    live_node_stop(&a);
}

static void nodes_of_two_clusters_part(void **state)
{
    (void)state;
    struct live_node a;
    struct live_node b;
    live_node_start(&a, NULL);
    const char *settings[] = {"cluster-id", "17", "staticnode", a.address, NULL};
    live_node_start(&b, settings);
    live_node_wait_metric(&a, METRIC_RELAY_PEERS_JOINED, 1);
    live_node_wait_metric(&a, METRIC_RELAY_PEERS_LEFT, 1);
    assert_true(live_node_metric(&a, METRIC_NET_CLOSED_OTHER_CLUSTER) +
                        live_node_metric(&b, METRIC_NET_CLOSED_OTHER_CLUSTER) >
                0);
    live_node_stop(&a);
    live_node_stop(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(two_nodes_exchange_a_thousand_messages_each_way_unchanged),
            cmocka_unit_test(a_message_crosses_a_node_between_two_others),
            cmocka_unit_test(a_topic_that_is_joined_later_is_relayed_and_one_that_is_left_is_not),
            cmocka_unit_test(to_a_shard_without_us_messages_go_by_fanout_and_to_no_stage),
            cmocka_unit_test(never_sends_an_rpc_that_others_would_refuse),
            cmocka_unit_test(a_peer_that_comes_again_is_one_peer),
            cmocka_unit_test(nodes_of_two_clusters_part),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
