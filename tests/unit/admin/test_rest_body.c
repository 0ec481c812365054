/* SPDX-License-Identifier: MIT */
#include "admin/rest_body.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/cmocka.h"

enum {
    NOW_NS = 1234
};

static enum status parse_message(struct rest_message *out, const char *body, bool is_strict)
{
    struct rest_error error = {.text = ""};
    enum status status = rest_message_parse(out, span_of_text(body), NOW_NS, is_strict, &error);
    assert_int_equal(status == STATUS_OK, error.text[0] == '\0');
    return status;
}

static void a_message_with_everything(void **state)
{
    struct rest_message message;
    (void)state;
    assert_int_equal(
            parse_message(&message,
                    "{\"payload\":\"aGVsbG8=\",\"contentTopic\":\"/a/1/b/"
                    "c\",\"version\":4294967295,"
                    "\"timestamp\":9223372036854775807,\"meta\":\"-_8\",\"ephemeral\":true,"
                    "\"proof\":\"AQ\"}",
                    true),
            STATUS_OK);
    assert_true(span_equal(message.fields.payload, span_of_text("hello")));
    assert_true(span_equal(message.fields.content_topic, span_of_text("/a/1/b/c")));
    assert_true(span_equal(message.fields.meta, span_of("\xfb\xff", 2)));
    assert_true(span_equal(message.fields.rate_limit_proof, span_of("\x01", 1)));
    assert_int_equal(message.fields.version, UINT32_MAX);
    assert_int_equal(message.fields.timestamp_ns, INT64_MAX);
    assert_true(message.fields.ephemeral);
    rest_message_fini(&message);
}

static void a_message_without_time_is_of_now(void **state)
{
    struct rest_message message;
    (void)state;
    assert_int_equal(
            parse_message(&message, "{\"payload\":\"aGVsbG8\",\"contentTopic\":\"t\"}", false),
            STATUS_OK);
    assert_int_equal(message.fields.timestamp_ns, NOW_NS);
    assert_false(message.fields.ephemeral);
    rest_message_fini(&message);
    assert_int_equal(
            parse_message(&message,
                    "{\"payload\":\"aGVsbG8\",\"contentTopic\":\"t\",\"timestamp\":-1}", false),
            STATUS_OK);
    assert_int_equal(message.fields.timestamp_ns, -1);
    rest_message_fini(&message);
}

static void fields_that_are_not_known_are_passed_over_or_refused(void **state)
{
    static const char body[] = "{\"payload\":\"aGVsbG8\",\"contentTopic\":\"t\",\"more\":[{}]}";
    struct rest_message message;
    (void)state;
    assert_int_equal(parse_message(&message, body, false), STATUS_OK);
    rest_message_fini(&message);
    assert_int_equal(parse_message(&message, body, true), STATUS_BAD_FIELD);
}

/* Small bodies that would become large trees; what stands in a text does not count. */
static void a_body_of_too_many_values_is_refused(void **state)
{
    enum {
        PAIRS = 5 * REST_LIST_MAX
    };
    static const char head[] = "{\"payload\":\"aGVsbG8\",\"contentTopic\":\"t\",\"more\":";
    static const char *const values[] = {"[],", "{},", "1,"};
    struct rest_message message;
    (void)state;
    char *body = malloc(sizeof(head) + (size_t)PAIRS * 3 + 16);
    assert_non_null(body);
    for (size_t i = 0; i < 3; i++) {
        char *to = body + sprintf(body, "%s[", head);
        for (size_t k = 0; k < PAIRS; k++) {
            to += sprintf(to, "%s", values[i]);
        }
        strcpy(to, "0]}");
        assert_int_equal(parse_message(&message, body, false), STATUS_BAD_FIELD);
    }
    char *to = body + sprintf(body, "%s\"\\\"", head);
    memset(to, ',', PAIRS);
    strcpy(to + PAIRS, "\"}");
    assert_int_equal(parse_message(&message, body, false), STATUS_OK);
    rest_message_fini(&message);
    free(body);
}

