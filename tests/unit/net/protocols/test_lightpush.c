/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "codec/lightpush.pb-c.h"
#include "net/protocols/exchange.h"
#include "net/protocols/lightpush.h"
#include "net/protocols/lightpush_message.h"
#include "tests/unit/net/switch/test_node.h"

/* Requests are written and answers read by protobuf-c. The test is the lane's decode thread. */

static const char any_port[] = "/ip4/127.0.0.1/tcp/0";
static char id[] = "request";
static char pubsub_topic[] = "/waku/2/rs/16/5"; /* the shard of the content topic, of 8 */
static char other_topic[] = "/waku/2/rs/16/6";
static char empty_topic[] = "";

/* payload "hi", content topic /light-test/1/chat/proto */
static uint8_t message[] = "\x0a\x02hi\x12\x18/light-test/1/chat/proto";

enum {
    MESSAGE_BYTES = sizeof(message) - 1,
    MESSAGE_MAX = 1000,
    PUSHES_MAX = 2,
    BUDGET = 1024 * 1024
};

struct asking {
    size_t done;
    enum status status;
    uint8_t bytes[LIGHTPUSH_ANSWER_MAX];
    size_t length;
};

struct service {
    struct test_node client;
    struct test_node server;
    struct test_node *nodes[2];
    struct frame_budget *budget;
    struct topic_registry *topics;
    struct intake intake;
    struct lightpush *lightpush;
    const struct asking *awaited;

    /* What the lane decides. */
    struct lane_decision decision;
    size_t peer_count;
    bool is_stalled;
    size_t taken;
    struct span expected; /* the message as it has to arrive */
};

static void run_lane(struct service *service)
{
    struct frame_part *part;
    while (!service->is_stalled &&
            (part = frame_part_of(inbox_try_pop(service->intake.lanes[0]))) != NULL) {
        assert_int_equal(part->origin, ORIGIN_LIGHTPUSH);
        assert_true(span_equal(part->message, service->expected));
        assert_true(span_equal(part->topic->name, span_of_text(pubsub_topic)));
        service->taken++;
        lightpush_settle(
                service->lightpush, part->completion, &service->decision, service->peer_count);
        frame_part_destroy(part);
    }
}

static void init_with_rate(struct service *service, uint16_t network_shards, struct rate_limit rate)
{
    memset(service, 0, sizeof(*service));
    struct topic_registry_options topics = {.max_topics = 4, .lane_count = 1};
    service->decision = (struct lane_decision){.verdict = LANE_NEW};
    service->peer_count = 3;
    service->expected = span_of(message, MESSAGE_BYTES);
    assert_int_equal(frame_budget_create(&service->budget, BUDGET, BUDGET / 8), STATUS_OK);
    assert_int_equal(topic_registry_create(&service->topics, &topics), STATUS_OK);
    assert_int_equal(
            topic_registry_subscribe(service->topics, NULL, span_of_text(pubsub_topic)), STATUS_OK);
    service->intake = (struct intake){.topics = service->topics, .lane_count = 1};
    assert_int_equal(inbox_create(&service->intake.lanes[0]), STATUS_OK);
    service->nodes[0] = &service->client;
    service->nodes[1] = &service->server;
    test_node_init(&service->client, NULL, NULL);
    test_node_init(&service->server, NULL, any_port);
    struct lightpush_options options = {.net_switch = service->server.net_switch,
            .intake = &service->intake,
            .budget = service->budget,
            .message_bytes_max = MESSAGE_MAX,
            .connection_pushes_max = PUSHES_MAX,
            .pushes_max = 100,
            .cluster_id = 16,
            .network_shards = network_shards,
            .rate = rate};
    assert_int_equal(lightpush_create(&service->lightpush, &options), STATUS_OK);
    test_nodes_connect(&service->client, &service->server);
}

static void init(struct service *service, uint16_t network_shards)
{
    init_with_rate(service, network_shards, (struct rate_limit){0});
}

static bool is_idle(void *context)
{
    struct service *service = context;
    run_lane(service);
    return lightpush_pending(service->lightpush) == 0;
}

static void fini(struct service *service)
{
    service->is_stalled = false;
    test_nodes_run(service->nodes, 2, is_idle, service);
    test_nodes_fini(service->nodes, 2);
    lightpush_destroy(&service->lightpush);
    assert_int_equal(frame_budget_used(service->budget), 0);
    inbox_destroy(&service->intake.lanes[0]);
    topic_registry_destroy(&service->topics);
    frame_budget_destroy(&service->budget);
}

