/* SPDX-License-Identifier: MIT */
#include "tests/unit/net/protocols/filter_fixture.h"

#include <stdlib.h>
#include <string.h>

#include "base/rcu.h"
#include "codec/waku_message.h"
#include "net/protocols/exchange.h"
#include "tests/support/cmocka.h"

static const char any_port[] = "/ip4/127.0.0.1/tcp/0";

static void run_filter_thread(struct filter_fixture *fixture)
{
    struct inbox_link *link;
    while (!fixture->is_stalled &&
            (link = inbox_try_pop(fixture->filter_link.threads[0])) != NULL) {
        struct filter_request *request =
                (struct filter_request *)((char *)link - offsetof(struct filter_request, link));
        request->carry_out(request, fixture->subscriptions);
    }
    rcu_turn_over();
}

uint64_t fixture_number_of(struct span message)
{
    struct waku_message_view view;
    uint64_t number = 0;
    assert_int_equal(waku_message_decode(&view, message), STATUS_OK);
    assert_true(view.payload.length >= sizeof(number));
    memcpy(&number, view.payload.bytes, sizeof(number));
    return number;
}

static void on_received(
        void *context, struct connection *connection, const struct filter_push_view *push)
{
    struct fixture_client *client = context;
    (void)connection;
    assert_true(span_equal(push->pubsub_topic, span_of_text(FIXTURE_PUBSUB)));
    assert_true(fixture_number_of(push->message) >= client->next_number);
    client->next_number = fixture_number_of(push->message) + 1;
    client->received++;
    if (client->expected.length > 0) {
        assert_true(span_equal(push->message, client->expected));
    }
}

static void init_client(struct fixture_client *client, const struct fixture_choice *choice)
{
    test_node_init(&client->node, NULL, NULL);
    struct filter_client_options options = {.net_switch = client->node.net_switch,
            .message_bytes_max = 1024 * 1024,
            .received = on_received,
            .context = client};
    if (!choice->has_own_pushes) {
        assert_int_equal(filter_client_create(&client->filter, &options), STATUS_OK);
    }
}

static void init_filter(struct filter_fixture *fixture, const struct fixture_choice *choice)
{
    struct filter_options options = {.net_switch = fixture->server.net_switch,
            .loops = &fixture->server.loop,
            .loop_count = 1,
            .intake = &fixture->intake,
            .filter_link = &fixture->filter_link,
            .outbound = &fixture->outbound,
            .queue_bytes_max = FIXTURE_QUEUE_BYTES,
            .queue_age_max_ms = 60000,
            .stuck_timeout_ms = FIXTURE_STUCK_MS,
            .topics_per_request_max = FIXTURE_TOPICS_MAX,
            .peers_max = FIXTURE_PEERS_MAX,
            .connection_requests_max = FIXTURE_REQUESTS_MAX,
            .requests_max = 100,
            .rate = choice->rate,
            .cluster_id = 16,
            .network_shards = choice->network_shards};
    struct filter_client_options returns = {.net_switch = fixture->server.net_switch,
            .message_bytes_max = 1024 * 1024,
            .received = on_received,
            .context = &fixture->returned};
    fixture->outbound.bytes_max = 1024 * 1024;
    if (choice->takes_returns) {
        assert_int_equal(filter_client_create(&fixture->returns, &returns), STATUS_OK);
        options.client = fixture->returns;
    }
    assert_int_equal(filter_create(&fixture->filter, &options), STATUS_OK);
    fixture->port = filter_port(fixture->filter);
}

