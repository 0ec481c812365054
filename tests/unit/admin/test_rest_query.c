/* SPDX-License-Identifier: MIT */
#include "admin/rest_query.h"

#include <stdio.h>
#include <string.h>

#include "tests/support/cmocka.h"

#define HASH "0x000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"

static void an_empty_query_is_the_first_page_of_all(void **state)
{
    struct rest_query_parameters parameters = {.hashes = "", .cursor = "", .start_time = "0"};
    struct rest_query query;
    struct rest_error error;
    (void)state;
    assert_int_equal(rest_query_parse(&query, &parameters, &error), STATUS_OK);
    assert_int_equal(query.query.limit, 20);
    assert_false(query.query.include_data);
    assert_false(query.query.is_backward);
    assert_false(query.query.has_cursor);
    assert_false(query.query.has_time_start);
    assert_int_equal(query.query.hash_count, 0);
    rest_query_fini(&query);
}

static void every_parameter_is_taken(void **state)
{
    struct rest_query_parameters parameters = {.include_data = "true",
            .pubsub_topic = "/waku/2/rs/0/1",
            .content_topics = "/a/1/b/c,/d/1/e/f",
            .start_time = "1764530000000000001",
            .end_time = "9223372036854775807",
            .cursor = HASH,
            .ascending = "false",
            .page_size = "100"};
    struct rest_query query;
    struct rest_error error;
    (void)state;
    assert_int_equal(rest_query_parse(&query, &parameters, &error), STATUS_OK);
    assert_true(query.query.include_data && query.query.is_backward);
    assert_int_equal(query.query.time_start_ns, 1764530000000000001);
    assert_int_equal(query.query.time_end_ns, INT64_MAX);
    assert_int_equal(query.query.content_topic_count, 2);
    assert_true(span_equal(query.query.content_topics[1], span_of_text("/d/1/e/f")));
    assert_true(span_equal(query.query.pubsub_topic, span_of_text("/waku/2/rs/0/1")));
    assert_int_equal(query.query.cursor.bytes[1], 1);
    assert_int_equal(query.query.limit, 100);
    rest_query_fini(&query);
}

static void hashes_stand_for_their_topics(void **state)
{
    struct rest_query_parameters parameters = {.pubsub_topic = "/waku/2/rs/0/1",
            .content_topics = "/a/1/b/c",
            .hashes = HASH ",," HASH};
    struct rest_query query;
    struct rest_error error;
    (void)state;
    assert_int_equal(rest_query_parse(&query, &parameters, &error), STATUS_OK);
    assert_int_equal(query.query.hash_count, 2);
    assert_int_equal(query.query.hashes[1].bytes[31], 0x1f);
    assert_int_equal(query.query.pubsub_topic.length, 0);
    assert_int_equal(query.query.content_topic_count, 0);
    rest_query_fini(&query);
}

static void sizes_of_pages_are_bounded(void **state)
{
    static const struct {
        const char *text;
        uint64_t limit;
    } sizes[] = {{"0", 20}, {"1", 1}, {"101", 100}, {"1000000", 100}, {"-1", 100}};
    (void)state;
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        struct rest_query_parameters parameters = {.page_size = sizes[i].text};
        struct rest_query query;
        struct rest_error error;
        assert_int_equal(rest_query_parse(&query, &parameters, &error), STATUS_OK);
        assert_int_equal(query.query.limit, sizes[i].limit);
        rest_query_fini(&query);
    }
}

static void assert_says(const char *text, const char *reason)
{
    if (strstr(text, reason) == NULL) {
        fail_msg("%s: %s", reason, text);
    }
}

static void bad_parameters_are_refused_with_a_reason(void **state)
{
    static const struct {
        struct rest_query_parameters parameters;
        const char *reason;
    } bad[] = {{{.include_data = "maybe"}, "include data"}, {{.start_time = "soon"}, "time"},
            {{.end_time = "1.5"}, "time"}, {{.end_time = "9223372036854775808"}, "time"},
            {{.start_time = " 1"}, "time"}, {{.page_size = "$2"}, "page size"},
            {{.ascending = "up"}, "ascending"}, {{.cursor = "74657374"}, "invalid hash length: 4"},
            {{.hashes = "test"}, "t is not a hexadecimal character"},
            {{.hashes = HASH ",##"}, "# is not a hexadecimal character"},
            {{.hashes = HASH "00"}, "invalid hash length: 33"},
            {{.hashes = "0x"}, "invalid hash length: 0"},
            {{.content_topics = "/a/1/b/c,%2Fd%2F1%2Fe%2Ff"}, "URL-encoded twice"},
            {{.pubsub_topic = "%2fwaku%2f2%2frs%2f0%2f1"}, "URL-encoded twice"}};
    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct rest_query query;
        struct rest_error error;
        assert_int_equal(rest_query_parse(&query, &bad[i].parameters, &error), STATUS_BAD_FIELD);
        assert_says(error.text, bad[i].reason);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(an_empty_query_is_the_first_page_of_all),
            cmocka_unit_test(every_parameter_is_taken),
            cmocka_unit_test(hashes_stand_for_their_topics),
            cmocka_unit_test(sizes_of_pages_are_bounded),
            cmocka_unit_test(bad_parameters_are_refused_with_a_reason),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
