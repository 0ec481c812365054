/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "codec/waku_message.h"
#include "node/lightpush.h"
#include "node/network.h"
#include "tests/support/cmocka.h"
#include "tests/support/live_node.h"

/* Whole nodes: a service, a peer that relays with it, a client that pushes through the service. */

enum {
    LIMIT = 10 * 1024,
    BYTES_MAX = 3 * LIMIT
};

static uint8_t bytes[BYTES_MAX];

static struct span message_of(size_t payload_length, const char *content_topic)
{
    static uint64_t number;
    static uint8_t payload[BYTES_MAX];
    number++;
    memcpy(payload, &number, sizeof(number));
    struct waku_message_view fields = {.payload = span_of(payload, payload_length),
            .content_topic = span_of_text(content_topic),
            .timestamp_ns = clock_wall_ns(),
            .has_payload = true,
            .has_content_topic = true,
            .has_timestamp = true};
    return span_of(bytes, waku_message_encode(bytes, sizeof(bytes), &fields));
}

/* A message of exactly so many bytes. */
static struct span message_of_size(size_t size)
{
    static const char topic[] = "/push/1/test/proto";
    size_t overhead = message_of(size - 100, topic).length - (size - 100);
    struct span message = message_of(size - overhead, topic);
    assert_int_equal(message.length, size);
    return message;
}

static struct node_push_outcome push_as(struct live_node *client, enum lightpush_version version,
        const char *topic, struct span message)
{
    struct node_push push = {.version = version,
            .pubsub_topic = span_of_text(topic),
            .message = message,
            .timeout_ms = LIVE_NODE_WAIT_S * 1000};
    struct node_push_outcome outcome;
    assert_int_equal(node_push_and_wait(client->node, &push, &outcome), STATUS_OK);
    return outcome;
}

static uint32_t code_of(struct live_node *client, struct span message)
{
    uint32_t code = push_as(client, LIGHTPUSH_V3, LIVE_NODE_TOPIC, message).code;
    uint32_t legacy = push_as(client, LIGHTPUSH_LEGACY, LIVE_NODE_TOPIC, message).code;
    /* The same message a second time is refused, so only refusals can be compared. */
    assert_int_equal(legacy, 503);
    return code;
}

static struct span some_message(void)
{
    return message_of(20, "/push/1/test/proto");
}

static void start_client(struct live_node *client, const struct live_node *service)
{
    const char *settings[] = {"relay", "false", "lightpushnode", service->address, NULL};
    live_node_start(client, settings);
}

static void a_push_says_how_many_peers_it_went_to(void **state)
{
    (void)state;
    struct live_node service;
    struct live_node peers[2];
    struct live_node client;
    const char *settings[] = {"rate-limit", "0/1s", "store", "true", "archive", "memory", NULL};
    live_node_start(&service, settings);
    start_client(&client, &service);

    /* Nobody is there: said, and kept and given to the application all the same. */
    struct node_push_outcome outcome =
            push_as(&client, LIGHTPUSH_V3, LIVE_NODE_TOPIC, some_message());
    assert_int_equal(outcome.code, 505);
    outcome = push_as(&client, LIGHTPUSH_LEGACY, LIVE_NODE_TOPIC, some_message());
    assert_int_equal(outcome.code, 503);
    assert_string_equal(outcome.description, "not_published_to_any_peer");
    live_node_wait(&service, 2);
    live_node_wait_metric(&service, (enum metric)LEDGER_ARCHIVE_DELIVERED, 2);
    live_node_wait_metric(&service, (enum metric)LEDGER_FILTER_DELIVERED, 2);

    for (uint32_t i = 0; i < 2; i++) {
        const char *of_peer[] = {"staticnode", service.address, NULL};
        live_node_start(&peers[i], of_peer);
        live_node_wait_for_way(&service, &peers[i]);
        for (size_t n = 0; n < 20; n++) {
            outcome = push_as(&client, LIGHTPUSH_V3, LIVE_NODE_TOPIC, some_message());
            assert_int_equal(outcome.code, 200);
            assert_true(outcome.has_relay_peer_count);
            assert_int_equal(outcome.relay_peer_count, i + 1);
        }
        size_t before = live_node_received(&peers[i]);
        outcome = push_as(&client, LIGHTPUSH_LEGACY, LIVE_NODE_TOPIC, some_message());
        assert_int_equal(outcome.code, 200);
        assert_false(outcome.has_relay_peer_count);
        live_node_wait(&peers[i], before + 1);
    }
    live_node_stop(&client);
    live_node_stop(&peers[0]);
    live_node_stop(&peers[1]);
    live_node_stop(&service);
}