void fixture_init(struct filter_fixture *fixture, const struct fixture_choice *choice)
{
    struct topic_registry_options topics = {.max_topics = 4, .lane_count = 1};
    struct subscriptions_options table = subscriptions_defaults;
    memset(fixture, 0, sizeof(*fixture));
    table.criteria_per_request_max = FIXTURE_TOPICS_MAX;
    table.criteria_per_peer_max = FIXTURE_CRITERIA_MAX;
    table.peers_max = FIXTURE_PEERS_MAX;
    table.release_context = filter_release_subscriber;
    table.expiry_ns = choice->expiry_ns != 0 ? choice->expiry_ns : table.expiry_ns;
    assert_int_equal(topic_registry_create(&fixture->topics, &topics), STATUS_OK);
    assert_int_equal(topic_registry_subscribe(fixture->topics, NULL, span_of_text(FIXTURE_PUBSUB)),
            STATUS_OK);
    fixture->intake = (struct intake){.topics = fixture->topics, .lane_count = 1};
    assert_int_equal(inbox_create(&fixture->filter_link.threads[0]), STATUS_OK);
    fixture->filter_link.count = 1;
    assert_int_equal(subscriptions_create(&fixture->subscriptions, &table), STATUS_OK);
    test_node_init(&fixture->server, NULL, any_port);
    init_filter(fixture, choice);
    fixture->nodes[0] = &fixture->server;
    for (size_t i = 0; i < FIXTURE_CLIENTS; i++) {
        init_client(&fixture->clients[i], choice);
        fixture->nodes[i + 1] = &fixture->clients[i].node;
    }
}

void fixture_turn(struct filter_fixture *fixture, size_t turns)
{
    for (size_t i = 0; i < turns; i++) {
        run_filter_thread(fixture);
        test_nodes_turn(fixture->nodes, FIXTURE_CLIENTS + 1, 1);
    }
}

struct condition {
    struct filter_fixture *fixture;
    bool (*holds)(void *context);
    void *context;
};

static bool holds(void *context)
{
    const struct condition *condition = context;
    run_filter_thread(condition->fixture);
    return condition->holds(condition->context);
}

void fixture_run(struct filter_fixture *fixture, bool (*is_met)(void *context), void *context)
{
    struct condition condition = {.fixture = fixture, .holds = is_met, .context = context};
    test_nodes_run(fixture->nodes, FIXTURE_CLIENTS + 1, holds, &condition);
}

static bool is_identified(void *context)
{
    const struct test_node *node = context;
    return node->identified > 0;
}

void fixture_connect(struct filter_fixture *fixture, size_t client)
{
    struct test_node *node = &fixture->clients[client].node;
    node->identified = 0;
    test_node_dial(node, &fixture->server.address);
    fixture_run(fixture, is_identified, node);
}

static bool is_idle(void *context)
{
    return filter_pending(context) == 0;
}

void fixture_fini(struct filter_fixture *fixture)
{
    fixture->is_stalled = false;
    fixture_run(fixture, is_idle, fixture->filter);
    test_nodes_stop(fixture->nodes, FIXTURE_CLIENTS + 1);
    run_filter_thread(fixture);
    subscriptions_destroy(&fixture->subscriptions);
    rcu_drain();
    filter_destroy(&fixture->filter);
    assert_int_equal(atomic_load(&fixture->outbound.bytes), 0);
    test_nodes_fini(fixture->nodes, FIXTURE_CLIENTS + 1);
    for (size_t i = 0; i < FIXTURE_CLIENTS; i++) {
        filter_client_destroy(&fixture->clients[i].filter);
    }
    filter_client_destroy(&fixture->returns);
    inbox_destroy(&fixture->filter_link.threads[0]);
    topic_registry_destroy(&fixture->topics);
}

static void on_done(void *context, enum status status, const char *protocol, struct span bytes)
{
    struct fixture_answer *answer = context;
    (void)protocol;
    answer->done++;
    answer->status = status;
    if (status != STATUS_OK) {
        return;
    }
    Wire__FilterSubscribeResponse *response =
            wire__filter_subscribe_response__unpack(NULL, bytes.length, bytes.bytes);
    assert_non_null(response);
    assert_true(response->has_status_code && response->request_id != NULL);
    answer->code = response->status_code;
    strncpy(answer->id, response->request_id, sizeof(answer->id) - 1);
    strncpy(answer->description, response->status_desc, sizeof(answer->description) - 1);
    wire__filter_subscribe_response__free_unpacked(response, NULL);
}

