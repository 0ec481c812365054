/* SPDX-License-Identifier: MIT */

/*
 * Peers that come and vanish in every phase, again and again: nothing of them is left, in tables or in
 * memory. SLUICE_CYCLES makes it so many comings.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/rcu.h"
#include "codec/gossip_writer.h"
#include "net/protocols/relay.h"
#include "net/transport/address.h"
#include "node/network.h"
#include "node/peers.h"
#include "tests/support/cmocka.h"
#include "tests/support/heap.h"
#include "tests/support/live_node.h"
#include "tests/support/stranger.h"

enum {
    CYCLES = 160,
    PHASES = 10,
    SILENT = 4,      /* sockets that say nothing and stay, at a time */
    TOPICS = 100,    /* that a peer makes up, in each of its RPCs */
    TOPIC_RPCS = 10, /* more of them than are taken note of */
    LARGE = 50000,
    LARGES = 40, /* more than the muxer's window */
    LIST_TIMEOUT_MS = 10 * 1000,
    LOG_BYTES_A_SECOND = 10000,
    KEPT_BYTES_MAX = 256 * 1024 /* by the second half of the comings */
};

static size_t cycles(void)
{
    const char *text = getenv("SLUICE_CYCLES");
    return text != NULL ? strtoull(text, NULL, 10) : CYCLES;
}

/* The handshake's first steps: multistream, and Noise's first message, an ephemeral key that is any. */
static const char multistream[] = "\x13/multistream/1.0.0\n\x07/noise\n";
static const char noise_key[] = "\x00\x20"
                                "0123456789abcdefghijklmnopqrstuv";

static int come_raw(const struct live_node *live, const char *bytes, size_t length)
{
    struct multiaddr address;
    struct multiaddr_endpoint endpoint;
    struct sockaddr_storage to;
    assert_int_equal(multiaddr_parse(&address, span_of_text(live->address)), STATUS_OK);
    assert_int_equal(multiaddr_endpoint(&endpoint, &address), STATUS_OK);
    assert_int_equal(address_from_endpoint(&to, &endpoint), STATUS_OK);
    int descriptor = socket(to.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(descriptor >= 0);
    assert_int_equal(connect(descriptor, (struct sockaddr *)&to, address_length(&to)), 0);
    (void)!send(descriptor, bytes, length, MSG_NOSIGNAL);
    return descriptor;
}

/* With a RST instead of a FIN. */
static void vanish(int descriptor)
{
    struct linger at_once = {.l_onoff = 1, .l_linger = 0};
    assert_int_equal(setsockopt(descriptor, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once)), 0);
    close(descriptor);
}

static void come_and_stay_silent(const struct live_node *live, size_t number)
{
    static int silent[SILENT] = {-1, -1, -1, -1};
    int *place = &silent[number % SILENT];
    if (*place >= 0) {
        close(*place);
    }
    *place = come_raw(live, multistream, number % 2 == 0 ? 0 : sizeof(multistream) - 1);
}

/* Topics that nobody else has ever named. */
static void say_topics(struct stranger *stranger, size_t number)
{
    for (size_t rpc = 0; rpc < TOPIC_RPCS; rpc++) {
        char names[TOPICS][32];
        struct gossip_subscription subscriptions[TOPICS];
        uint8_t bytes[TOPICS * 48];
        for (size_t i = 0; i < TOPICS; i++) {
            snprintf(names[i], sizeof(names[i]), "/made/up/%zx/%zu", number, rpc * TOPICS + i);
            subscriptions[i] = (struct gossip_subscription){
                    .topic = span_of_text(names[i]), .subscribe = true};
        }
        struct gossip_outgoing out = {.subscriptions = subscriptions, .subscription_count = TOPICS};
        stranger_say(stranger, span_of(bytes, gossip_outgoing_write(bytes, sizeof(bytes), &out)));
    }
}

/* Messages wait for it when it goes. */
static void come_deaf(struct live_node *live)
{
    static uint8_t message[LARGE + 128];
    struct stranger_options deaf = {.reads_nothing = true};
    struct stranger stranger;
    size_t received = live_node_received(live);
    stranger_start(&stranger, &deaf, live->address);
    stranger_subscribe(&stranger, LIVE_NODE_TOPIC);
    stranger_publish(&stranger, LIVE_NODE_TOPIC,
            span_of(message, live_message(message, clock_monotonic_ns(), 100)));
    live_node_wait(live, received + 1); /* so it is known to be subscribed */
    for (size_t i = 0; i < LARGES; i++) {
        live_node_publish(
                live, span_of(message, live_message(message, clock_monotonic_ns(), LARGE)));
    }
    live_node_wait(live, received + 1 + LARGES);
    stranger_stop(&stranger);
}