static void bad_messages_are_refused_with_a_reason(void **state)
{
    static const char *const bad[] = {"", "{", "null", "[]", "\"x\"", "{}", "nonsense",
            "{\"payload\":\"aGVsbG8\"}", "{\"contentTopic\":\"t\"}",
            "{\"payload\":\"\",\"contentTopic\":\"t\"}",
            "{\"payload\":\"  \",\"contentTopic\":\"t\"}",
            "{\"payload\":\"aGVsbG8\",\"contentTopic\":\"\"}",
            "{\"payload\":\"Hello World!\",\"contentTopic\":\"t\"}",
            "{\"payload\":1,\"contentTopic\":\"t\"}", "{\"payload\":true,\"contentTopic\":\"t\"}",
            "{\"payload\":[\"YWFh\"],\"contentTopic\":\"t\"}",
            "{\"payload\":{\"key\":\"YWFh\"},\"contentTopic\":\"t\"}",
            "{\"payload\":\"aGVsbG8\",\"contentTopic\":7}",
            "{\"payload\":\"aGVsbG8\",\"contentTopic\":\"t\",\"timestamp\":\"1234\"}",
            "{\"payload\":\"aGVsbG8\",\"contentTopic\":\"t\",\"timestamp\":1.5e18}",
            "{\"payload\":\"aGVsbG8\",\"contentTopic\":\"t\",\"timestamp\":9223372036854775808}",
            "{\"payload\":\"aGVsbG8\",\"contentTopic\":\"t\",\"timestamp\":null}",
            "{\"payload\":\"aGVsbG8\",\"contentTopic\":\"t\",\"timestamp\":[1]}",
            "{\"payload\":\"aGVsbG8\",\"contentTopic\":\"t\",\"version\":2.1}",
            "{\"payload\":\"aGVsbG8\",\"contentTopic\":\"t\",\"version\":-1}",
            "{\"payload\":\"aGVsbG8\",\"contentTopic\":\"t\",\"version\":4294967296}",
            "{\"payload\":\"aGVsbG8\",\"contentTopic\":\"t\",\"meta\":\"no!\"}",
            "{\"payload\":\"aGVsbG8\",\"contentTopic\":\"t\",\"ephemeral\":1}",
            "{\"payload\":\"aGVsbG8\",\"payload\":\"aGVsbG8\",\"contentTopic\":\"t\"}",
            "{\"payload\":\"aGVsbG8\",\"contentTopic\":\"t\\u0000\"}"};
    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct rest_message message;
        assert_int_equal(parse_message(&message, bad[i], false), STATUS_BAD_FIELD);
    }
}

static void lists_are_of_texts(void **state)
{
    static const char *const bad[] = {
            "\"/waku/2/rs/0/1\"", "[1]", "[\"a\",null]", "{}", "[[\"a\"]]"};
    struct rest_list list;
    struct rest_error error;
    (void)state;
    assert_int_equal(rest_list_parse(&list, span_of_text("[\"a\",\"b\"]"), &error), STATUS_OK);
    assert_int_equal(list.count, 2);
    assert_string_equal(list.items[1], "b");
    rest_list_fini(&list);
    assert_int_equal(rest_list_parse(&list, span_of_text("[]"), &error), STATUS_OK);
    assert_int_equal(list.count, 0);
    rest_list_fini(&list);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_int_equal(rest_list_parse(&list, span_of_text(bad[i]), &error), STATUS_BAD_FIELD);
    }
}

static void pushes_have_a_message_and_perhaps_a_topic(void **state)
{
    struct rest_push push;
    struct rest_error error;
    (void)state;
    assert_int_equal(rest_push_parse(&push,
                             span_of_text("{\"pubsubTopic\":\"p\",\"message\":{\"payload\":\"YQ\","
                                          "\"contentTopic\":\"t\"}}"),
                             NOW_NS, false, &error),
            STATUS_OK);
    assert_string_equal(push.pubsub_topic, "p");
    rest_push_fini(&push);
    assert_int_equal(rest_push_parse(&push,
                             span_of_text("{\"pubsubTopic\":\"\",\"message\":{\"payload\":\"YQ\","
                                          "\"contentTopic\":\"t\"}}"),
                             NOW_NS, false, &error),
            STATUS_OK);
    assert_null(push.pubsub_topic);
    rest_push_fini(&push);
    assert_int_equal(
            rest_push_parse(&push, span_of_text("{\"pubsubTopic\":\"p\"}"), NOW_NS, false, &error),
            STATUS_BAD_FIELD);
    assert_non_null(strstr(error.text, "message"));
}

static void filter_requests_have_an_id_and_topics(void **state)
{
    static const char some[] =
            "{\"requestId\":\"1\",\"contentFilters\":[\"a\"],\"pubsubTopic\":\"p\"}";
    struct rest_filter filter;
    struct rest_error error;
    (void)state;
    assert_int_equal(
            rest_filter_parse(&filter, span_of_text(some), false, true, &error), STATUS_OK);
    assert_string_equal(filter.request_id, "1");
    assert_string_equal(filter.pubsub_topic, "p");
    assert_int_equal(filter.content_topics.count, 1);
    rest_filter_fini(&filter);
    assert_int_equal(
            rest_filter_parse(&filter, span_of_text("{\"requestId\":\"1\"}"), true, true, &error),
            STATUS_OK);
    rest_filter_fini(&filter);
    assert_int_equal(
            rest_filter_parse(&filter, span_of_text("{\"requestId\":\"1\"}"), false, false, &error),
            STATUS_BAD_FIELD);
    assert_int_equal(
            rest_filter_parse(&filter, span_of_text("{\"requestId\":\"1\",\"contentFilters\":[]}"),
                    false, false, &error),
            STATUS_BAD_FIELD);
    assert_int_equal(
            rest_filter_parse(&filter, span_of_text("{\"requestId\":1,\"contentFilters\":[\"a\"]}"),
                    false, false, &error),
            STATUS_BAD_FIELD);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(a_message_with_everything),
            cmocka_unit_test(a_message_without_time_is_of_now),
            cmocka_unit_test(fields_that_are_not_known_are_passed_over_or_refused),
            cmocka_unit_test(a_body_of_too_many_values_is_refused),
            cmocka_unit_test(bad_messages_are_refused_with_a_reason),
            cmocka_unit_test(lists_are_of_texts),
            cmocka_unit_test(pushes_have_a_message_and_perhaps_a_topic),
            cmocka_unit_test(filter_requests_have_an_id_and_topics),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
