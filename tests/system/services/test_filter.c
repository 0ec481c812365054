/* SPDX-License-Identifier: MIT */
#include <pthread.h>
#include <string.h>

#include "base/clock.h"
#include "codec/waku_message.h"
#include "node/filter.h"
#include "node/lightpush.h"
#include "tests/support/cmocka.h"
#include "tests/support/live_node.h"

/* Whole nodes: a service, a client that subscribes with it, and peers that relay. */

#define CONTENT "/test/1/relay/proto" /* of live_message */

enum {
    MESSAGE_MAX = 4096
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static uint64_t numbers[4096];
static size_t received;

static void on_received(void *context, struct span pubsub_topic, struct span message)
{
    struct waku_message_view view;
    (void)context;
    assert_true(span_equal(pubsub_topic, span_of_text(LIVE_NODE_TOPIC)));
    assert_int_equal(waku_message_decode(&view, message), STATUS_OK);
    pthread_mutex_lock(&mutex);
    memcpy(&numbers[received++], view.payload.bytes, sizeof(numbers[0]));
    pthread_cond_signal(&changed);
    pthread_mutex_unlock(&mutex);
}

static size_t count_received(void)
{
    pthread_mutex_lock(&mutex);
    size_t count = received;
    pthread_mutex_unlock(&mutex);
    return count;
}

static void wait_received(size_t count)
{
    struct timespec end;
    int result = 0;
    clock_gettime(CLOCK_REALTIME, &end);
    end.tv_sec += LIVE_NODE_WAIT_S;
    pthread_mutex_lock(&mutex);
    while (received < count && result == 0) {
        result = pthread_cond_timedwait(&changed, &mutex, &end);
    }
    pthread_mutex_unlock(&mutex);
    assert_int_equal(result, 0);
}

static void start_client(struct live_node *client, const char *service)
{
    const char *settings[] = {"relay", "false", "filternode", service, NULL};
    received = 0;
    live_node_start(client, settings);
    node_filter_set_receiver(client->node, on_received, NULL);
}

static struct node_filter_answer ask_about(struct live_node *client, enum node_filter_verb verb,
        const char *pubsub_topic, const char *content_topic)
{
    struct span content = span_of_text(content_topic);
    struct node_filter_request request = {.verb = verb,
            .pubsub_topic = span_of_text(pubsub_topic),
            .content_topics = &content,
            .content_topic_count = 1,
            .timeout_ms = LIVE_NODE_WAIT_S * 1000};
    struct node_filter_answer answer;
    assert_int_equal(node_filter_ask_and_wait(client->node, &request, &answer), STATUS_OK);
    return answer;
}

static uint32_t ask(struct live_node *client, enum node_filter_verb verb)
{
    return ask_about(client, verb, LIVE_NODE_TOPIC, CONTENT).code;
}

static void publish(struct live_node *node, uint64_t number)
{
    uint8_t message[MESSAGE_MAX];
    live_node_publish(node, span_of(message, live_message(message, number, 100)));
}

static void a_client_subscribes_gets_all_in_order_and_leaves(void **state)
{
    (void)state;
    enum {
        MESSAGES = 1000
    };
    struct live_node service;
    struct live_node client;
    const char *settings[] = {"rate-limit", "0/1s", NULL};
    live_node_start(&service, settings);
    start_client(&client, service.address);
    assert_int_equal(ask(&client, NODE_FILTER_PING), 404);
    assert_int_equal(ask(&client, NODE_FILTER_SUBSCRIBE), 200);
    assert_int_equal(node_filter_subscriber_count(service.node), 1);
    uint64_t decodes = live_node_metric(&service, METRIC_DECODES);
    uint64_t hashes = live_node_metric(&service, METRIC_MESSAGE_HASHES);
    for (uint64_t i = 0; i < MESSAGES; i++) {
        publish(&service, i);
    }
    wait_received(MESSAGES);
    for (uint64_t i = 0; i < MESSAGES; i++) {
        assert_int_equal(numbers[i], i);
    }
    assert_int_equal(live_node_metric(&service, METRIC_DECODES) - decodes, MESSAGES);
    assert_int_equal(live_node_metric(&service, METRIC_MESSAGE_HASHES) - hashes, MESSAGES);
    assert_int_equal(live_node_metric(&service, METRIC_COPIES), 0);
    assert_int_equal(live_node_metric(&service, METRIC_FILTER_STREAMS), 1);
    assert_int_equal(ask(&client, NODE_FILTER_PING), 200);
    assert_int_equal(ask(&client, NODE_FILTER_UNSUBSCRIBE), 200);
    assert_int_equal(ask(&client, NODE_FILTER_UNSUBSCRIBE_ALL), 404);
    publish(&service, MESSAGES);
    live_node_wait(&service, MESSAGES + 1);
    assert_int_equal(ask(&client, NODE_FILTER_PING), 404);
    assert_int_equal(count_received(), MESSAGES);
    live_node_stop(&client);
    live_node_stop(&service);
}

static void what_cannot_be_asked_has_a_code_all_the_same(void **state)
{
    (void)state;
    struct live_node service;
    struct live_node client;
    const char *settings[] = {NULL};
    live_node_start(&service, settings);
    start_client(&client, service.address);
    struct node_filter_answer answer =
            ask_about(&client, NODE_FILTER_SUBSCRIBE, "/waku/2/rs/17/7", CONTENT);
    assert_int_equal(answer.code, 400);
    assert_string_equal(answer.description,
            "BAD_REQUEST: pubsub topic is of cluster 17, this node is of cluster 16");
    answer = ask_about(&client, NODE_FILTER_SUBSCRIBE, "", CONTENT);
    assert_int_equal(answer.code, 400); /* static sharding: nobody can tell the shard */
    live_node_stop(&client);
    live_node_stop(&service);
    /* The address is nobody's now. */
    start_client(&client, service.address);
    answer = ask_about(&client, NODE_FILTER_PING, "", "");
    assert_int_equal(answer.code, 504);
    live_node_stop(&client);
    start_client(&client, "");
    answer = ask_about(&client, NODE_FILTER_PING, "", "");
    assert_int_equal(answer.code, 503);
    assert_string_equal(answer.description, "No suitable service peer & no discovery method");
    live_node_stop(&client);
}

static void a_shard_that_is_joined_later_is_pushed_from_then_on(void **state)
{
    (void)state;
    struct live_node service;
    struct live_node client;
    const char *settings[] = {"shard", "7", NULL};
    live_node_start(&service, settings);
    start_client(&client, service.address);
    assert_int_equal(ask(&client, NODE_FILTER_SUBSCRIBE), 200);
    assert_int_equal(ask(&client, NODE_FILTER_PING), 200);
    assert_int_equal(
            node_subscribe_topic(service.node, NULL, span_of_text(LIVE_NODE_TOPIC)), STATUS_OK);
    publish(&service, 5);
    wait_received(1);
    assert_int_equal(numbers[0], 5);
    live_node_stop(&client);
    live_node_stop(&service);
}

static void without_a_pubsub_topic_each_shard_is_asked(void **state)
{
    (void)state;
    struct live_node service;
    struct live_node client;
    /* Of 8 shards: the two topics belong to 3 and 7. */
    struct span topics[] = {span_of_text("/light-client/1/a/proto"), span_of_text("/z/1/b/proto"),
            span_of_text("/light-client/1/c/proto")};
    const char *settings[] = {"shard", "3", "num-shards-in-network", "8", NULL};
    const char *settings_of_client[] = {
            "relay", "false", "filternode", service.address, "num-shards-in-network", "8", NULL};
    struct node_filter_request request = {
            .verb = NODE_FILTER_SUBSCRIBE, .content_topics = topics, .content_topic_count = 3};
    struct node_filter_answer answer;
    live_node_start(&service, settings);
    live_node_start(&client, settings_of_client);
    assert_int_equal(node_filter_ask_and_wait(client.node, &request, &answer), STATUS_OK);
    assert_int_equal(answer.code, 200); /* shard 7 is none of the service's yet */
    struct node_filter_cursor cursor = {0};
    struct node_filter_subscriber *subscriber;
    assert_int_equal(node_filter_next_subscriber(service.node, &cursor, &subscriber), STATUS_OK);
    assert_int_equal(subscriber->criterion_count, 3);
    for (size_t i = 0; i < 3; i++) {
        bool is_of_seven = span_equal(subscriber->criteria[i].content_topic, topics[1]);
        assert_true(is_of_seven || span_equal(subscriber->criteria[i].content_topic, topics[0]) ||
                    span_equal(subscriber->criteria[i].content_topic, topics[2]));
        assert_true(span_equal(subscriber->criteria[i].pubsub_topic,
                span_of_text(is_of_seven ? "/waku/2/rs/16/7" : "/waku/2/rs/16/3")));
    }
    node_filter_subscriber_destroy(&subscriber);
    live_node_stop(&client);
    live_node_stop(&service);
}

static void subscribers_are_listed_with_what_waits_for_them(void **state)
{
    (void)state;
    struct live_node service;
    struct live_node clients[3];
    struct node_filter_cursor cursor = {0};
    struct node_filter_subscriber *subscriber;
    const char *settings[] = {"filter-threads", "2", NULL};
    live_node_start(&service, settings);
    for (size_t i = 0; i < 3; i++) {
        start_client(&clients[i], service.address);
        assert_int_equal(ask(&clients[i], NODE_FILTER_SUBSCRIBE), 200);
    }
    publish(&service, 0);
    wait_received(3);
    live_node_stop(&clients[2]);
    size_t count = 0;
    size_t connected = 0;
    while (node_filter_next_subscriber(service.node, &cursor, &subscriber) == STATUS_OK &&
            subscriber != NULL) {
        char text[PEER_ID_TEXT_SIZE];
        peer_id_print(text, &subscriber->peer);
        bool is_known = false;
        for (size_t i = 0; i < 3; i++) {
            is_known = is_known || strstr(clients[i].address, text) != NULL;
        }
        assert_true(is_known);
        assert_int_equal(subscriber->criterion_count, 1);
        assert_true(span_equal(subscriber->criteria[0].content_topic, span_of_text(CONTENT)));
        assert_int_equal(subscriber->sent, 1);
        assert_int_equal(subscriber->queue_bytes, 0);
        assert_string_equal(node_filter_push_result_text(subscriber->last_push), "sent");
        connected += subscriber->is_connected;
        count++;
        node_filter_subscriber_destroy(&subscriber);
    }
    assert_int_equal(count, 3);
    assert_in_range(connected, 2, 3); /* the one that left may not be known to have */
    assert_int_equal(node_filter_subscriber_count(service.node), 3);
    live_node_stop(&clients[0]);
    live_node_stop(&clients[1]);
    live_node_stop(&service);
}

/* The same message by every way in, and once more in other bytes. */
static void a_message_is_pushed_once_whatever_ways_it_came(void **state)
{
    (void)state;
    enum {
        PEERS = 3
    };
    struct live_node service;
    struct live_node peers[PEERS];
    struct live_node client;
    uint8_t message[MESSAGE_MAX];
    uint8_t other[MESSAGE_MAX];
    const char *settings[] = {"rate-limit", "0/1s", NULL};
    live_node_start(&service, settings);
    for (size_t i = 0; i < PEERS; i++) {
        const char *of_peer[] = {"staticnode", service.address, NULL};
        live_node_start(&peers[i], of_peer);
        live_node_wait_for_way(&peers[i], &service);
    }
    start_client(&client, service.address);
    assert_int_equal(ask(&client, NODE_FILTER_SUBSCRIBE), 200);
    struct span bytes = span_of(message, live_message(message, 7, 100));
    memcpy(other, message, bytes.length);
    other[bytes.length - 1] ^= 1; /* of the unknown field, which the message hash leaves out */
    for (size_t i = 0; i < PEERS; i++) {
        live_node_publish(&peers[i], bytes);
    }
    live_node_publish(&service, bytes);
    struct node_push push = {.version = LIGHTPUSH_V3,
            .pubsub_topic = span_of_text(LIVE_NODE_TOPIC),
            .message = span_of(other, bytes.length)};
    struct node_push_outcome outcome;
    struct multiaddr address;
    assert_int_equal(multiaddr_parse(&address, span_of_text(service.address)), STATUS_OK);
    push.peer = &address;
    wait_received(1);
    assert_int_equal(node_push_and_wait(client.node, &push, &outcome), STATUS_OK);
    assert_int_equal(outcome.code, 200); /* to the lane it is another message */
    live_node_wait_metric(&service, METRIC_FILTER_COPIES, 1);
    publish(&service, 8);
    wait_received(2);
    assert_int_equal(numbers[0], 7);
    assert_int_equal(numbers[1], 8);
    live_node_stop(&client);
    for (size_t i = 0; i < PEERS; i++) {
        live_node_stop(&peers[i]);
    }
    live_node_stop(&service);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(a_client_subscribes_gets_all_in_order_and_leaves),
            cmocka_unit_test(what_cannot_be_asked_has_a_code_all_the_same),
            cmocka_unit_test(a_shard_that_is_joined_later_is_pushed_from_then_on),
            cmocka_unit_test(without_a_pubsub_topic_each_shard_is_asked),
            cmocka_unit_test(subscribers_are_listed_with_what_waits_for_them),
            cmocka_unit_test(a_message_is_pushed_once_whatever_ways_it_came),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