static void come_and_speak(struct live_node *live, size_t number, unsigned phase)
{
    uint8_t message[256];
    struct stranger stranger;
    struct stranger_options options = {.muxer = number % 3 == 0 ? "mplex" : "yamux"};
    stranger_start(&stranger, &options, live->address);
    if (phase == 6) {
        say_topics(&stranger, number);
    }
    if (phase >= 7) {
        stranger_subscribe(&stranger, LIVE_NODE_TOPIC);
    }
    if (phase >= 8) {
        stranger_publish(&stranger, LIVE_NODE_TOPIC,
                span_of(message, live_message(message, clock_monotonic_ns(), 100)));
    }
    if (phase >= 9) {
        stranger_say(&stranger, span_of("\xff\x07 in the middle of a frame", 27));
    }
    stranger_stop(&stranger);
}

static void come_and_go(struct live_node *live, size_t number)
{
    unsigned phase = (unsigned)(number % PHASES);
    switch (phase) {
    case 0:
        vanish(come_raw(live, "", 0));
        break;
    case 1:
        vanish(come_raw(live, multistream, 7));
        break;
    case 2:
        close(come_raw(live, multistream, sizeof(multistream) - 1));
        break;
    case 3: { /* Noise's second message is on its way to it */
        int descriptor = come_raw(live, multistream, sizeof(multistream) - 1);
        (void)!send(descriptor, noise_key, sizeof(noise_key) - 1, MSG_NOSIGNAL);
        vanish(descriptor);
        break;
    }
    case 4:
        come_and_stay_silent(live, number / PHASES);
        break;
    case 5:
        come_deaf(live);
        break;
    default:
        come_and_speak(live, number, phase);
        break;
    }
}

static size_t count_connected(struct live_node *live)
{
    struct node_peer_list *list = NULL;
    size_t count = 0;
    assert_int_equal(node_peers_list(live->node, &list, LIST_TIMEOUT_MS), STATUS_OK);
    for (size_t i = 0; i < list->count; i++) {
        count += list->peers[i].state == NODE_PEER_CONNECTED;
    }
    node_peer_list_destroy(&list);
    return count;
}

/* All that came have been noticed to be gone, and what they left behind has been given back. */
static void wait_until_alone(struct live_node *live)
{
    struct relay *relay = network_relay(node_network(live->node));
    struct timespec slice = {.tv_nsec = (long)5 * NANOSECONDS_PER_MILLISECOND};
    uint64_t end_ns = clock_monotonic_ns() + (uint64_t)LIVE_NODE_WAIT_S * NANOSECONDS_PER_SECOND;
    while (live_node_metric(live, METRIC_RELAY_PEERS_LEFT) !=
                    live_node_metric(live, METRIC_RELAY_PEERS_JOINED) ||
            count_connected(live) > 0 || relay_held(relay) > 0 ||
            frame_budget_used(node_budget(live->node)) > 0) {
        assert_true(clock_monotonic_ns() < end_ns);
        nanosleep(&slice, NULL);
    }
    assert_int_equal(relay_peer_count(relay), 0);
    assert_int_equal(relay_outbound(relay).bytes, 0);
    assert_int_equal(relay_outbound(relay).messages, 0);
    rcu_drain();
}

static _Atomic size_t log_bytes;

static void count_log(void *context, enum log_level level, const char *module, const char *line)
{
    (void)context;
    (void)level;
    atomic_fetch_add(&log_bytes, strlen(module) + strlen(line) + 40);
}

static size_t run(struct live_node *live, size_t first, size_t count)
{
    for (size_t i = first; i < first + count; i++) {
        come_and_go(live, i);
    }
    wait_until_alone(live);
    return heap_bytes() - live->capacity * sizeof(live->digests[0]); /* what the test keeps */
}

static void peers_that_come_and_vanish_in_every_phase_leave_nothing(void **state)
{
    (void)state;
    /* What is kept of messages on purpose is not what this is about. */
    static const char *const settings[] = {"recent-limit", "0", "relay-cache-limit", "0",
            "seen-limit", "64KiB", "store-sync-range", "1s", "store-sync-relay-jitter", "0", NULL};
    struct live_node live;
    size_t half = cycles() / 2 / PHASES * PHASES;
    uint64_t began_ns = clock_monotonic_ns();
    log_set_sink(count_log, NULL);
    live_node_start(&live, settings);
    size_t before = run(&live, 0, half);
    size_t after = run(&live, half, half);
    print_message("%zu comings: %zu bytes half-way, %zu at the end\n", 2 * half, before, after);
    assert_true(after <= before + KEPT_BYTES_MAX);
    uint64_t seconds = (clock_monotonic_ns() - began_ns) / NANOSECONDS_PER_SECOND + 1;
    assert_true(atomic_load(&log_bytes) <= seconds * LOG_BYTES_A_SECOND);
    live_node_stop(&live);
    log_set_sink(NULL, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(peers_that_come_and_vanish_in_every_phase_leave_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