static void what_a_service_refuses_is_told_with_its_code(void **state)
{
    (void)state;
    struct live_node service;
    struct live_node client;
    const char *settings[] = {"rate-limit", "0/1s", NULL};
    live_node_start(&service, settings);
    start_client(&client, &service);
    struct span message = some_message();
    assert_int_equal(push_as(&client, LIGHTPUSH_V3, LIVE_NODE_TOPIC, message).code, 505);
    assert_int_equal(code_of(&client, message), 420); /* seen */
    assert_int_equal(code_of(&client, span_of_text("no message")), 420);
    struct node_push_outcome outcome =
            push_as(&client, LIGHTPUSH_V3, "/waku/2/rs/16/7", some_message());
    assert_int_equal(outcome.code, 421);
    outcome = push_as(&client, LIGHTPUSH_V3, "", some_message()); /* static sharding */
    assert_int_equal(outcome.code, 420);
    assert_string_equal(
            outcome.description, "Pubsub topic must be specified when static sharding is enabled");
    live_node_stop(&client);
    live_node_stop(&service);
}

static void a_rate_limit_is_told_and_takes_nothing_from_others(void **state)
{
    (void)state;
    struct live_node service;
    struct live_node greedy;
    struct live_node modest;
    const char *settings[] = {"rate-limit", "lightpush:2/1h each", NULL};
    live_node_start(&service, settings);
    start_client(&greedy, &service);
    start_client(&modest, &service);
    for (size_t i = 0; i < 50; i++) {
        uint32_t code = push_as(&greedy, LIGHTPUSH_V3, LIVE_NODE_TOPIC, some_message()).code;
        assert_int_equal(code, i < 2 ? 505 : 429);
        code = push_as(&greedy, LIGHTPUSH_LEGACY, LIVE_NODE_TOPIC, some_message()).code;
        assert_int_equal(code, i < 2 ? 503 : 429);
    }
    assert_int_equal(push_as(&modest, LIGHTPUSH_V3, LIVE_NODE_TOPIC, some_message()).code, 505);
    assert_int_equal(live_node_metric(&service, METRIC_LIGHTPUSH_REJECTED), 48);
    assert_int_equal(live_node_metric(&service, METRIC_LEGACY_LIGHTPUSH_REJECTED), 48);
    assert_int_equal(live_node_metric(&service, METRIC_LIGHTPUSH_SERVED), 3);
    live_node_stop(&modest);
    live_node_stop(&greedy);
    live_node_stop(&service);
}