static void on_done(void *context, enum status status, const char *protocol, struct span answer)
{
    struct asking *asking = context;
    (void)protocol;
    asking->done++;
    asking->status = status;
    asking->length = answer.length;
    if (answer.length > 0) {
        memcpy(asking->bytes, answer.bytes, answer.length);
    }
}

static void ask_bytes(struct service *service, struct asking *asking,
        enum lightpush_version version, struct span request)
{
    static const char *const v3[] = {LIGHTPUSH_PROTOCOL_ID};
    static const char *const legacy[] = {LIGHTPUSH_LEGACY_PROTOCOL_ID};
    struct exchange_call call = {.protocols = version == LIGHTPUSH_V3 ? v3 : legacy,
            .protocol_count = 1,
            .request = request,
            .answer_max = LIGHTPUSH_ANSWER_MAX,
            .done = on_done,
            .context = asking};
    *asking = (struct asking){0};
    assert_int_equal(exchange_call(service->client.last_connection, &call), STATUS_OK);
    io_loop_wake(service->client.loop);
}

static bool is_answered(void *context)
{
    struct service *service = context;
    run_lane(service);
    return service->awaited->done > 0;
}

static Wire__LightpushResponse *wait_answer(struct service *service, struct asking *asking)
{
    service->awaited = asking;
    test_nodes_run(service->nodes, 2, is_answered, service);
    assert_int_equal(asking->status, STATUS_OK);
    Wire__LightpushResponse *response =
            wire__lightpush_response__unpack(NULL, asking->length, asking->bytes);
    assert_non_null(response);
    assert_true(response->status_desc != NULL && response->status_desc[0] != '\0');
    return response;
}

static Wire__LightpushRequest good_request(void)
{
    Wire__LightpushRequest request = WIRE__LIGHTPUSH_REQUEST__INIT;
    request.request_id = id;
    request.pubsub_topic = pubsub_topic;
    request.has_message = 1;
    request.message = (ProtobufCBinaryData){.data = message, .len = MESSAGE_BYTES};
    return request;
}

static void ask(
        struct service *service, struct asking *asking, const Wire__LightpushRequest *request)
{
    uint8_t bytes[4096];
    assert_true(wire__lightpush_request__get_packed_size(request) <= sizeof(bytes));
    size_t length = wire__lightpush_request__pack(request, bytes);
    ask_bytes(service, asking, LIGHTPUSH_V3, span_of(bytes, length));
}

/* 200 has a peer count, and only 200. */
static uint32_t code_of(struct service *service, const Wire__LightpushRequest *request)
{
    struct asking asking;
    ask(service, &asking, request);
    Wire__LightpushResponse *response = wait_answer(service, &asking);
    uint32_t code = response->status_code;
    if (request->request_id != NULL) {
        assert_string_equal(response->request_id, request->request_id);
    }
    assert_int_equal(response->has_relay_peer_count, code == 200);
    if (code == 200) {
        assert_int_equal(response->relay_peer_count, service->peer_count);
    }
    wire__lightpush_response__free_unpacked(response, NULL);
    return code;
}

static bool legacy_success(struct service *service, char *topic, bool has_request);

static void every_missing_or_wrong_field_has_its_code(void **state)
{
    (void)state;
    static uint8_t large[MESSAGE_MAX + 1];
    struct service service;
    Wire__LightpushRequest request = good_request();
    init(&service, 0);
    assert_int_equal(code_of(&service, &request), 200);
    assert_int_equal(service.taken, 1);

    request.request_id = NULL;
    assert_int_equal(code_of(&service, &request), 400);
    request = good_request();
    request.has_message = 0;
    assert_int_equal(code_of(&service, &request), 400);
    request = good_request();
    request.pubsub_topic = empty_topic;
    assert_int_equal(code_of(&service, &request), 400);
    request.pubsub_topic = NULL; /* and no autosharding */
    assert_int_equal(code_of(&service, &request), 420);
    request.pubsub_topic = other_topic;
    assert_int_equal(code_of(&service, &request), 421);
    request = good_request();
    request.message = (ProtobufCBinaryData){.data = large, .len = sizeof(large)};
    assert_int_equal(code_of(&service, &request), 413);
    assert_int_equal(service.taken, 1);

    request.message.len = MESSAGE_MAX; /* its bytes are for the lane to judge */
    service.expected = span_of(large, MESSAGE_MAX);
    assert_int_equal(code_of(&service, &request), 200);
    request.message.len = 0;
    service.expected = span_of(large, 0);
    assert_int_equal(code_of(&service, &request), 200);
    fini(&service);
}

