/* SPDX-License-Identifier: MIT */

/*
 * A service with a filter subscriber and a relay peer while the wall clock steps: the linker puts the
 * clock of this file in place of clock_wall_ns.
 */

#include <stdatomic.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "node/filter.h"
#include "tests/support/archived_ids.h"
#include "tests/support/cmocka.h"
#include "tests/support/live_node.h"

#define CONTENT "/test/1/relay/proto" /* of live_message */
#define HOUR_NS (INT64_C(3600) * NANOSECONDS_PER_SECOND)

int64_t __real_clock_wall_ns(void);
int64_t __wrap_clock_wall_ns(void);

static _Atomic int64_t offset_ns;
static atomic_size_t pushed;

int64_t __wrap_clock_wall_ns(void)
{
    return __real_clock_wall_ns() + atomic_load(&offset_ns);
}

static void count_push(void *context, struct span pubsub_topic, struct span message)
{
    (void)context;
    (void)pubsub_topic;
    (void)message;
    atomic_fetch_add(&pushed, 1);
}

static uint32_t ask(struct live_node *client, enum node_filter_verb verb)
{
    struct span content = span_of_text(CONTENT);
    struct node_filter_request request = {.verb = verb,
            .pubsub_topic = span_of_text(LIVE_NODE_TOPIC),
            .content_topics = &content,
            .content_topic_count = 1,
            .timeout_ms = LIVE_NODE_WAIT_S * 1000};
    struct node_filter_answer answer;
    assert_int_equal(node_filter_ask_and_wait(client->node, &request, &answer), STATUS_OK);
    return answer.code;
}

static void wait_pushed(size_t count)
{
    struct timespec slice = {.tv_nsec = (long)5 * NANOSECONDS_PER_MILLISECOND};
    uint64_t end_ns = clock_monotonic_ns() + (uint64_t)LIVE_NODE_WAIT_S * NANOSECONDS_PER_SECOND;
    while (atomic_load(&pushed) < count) {
        assert_true(clock_monotonic_ns() < end_ns);
        nanosleep(&slice, NULL);
    }
    assert_int_equal(atomic_load(&pushed), count);
}

static void assert_nobody_left(struct live_node nodes[], size_t count)
{
    for (size_t i = 0; i < count; i++) {
        for (int reason = METRIC_NET_CLOSED_CONNECTIONS_MAX; reason <= METRIC_NET_CLOSED_STOPPING;
                reason++) {
            assert_int_equal(live_node_metric(&nodes[i], (enum metric)reason), 0);
        }
        assert_int_equal(live_node_metric(&nodes[i], METRIC_RELAY_PEERS_LEFT), 0);
    }
}

static void no_subscription_peer_or_message_is_lost_when_the_clock_steps(void **state)
{
    (void)state;
    enum {
        SERVICE,
        PEER,
        CLIENT,
        NODES
    };
    const int64_t steps[] = {HOUR_NS, -HOUR_NS, 24 * 3650 * HOUR_NS, -__real_clock_wall_ns(), 0};
    struct live_node nodes[NODES];
    uint8_t message[512];
    const char *service[] = {"archive", "memory", NULL};
    live_node_start(&nodes[SERVICE], service);
    const char *peer[] = {"staticnode", nodes[SERVICE].address, NULL};
    live_node_start(&nodes[PEER], peer);
    const char *client[] = {"relay", "false", "filternode", nodes[SERVICE].address, NULL};
    live_node_start(&nodes[CLIENT], client);
    live_node_wait_for_way(&nodes[SERVICE], &nodes[PEER]);
    node_filter_set_receiver(nodes[CLIENT].node, count_push, NULL);
    assert_int_equal(ask(&nodes[CLIENT], NODE_FILTER_SUBSCRIBE), 200);
    size_t archived = live_node_received(&nodes[SERVICE]);
    size_t relayed = live_node_received(&nodes[PEER]);
    wait_archived(nodes[SERVICE].node, archived);
    for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
        atomic_store(&offset_ns, steps[i]);
        live_node_publish(&nodes[SERVICE], span_of(message, live_message(message, i, 100)));
        wait_pushed(i + 1);
        live_node_wait(&nodes[PEER], relayed + i + 1);
        assert_int_equal(ask(&nodes[CLIENT], NODE_FILTER_PING), 200);
        wait_archived(nodes[SERVICE].node, archived + i + 1);
    }
    assert_int_equal(node_filter_subscriber_count(nodes[SERVICE].node), 1);
    assert_int_equal(live_node_copies(&nodes[PEER]), 0);
    assert_nobody_left(nodes, NODES);
    for (size_t i = NODES; i > 0; i--) {
        live_node_stop(&nodes[i - 1]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(no_subscription_peer_or_message_is_lost_when_the_clock_steps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
