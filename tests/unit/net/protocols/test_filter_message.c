/* SPDX-License-Identifier: MIT */

/* The messages of filter, read and written against protobuf-c. */

#include <stdlib.h>
#include <string.h>

#include "codec/filter.pb-c.h"
#include "net/protocols/filter_message.h"
#include "tests/support/cmocka.h"

static void requests_are_read_as_protobuf_c_wrote_them(void **state)
{
    (void)state;
    static char id[] = "id";
    static char pubsub[] = "/waku/2/rs/1/0";
    static char first[] = "/a/1/b/c";
    static char second[] = "/d/1/e/f";
    char *topics[] = {first, second};
    uint8_t bytes[256];
    struct filter_request_view view;
    struct span topic;
    Wire__FilterSubscribeRequest request = WIRE__FILTER_SUBSCRIBE_REQUEST__INIT;
    request.request_id = id;
    request.has_filter_subscribe_type = 1;
    request.filter_subscribe_type = WIRE__FILTER_SUBSCRIBE_TYPE__UNSUBSCRIBE;
    request.pubsub_topic = pubsub;
    request.content_topics = topics;
    request.n_content_topics = 2;
    size_t length = wire__filter_subscribe_request__pack(&request, bytes);
    assert_int_equal(filter_request_read(&view, span_of(bytes, length)), STATUS_OK);
    assert_true(span_equal(view.request_id, span_of_text(id)));
    assert_int_equal(view.verb, FILTER_UNSUBSCRIBE);
    assert_true(span_equal(view.pubsub_topic, span_of_text(pubsub)));
    assert_int_equal(view.content_topic_count, 2);
    struct span rest = view.bytes;
    assert_true(filter_request_next_topic(&rest, &topic));
    assert_true(span_equal(topic, span_of_text(first)));
    assert_true(filter_request_next_topic(&rest, &topic));
    assert_true(span_equal(topic, span_of_text(second)));
    assert_false(filter_request_next_topic(&rest, &topic));
}

static void a_request_without_a_type_is_a_ping_and_unknown_types_are_told(void **state)
{
    (void)state;
    static const uint8_t none[] = {0x0a, 0x01, 'i'};
    static const uint8_t seven[] = {0x0a, 0x01, 'i', 0x10, 0x07};
    struct filter_request_view view;
    assert_int_equal(filter_request_read(&view, span_of(none, sizeof(none))), STATUS_OK);
    assert_int_equal(view.verb, FILTER_SUBSCRIBER_PING);
    assert_int_equal(filter_request_read(&view, span_of(seven, sizeof(seven))), STATUS_OK);
    assert_int_equal(view.verb, 7);
    assert_int_not_equal(filter_request_read(&view, span_of(seven, 4)), STATUS_OK);
}

static void requests_are_written_as_protobuf_c_reads_them(void **state)
{
    (void)state;
    struct span topics[] = {span_of_text("/a/1/b/c"), span_of_text("/d/1/e/f")};
    struct filter_request_fields fields = {.request_id = span_of_text("some id"),
            .verb = FILTER_SUBSCRIBE,
            .pubsub_topic = span_of_text("/waku/2/rs/1/0"),
            .content_topics = topics,
            .content_topic_count = 2};
    size_t size = filter_request_size(&fields);
    uint8_t *bytes = malloc(size);
    assert_non_null(bytes);
    filter_request_write(bytes, &fields);
    Wire__FilterSubscribeRequest *request =
            wire__filter_subscribe_request__unpack(NULL, size, bytes);
    assert_non_null(request);
    assert_string_equal(request->request_id, "some id");
    assert_int_equal(request->filter_subscribe_type, WIRE__FILTER_SUBSCRIBE_TYPE__SUBSCRIBE);
    assert_string_equal(request->pubsub_topic, "/waku/2/rs/1/0");
    assert_int_equal(request->n_content_topics, 2);
    assert_string_equal(request->content_topics[1], "/d/1/e/f");
    wire__filter_subscribe_request__free_unpacked(request, NULL);
    fields = (struct filter_request_fields){.request_id = span_of_text("x")};
    size = filter_request_size(&fields);
    filter_request_write(bytes, &fields);
    request = wire__filter_subscribe_request__unpack(NULL, size, bytes);
    assert_non_null(request);
    assert_null(request->pubsub_topic);
    assert_true(request->has_filter_subscribe_type);
    wire__filter_subscribe_request__free_unpacked(request, NULL);
    free(bytes);
}