static void the_verdict_of_the_lane_is_the_code(void **state)
{
    static const struct {
        enum metric reason;
        uint32_t code;
    } cases[] = {
            {LEDGER_INTAKE_NOT_DECODABLE, 420},
            {LEDGER_INTAKE_PAYLOAD_MISSING, 420},
            {LEDGER_INTAKE_CONTENT_TOPIC_MISSING, 420},
            {LEDGER_INTAKE_CONTENT_TOPIC_NOT_UTF8, 420},
            {LEDGER_INTAKE_META_TOO_LONG, 420},
            {LEDGER_INTAKE_TIMESTAMP_OUT_OF_RANGE, 420},
            {LEDGER_INTAKE_TOO_LARGE, 413},
            {LEDGER_INTAKE_NO_MEMORY, 503},
    };
    (void)state;
    struct service service;
    Wire__LightpushRequest request = good_request();
    init(&service, 0);
    service.decision.verdict = LANE_REFUSED;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        service.decision.reason = cases[i].reason;
        assert_int_equal(code_of(&service, &request), cases[i].code);
    }
    service.decision.verdict = LANE_DUPLICATE;
    service.decision.reason = LEDGER_INTAKE_DUPLICATE;
    assert_int_equal(code_of(&service, &request), 420);
    service.decision.verdict = LANE_NEW;
    service.peer_count = 0;
    assert_int_equal(code_of(&service, &request), 505);
    service.peer_count = 1;
    assert_int_equal(code_of(&service, &request), 200);
    fini(&service);
}

/* By every path of both protocols, from what is just too large to what no stream would read. */
static void what_is_too_large_is_said_to_be_and_the_connection_stays(void **state)
{
    (void)state;
    static const size_t sizes[] = {
            MESSAGE_MAX + 1, MESSAGE_MAX + 64 * 1024 - 64, MESSAGE_MAX + 64 * 1024, 4000000};
    static uint8_t bytes[4000000 + 1024];
    static uint8_t large[4000000];
    struct service service;
    struct asking asking;
    Wire__LightpushRequest request = good_request();
    Wire__LegacyLightpushRequest inner = WIRE__LEGACY_LIGHTPUSH_REQUEST__INIT;
    Wire__LegacyLightpushRpc rpc = WIRE__LEGACY_LIGHTPUSH_RPC__INIT;
    init(&service, 0);
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        request.message = (ProtobufCBinaryData){.data = large, .len = sizes[i]};
        size_t length = wire__lightpush_request__pack(&request, bytes);
        ask_bytes(&service, &asking, LIGHTPUSH_V3, span_of(bytes, length));
        Wire__LightpushResponse *response = wait_answer(&service, &asking);
        assert_int_equal(response->status_code, 413);
        assert_string_equal(response->request_id, id);
        wire__lightpush_response__free_unpacked(response, NULL);

        rpc.request_id = id;
        rpc.request = &inner;
        inner.pubsub_topic = pubsub_topic;
        inner.has_message = 1;
        inner.message = request.message;
        length = wire__legacy_lightpush_rpc__pack(&rpc, bytes);
        ask_bytes(&service, &asking, LIGHTPUSH_LEGACY, span_of(bytes, length));
        service.awaited = &asking;
        test_nodes_run(service.nodes, 2, is_answered, &service);
        Wire__LegacyLightpushRpc *answer =
                wire__legacy_lightpush_rpc__unpack(NULL, asking.length, asking.bytes);
        assert_non_null(answer);
        assert_string_equal(answer->request_id, id);
        assert_false(answer->response->is_success);
        assert_string_equal(answer->response->info, "Message size exceeded maximum of 1000 bytes");
        wire__legacy_lightpush_rpc__free_unpacked(answer, NULL);
    }
    assert_int_equal(service.taken, 0);
    request = good_request();
    assert_int_equal(code_of(&service, &request), 200);
    assert_int_equal(service.server.disconnected, 0);
    fini(&service);
}

static void more_requests_than_the_rate_are_refused_with_429(void **state)
{
    (void)state;
    struct service service;
    struct rate_limit rate = {.volume = 3, .period_ns = UINT64_C(3600000000000)};
    Wire__LightpushRequest request = good_request();
    init_with_rate(&service, 0, rate);
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(code_of(&service, &request), 200);
    }
    for (size_t i = 0; i < 100; i++) {
        assert_int_equal(code_of(&service, &request), 429);
    }
    assert_int_equal(service.taken, 3);
    assert_true(legacy_success(&service, pubsub_topic, true)); /* a protocol of its own */
    fini(&service);
}