static void a_service_that_is_not_there_is_told(void **state)
{
    (void)state;
    struct live_node service;
    struct live_node client;
    live_node_start(&service, NULL);
    char address[MULTIADDR_TEXT_SIZE];
    snprintf(address, sizeof(address), "%s", service.address);
    live_node_stop(&service);
    const char *settings[] = {"relay", "false", "lightpushnode", address, NULL};
    live_node_start(&client, settings);
    assert_int_equal(push_as(&client, LIGHTPUSH_V3, LIVE_NODE_TOPIC, some_message()).code, 505);
    live_node_stop(&client);

    live_node_start(&client, NULL);
    struct node_push_outcome outcome =
            push_as(&client, LIGHTPUSH_V3, LIVE_NODE_TOPIC, some_message());
    assert_int_equal(outcome.code, 503);
    assert_string_equal(outcome.description, "No suitable service peer & no discovery method");

    /* One that is connected and serves is taken; one that does not serve is not. */
    struct live_node other;
    const char *none[] = {"staticnode", client.address, "lightpush", "false", NULL};
    live_node_start(&other, none);
    live_node_wait_for_way(&client, &other);
    assert_int_equal(push_as(&client, LIGHTPUSH_V3, LIVE_NODE_TOPIC, some_message()).code, 503);
    const char *serves[] = {"staticnode", client.address, NULL};
    live_node_start(&service, serves);
    live_node_wait_for_way(&client, &service);
    assert_int_equal(push_as(&client, LIGHTPUSH_V3, LIVE_NODE_TOPIC, some_message()).code, 200);
    live_node_stop(&service);
    /* It has left again. */
    uint32_t code;
    do {
        code = push_as(&client, LIGHTPUSH_V3, LIVE_NODE_TOPIC, some_message()).code;
        assert_true(code == 503 || code == 500);
    } while (code != 503);
    live_node_stop(&other);
    live_node_stop(&client);
}

/* Field report A3: one verdict by every path, and the connection stays. */
static void a_message_above_the_limit_is_refused_by_every_path(void **state)
{
    (void)state;
    struct live_node service;
    struct live_node peer; /* that may send more */
    struct live_node client;
    const char *settings[] = {"max-msg-size", "10KiB", "rate-limit", "0/1s", "store", "true",
            "archive", "memory", NULL};
    live_node_start(&service, settings);
    const char *of_peer[] = {"staticnode", service.address, NULL};
    live_node_start(&peer, of_peer);
    live_node_wait_for_way(&service, &peer);
    live_node_wait_for_way(&peer, &service);
    start_client(&client, &service);

    uint64_t kept = live_node_metric(&service, (enum metric)LEDGER_ARCHIVE_RECEIVED);
    size_t received = live_node_received(&service);
    for (size_t size = LIMIT - 1; size <= LIMIT; size++) {
        live_node_publish(&peer, message_of_size(size));
        live_node_wait(&service, ++received);
        uint32_t code = push_as(&client, LIGHTPUSH_V3, LIVE_NODE_TOPIC, message_of_size(size)).code;
        assert_int_equal(code, 200);
        live_node_wait(&service, ++received);
    }
    live_node_wait_metric(&service, (enum metric)LEDGER_ARCHIVE_DELIVERED, kept + 4);

    live_node_publish(&peer, message_of_size(LIMIT + 1));
    live_node_wait_metric(&service, (enum metric)LEDGER_INTAKE_TOO_LARGE, 1);
    assert_int_equal(code_of(&client, message_of_size(LIMIT + 1)), 413);
    assert_int_equal(code_of(&client, message_of_size(BYTES_MAX - 1000)), 413);
    static uint8_t huge[1024 * 1024]; /* larger than any request */
    assert_int_equal(code_of(&client, span_of(huge, sizeof(huge))), 413);

    /* Both connections are those of before: what fits still comes. */
    live_node_publish(&peer, message_of_size(LIMIT));
    live_node_wait(&service, ++received);
    assert_int_equal(
            push_as(&client, LIGHTPUSH_V3, LIVE_NODE_TOPIC, message_of_size(LIMIT)).code, 200);
    live_node_wait(&service, ++received);
    assert_int_equal(live_node_metric(&service, METRIC_NET_CONNECTIONS_IN), 2);
    assert_int_equal(live_node_metric(&service, (enum metric)LEDGER_ARCHIVE_RECEIVED), kept + 6);
    live_node_stop(&client);
    live_node_stop(&peer);
    live_node_stop(&service);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(a_push_says_how_many_peers_it_went_to),
            cmocka_unit_test(what_a_service_refuses_is_told_with_its_code),
            cmocka_unit_test(a_rate_limit_is_told_and_takes_nothing_from_others),
            cmocka_unit_test(a_service_that_is_not_there_is_told),
            cmocka_unit_test(a_message_above_the_limit_is_refused_by_every_path),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