void fixture_ask(struct filter_fixture *fixture, size_t client, struct fixture_answer *answer,
        struct span request)
{
    static const char *const ids[] = {FILTER_SUBSCRIBE_PROTOCOL_ID};
    struct exchange_call call = {.protocols = ids,
            .protocol_count = 1,
            .request = request,
            .answer_max = FILTER_ANSWER_MAX,
            .done = on_done,
            .context = answer};
    *answer = (struct fixture_answer){0};
    assert_int_equal(
            exchange_call(fixture->clients[client].node.last_connection, &call), STATUS_OK);
}

static bool is_answered(void *context)
{
    const struct fixture_answer *answer = context;
    return answer->done > 0;
}

struct fixture_answer fixture_request_packed(
        struct filter_fixture *fixture, size_t client, const Wire__FilterSubscribeRequest *request)
{
    struct fixture_answer answer;
    size_t length = wire__filter_subscribe_request__get_packed_size(request);
    uint8_t *bytes = malloc(length + 1);
    assert_non_null(bytes);
    (void)wire__filter_subscribe_request__pack(request, bytes);
    fixture_ask(fixture, client, &answer, span_of(bytes, length));
    free(bytes);
    fixture_run(fixture, is_answered, &answer);
    assert_int_equal(answer.status, STATUS_OK);
    return answer;
}

struct fixture_answer fixture_request(struct filter_fixture *fixture, size_t client,
        Wire__FilterSubscribeType type, const char *pubsub_topic, const char *content_topic)
{
    Wire__FilterSubscribeRequest request = WIRE__FILTER_SUBSCRIBE_REQUEST__INIT;
    static char id[] = "request";
    char *topics[] = {(char *)(uintptr_t)content_topic};
    request.request_id = id;
    request.has_filter_subscribe_type = 1;
    request.filter_subscribe_type = type;
    request.pubsub_topic = (char *)(uintptr_t)pubsub_topic;
    request.content_topics = topics;
    request.n_content_topics = content_topic != NULL;
    struct fixture_answer answer = fixture_request_packed(fixture, client, &request);
    assert_string_equal(answer.id, id);
    return answer;
}

static struct envelope *make_envelope(
        const struct topic *topic, const char *content_topic, uint64_t number, size_t length)
{
    static uint8_t payload[1024 * 1024];
    size_t payload_length = length < sizeof(number) ? sizeof(number) : length;
    assert_true(payload_length <= sizeof(payload));
    memcpy(payload, &number, sizeof(number));
    struct waku_message_view fields = {.payload = span_of(payload, payload_length),
            .content_topic = span_of_text(content_topic),
            .has_payload = true,
            .has_content_topic = true};
    size_t size = waku_message_size(&fields);
    struct frame *frame = frame_try_create(NULL, FRAME_BUDGET_COMPLETE, size);
    assert_non_null(frame);
    assert_int_equal(waku_message_encode(frame_bytes(frame), size, &fields), size);
    struct envelope *envelope = envelope_create(frame);
    assert_non_null(envelope);
    envelope->topic = topic;
    envelope->message = span_of(frame_bytes(frame), size);
    return envelope;
}

void fixture_publish(
        struct filter_fixture *fixture, const char *content_topic, uint64_t number, size_t length)
{
    const struct topic *topic =
            topic_registry_find_interned(fixture->topics, span_of_text(FIXTURE_PUBSUB));
    struct envelope *envelope = make_envelope(topic, content_topic, number, length);
    const struct subscriber_list *list = subscriptions_find_list(
            fixture->subscriptions, topic->name, span_of_text(content_topic));
    if (list != NULL) {
        fixture->port.push(fixture->port.context, list, envelope);
        fixture->port.flush(fixture->port.context);
    }
    envelope_unref(envelope);
}

struct awaited {
    const struct fixture_client *client;
    size_t count;
};

static bool has_received(void *context)
{
    const struct awaited *awaited = context;
    return awaited->client->received >= awaited->count;
}

void fixture_wait_received(struct filter_fixture *fixture, size_t client, size_t count)
{
    struct awaited awaited = {.client = &fixture->clients[client], .count = count};
    fixture_run(fixture, has_received, &awaited);
}