static void without_a_pubsub_topic_the_content_topic_names_the_shard(void **state)
{
    (void)state;
    static uint8_t unsharded[] = "\x0a\x02hi\x12\x05topic";
    struct service service;
    Wire__LightpushRequest request = good_request();
    init(&service, 8);
    request.pubsub_topic = NULL;
    assert_int_equal(code_of(&service, &request), 200);
    request.message = (ProtobufCBinaryData){.data = unsharded, .len = sizeof(unsharded) - 1};
    assert_int_equal(code_of(&service, &request), 420);
    fini(&service);
}

static void bytes_that_are_no_request_are_refused_with_400(void **state)
{
    (void)state;
    static const uint8_t cut[] = {0x0a, 5, 'x'};
    struct service service;
    struct asking asking;
    init(&service, 0);
    const struct span bad[] = {{NULL, 0}, {cut, sizeof(cut)}};
    for (size_t i = 0; i < 2; i++) {
        ask_bytes(&service, &asking, LIGHTPUSH_V3, bad[i]);
        Wire__LightpushResponse *response = wait_answer(&service, &asking);
        assert_int_equal(response->status_code, 400);
        wire__lightpush_response__free_unpacked(response, NULL);
    }
    fini(&service);
}

static bool legacy_success(struct service *service, char *topic, bool has_request)
{
    uint8_t bytes[4096];
    struct asking asking;
    Wire__LegacyLightpushRequest inner = WIRE__LEGACY_LIGHTPUSH_REQUEST__INIT;
    Wire__LegacyLightpushRpc rpc = WIRE__LEGACY_LIGHTPUSH_RPC__INIT;
    inner.pubsub_topic = topic;
    inner.has_message = 1;
    inner.message = (ProtobufCBinaryData){.data = message, .len = MESSAGE_BYTES};
    rpc.request_id = id;
    rpc.request = has_request ? &inner : NULL;
    size_t length = wire__legacy_lightpush_rpc__pack(&rpc, bytes);
    ask_bytes(service, &asking, LIGHTPUSH_LEGACY, span_of(bytes, length));
    service->awaited = &asking;
    test_nodes_run(service->nodes, 2, is_answered, service);
    assert_int_equal(asking.status, STATUS_OK);
    Wire__LegacyLightpushRpc *answer =
            wire__legacy_lightpush_rpc__unpack(NULL, asking.length, asking.bytes);
    assert_non_null(answer);
    assert_string_equal(answer->request_id, id);
    assert_non_null(answer->response);
    assert_true(answer->response->has_is_success);
    assert_non_null(answer->response->info);
    bool is_success = answer->response->is_success;
    wire__legacy_lightpush_rpc__free_unpacked(answer, NULL);
    return is_success;
}

static void the_legacy_protocol_succeeds_only_when_somebody_got_it(void **state)
{
    (void)state;
    struct service service;
    init(&service, 0);
    assert_true(legacy_success(&service, pubsub_topic, true));
    assert_false(legacy_success(&service, other_topic, true));
    assert_false(legacy_success(&service, pubsub_topic, false));
    service.peer_count = 0;
    assert_false(legacy_success(&service, pubsub_topic, true));
    service.decision.verdict = LANE_DUPLICATE;
    service.decision.reason = LEDGER_INTAKE_DUPLICATE;
    service.peer_count = 1;
    assert_false(legacy_success(&service, pubsub_topic, true));
    fini(&service);
}

static void more_pushes_than_a_peer_may_have_are_refused_with_429(void **state)
{
    (void)state;
    struct service service;
    struct asking asking[PUSHES_MAX + 1];
    Wire__LightpushRequest request = good_request();
    init(&service, 0);
    service.is_stalled = true;
    for (size_t i = 0; i <= PUSHES_MAX; i++) {
        ask(&service, &asking[i], &request);
    }
    Wire__LightpushResponse *response = wait_answer(&service, &asking[PUSHES_MAX]);
    assert_int_equal(response->status_code, 429);
    wire__lightpush_response__free_unpacked(response, NULL);
    service.is_stalled = false;
    for (size_t i = 0; i < PUSHES_MAX; i++) {
        response = wait_answer(&service, &asking[i]);
        assert_int_equal(response->status_code, 200);
        wire__lightpush_response__free_unpacked(response, NULL);
    }
    fini(&service);
}

