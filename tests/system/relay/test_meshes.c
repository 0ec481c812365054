/* SPDX-License-Identifier: MIT */

/* Nodes on loopback, of which one publishes as fast as it may: what it was told has gone, comes. */

#include <string.h>

#include "base/clock.h"
#include "base/tsan.h"
#include "net/protocols/relay.h"
#include "node/network.h"
#include "tests/support/cmocka.h"
#include "tests/support/heap.h"
#include "tests/support/live_node.h"
#include "tests/support/stranger.h"

enum {
    NODES = 10,
    LINKS = 4, /* that each node dials */
#ifdef HEAP_OF_SANITIZER
    BURST = 1000,
#else
    BURST = 4000, /* 8 MB, twice what may wait for a peer */
#endif
    PAYLOAD = 2000,
    LARGE = 10000,
    LARGES = 3000, /* 30 MB: more than the kernel's buffers and what may wait */
    PAUSE_S = 1,
    QUEUE_BYTES = 4 * 1024 * 1024
};

static size_t connected_peers(const struct live_node *live)
{
    return relay_peer_count(network_relay(node_network(live->node)));
}

/* The others pass on whatever comes; the first has its publisher wait for its peers. */
static void start_all(struct live_node nodes[NODES])
{
    for (size_t i = 0; i < NODES; i++) {
        const char *settings[2 * LINKS + 12] = {"io-threads", "1"};
        size_t count = 2;
        for (size_t k = 1; k <= LINKS && k <= i; k++) {
            settings[count++] = "staticnode";
            settings[count++] = nodes[i - k].address;
        }
        static const char *const patient[] = {
                "relay-queue-limit", "64MiB", "relay-queue-age", "120s", "outbound-budget", "1GiB"};
        if (i > 0) {
            memcpy(&settings[count], patient, sizeof(patient));
        }
        live_node_start(&nodes[i], settings);
    }
    for (size_t i = 1; i < NODES; i++) {
        live_node_wait_for_way(&nodes[0], &nodes[i]);
    }
}

static void a_burst_of_one_node_reaches_all_others(void **state)
{
    (void)state;
    static struct live_node nodes[NODES];
    static uint8_t message[PAYLOAD + 128];
    size_t before[NODES];
    size_t peers[NODES];
    start_all(nodes);
    for (size_t i = 0; i < NODES; i++) {
        before[i] = live_node_received(&nodes[i]);
        peers[i] = connected_peers(&nodes[i]);
    }
    for (uint64_t i = 0; i < BURST; i++) {
        live_node_publish(&nodes[0], span_of(message, live_message(message, i, PAYLOAD)));
    }
    for (size_t i = 0; i < NODES; i++) {
        live_node_wait(&nodes[i], before[i] + BURST);
        assert_true(connected_peers(&nodes[i]) >= peers[i]); /* others may still have been coming */
    }
    for (size_t i = 0; i < NODES; i++) {
        live_node_stop(&nodes[i]);
    }
}

/*
 * Two peers: one takes nothing for a second, as on a slow link, the other one nothing at all. The second
 * costs what its queue may hold, and the first loses nothing, since the publisher waits for it.
 */
static void a_burst_reaches_a_good_peer_whatever_another_one_does(void **state)
{
    (void)state;
    static uint8_t message[LARGE + 128];
    struct stranger_options options = {.reads_nothing = true};
    struct stranger deaf;
    struct live_node a;
    struct live_node b;
    live_node_start(&a, NULL);
    const char *settings[] = {"staticnode", a.address, "relay-peer-budget", "512KiB", NULL};
    live_node_start(&b, settings);
    live_node_wait_for_way(&a, &b);
    stranger_start(&deaf, &options, a.address);
    stranger_subscribe(&deaf, LIVE_NODE_TOPIC);
    live_node_wait_metric(&a, METRIC_RELAY_PEERS_JOINED, 2);
    struct relay *relay = network_relay(node_network(a.node));
    size_t before = live_node_received(&b);
    size_t most = 0;
    node_stall(b.node, NODE_ROLE_DECODE,
            clock_monotonic_ns() + (uint64_t)PAUSE_S * NANOSECONDS_PER_SECOND);
    for (uint64_t i = 0; i < LARGES; i++) {
        live_node_publish(&a, span_of(message, live_message(message, i, LARGE)));
        size_t bytes = relay_outbound(relay).bytes;
        most = bytes > most ? bytes : most;
    }
    live_node_wait(&b, before + LARGES);
    /* What waits for the deaf one, and what for the other. */
    assert_true(most <= (size_t)2 * QUEUE_BYTES);
    assert_true(live_node_metric(&a, (enum metric)LEDGER_RELAY_OUT_QUEUE_FULL) > 0);
    assert_true(stranger_is_connected(&deaf));
    stranger_stop(&deaf);
    live_node_stop(&b);
    live_node_stop(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(a_burst_of_one_node_reaches_all_others),
            cmocka_unit_test(a_burst_reaches_a_good_peer_whatever_another_one_does),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