static void answers_go_both_ways_and_need_a_code(void **state)
{
    (void)state;
    uint8_t bytes[FILTER_ANSWER_MAX];
    static uint8_t long_id[FILTER_REQUEST_ID_MAX + 1];
    static const uint8_t no_code[] = {0x0a, 0x01, 'i'};
    struct filter_answer answer = {.request_id = span_of_text("id"),
            .description = span_of_text("NOT_FOUND: why"),
            .code = 404};
    struct filter_answer again;
    size_t length = filter_answer_write(bytes, &answer);
    Wire__FilterSubscribeResponse *response =
            wire__filter_subscribe_response__unpack(NULL, length, bytes);
    assert_non_null(response);
    assert_string_equal(response->request_id, "id");
    assert_int_equal(response->status_code, 404);
    assert_string_equal(response->status_desc, "NOT_FOUND: why");
    wire__filter_subscribe_response__free_unpacked(response, NULL);
    assert_int_equal(filter_answer_read(&again, span_of(bytes, length)), STATUS_OK);
    assert_true(span_equal(again.request_id, answer.request_id));
    assert_true(span_equal(again.description, answer.description));
    assert_int_equal(again.code, 404);
    assert_int_equal(
            filter_answer_read(&again, span_of(no_code, sizeof(no_code))), STATUS_BAD_FIELD);
    answer.request_id = span_of(long_id, sizeof(long_id));
    length = filter_answer_write(bytes, &answer);
    assert_int_equal(filter_answer_read(&again, span_of(bytes, length)), STATUS_OK);
    assert_int_equal(again.request_id.length, 0);
}

static void pushes_are_read_in_any_order_and_need_both_fields(void **state)
{
    (void)state;
    static const uint8_t as_nim[] = {0x0a, 0x01, 'm', 0x12, 0x01, 't'};
    static const uint8_t as_ours[] = {0x12, 0x01, 't', 0x0a, 0x01, 'm'};
    static const uint8_t no_topic[] = {0x0a, 0x01, 'm'};
    static const uint8_t no_message[] = {0x12, 0x01, 't'};
    struct filter_push_view push;
    assert_int_equal(filter_push_read(&push, span_of(as_nim, sizeof(as_nim))), STATUS_OK);
    assert_true(span_equal(push.message, span_of_text("m")));
    assert_int_equal(filter_push_read(&push, span_of(as_ours, sizeof(as_ours))), STATUS_OK);
    assert_true(span_equal(push.pubsub_topic, span_of_text("t")));
    assert_int_equal(
            filter_push_read(&push, span_of(no_topic, sizeof(no_topic))), STATUS_BAD_FIELD);
    assert_int_equal(
            filter_push_read(&push, span_of(no_message, sizeof(no_message))), STATUS_BAD_FIELD);
    assert_int_equal(filter_push_read(&push, span_of(as_nim, 5)), STATUS_TRUNCATED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(requests_are_read_as_protobuf_c_wrote_them),
            cmocka_unit_test(a_request_without_a_type_is_a_ping_and_unknown_types_are_told),
            cmocka_unit_test(requests_are_written_as_protobuf_c_reads_them),
            cmocka_unit_test(answers_go_both_ways_and_need_a_code),
            cmocka_unit_test(pushes_are_read_in_any_order_and_need_both_fields),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