static void a_message_goes_to_the_lane_without_a_copy(void **state)
{
    (void)state;
    struct service service;
    Wire__LightpushRequest request = good_request();
    init(&service, 0);
    uint64_t copies = count_of(METRIC_COPIES);
    assert_int_equal(code_of(&service, &request), 200);
    assert_int_equal(count_of(METRIC_COPIES), copies);
    fini(&service);
}

static void without_credit_a_push_is_refused_with_503(void **state)
{
    (void)state;
    struct service service;
    Wire__LightpushRequest request = good_request();
    init(&service, 0);
    assert_true(frame_budget_try_charge(service.budget, FRAME_BUDGET_COMPLETE, BUDGET));
    assert_int_equal(code_of(&service, &request), 503);
    frame_budget_release(service.budget, BUDGET);
    assert_int_equal(code_of(&service, &request), 200);
    /* The reserve is for complete messages: one copy, and it goes. */
    uint64_t copies = count_of(METRIC_COPIES);
    assert_true(frame_budget_try_charge(service.budget, FRAME_BUDGET_PARTIAL, BUDGET / 8 * 7));
    assert_int_equal(code_of(&service, &request), 200);
    assert_int_equal(count_of(METRIC_COPIES), copies + 1);
    frame_budget_release(service.budget, BUDGET / 8 * 7);
    fini(&service);
}

static void while_messages_wait_for_most_peers_a_push_is_refused_with_503(void **state)
{
    (void)state;
    struct service service;
    struct relay_pace pace = {.bytes_max = 100000};
    Wire__LightpushRequest request = good_request();
    init(&service, 0);
    service.intake.pace = &pace;
    relay_pace_add(&pace, 100000);
    assert_int_equal(code_of(&service, &request), 503);
    relay_pace_remove(&pace, 100000);
    assert_int_equal(code_of(&service, &request), 200);
    fini(&service);
}

static void a_thousand_pushes_leave_no_stream_behind(void **state)
{
    (void)state;
    struct service service;
    Wire__LightpushRequest request = good_request();
    init(&service, 0);
    for (size_t i = 0; i < 1000; i++) {
        assert_int_equal(code_of(&service, &request), 200);
        assert_true(connection_stream_count(service.server.last_connection) <= 3);
    }
    fini(&service);
}

static bool has_pending(void *context)
{
    struct service *service = context;
    return lightpush_pending(service->lightpush) > 0;
}

static bool has_left(void *context)
{
    struct service *service = context;
    return service->server.disconnected > 0;
}

static void a_message_of_a_peer_that_left_is_published_all_the_same(void **state)
{
    (void)state;
    struct service service;
    struct asking asking;
    Wire__LightpushRequest request = good_request();
    init(&service, 0);
    service.is_stalled = true;
    ask(&service, &asking, &request);
    test_nodes_run(service.nodes, 2, has_pending, &service);
    connection_close(service.client.last_connection, CLOSE_REQUESTED);
    io_loop_wake(service.client.loop);
    test_nodes_run(service.nodes, 2, has_left, &service);
    service.is_stalled = false;
    test_nodes_run(service.nodes, 2, is_idle, &service);
    assert_int_equal(service.taken, 1);
    fini(&service);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(every_missing_or_wrong_field_has_its_code),
            cmocka_unit_test(the_verdict_of_the_lane_is_the_code),
            cmocka_unit_test(what_is_too_large_is_said_to_be_and_the_connection_stays),
            cmocka_unit_test(more_requests_than_the_rate_are_refused_with_429),
            cmocka_unit_test(without_a_pubsub_topic_the_content_topic_names_the_shard),
            cmocka_unit_test(bytes_that_are_no_request_are_refused_with_400),
            cmocka_unit_test(the_legacy_protocol_succeeds_only_when_somebody_got_it),
            cmocka_unit_test(more_pushes_than_a_peer_may_have_are_refused_with_429),
            cmocka_unit_test(a_message_goes_to_the_lane_without_a_copy),
            cmocka_unit_test(without_credit_a_push_is_refused_with_503),
            cmocka_unit_test(while_messages_wait_for_most_peers_a_push_is_refused_with_503),
            cmocka_unit_test(a_thousand_pushes_leave_no_stream_behind),
            cmocka_unit_test(a_message_of_a_peer_that_left_is_published_all_the_same),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
