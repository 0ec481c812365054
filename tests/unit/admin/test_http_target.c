/* SPDX-License-Identifier: MIT */
#include "admin/http_target.h"

#include <stdio.h>
#include <string.h>

#include "tests/support/cmocka.h"

static void an_encoded_slash_stays_in_its_segment(void **state)
{
    struct http_target target;
    (void)state;
    assert_int_equal(
            http_target_parse(&target, "/relay/v1/messages/%2Fwaku%2F2%2frs%2F0%2F1"), STATUS_OK);
    assert_int_equal(target.segment_count, 4);
    assert_string_equal(target.segments[0], "relay");
    assert_string_equal(target.segments[3], "/waku/2/rs/0/1");
    http_target_fini(&target);
}

static void what_is_encoded_twice_is_decoded_once(void **state)
{
    struct http_target target;
    (void)state;
    assert_int_equal(http_target_parse(&target, "/a/%252Fb?c=%252C"), STATUS_OK);
    assert_string_equal(target.segments[1], "%2Fb");
    assert_string_equal(http_target_find(&target, "c"), "%2C");
    http_target_fini(&target);
}

static void a_query_is_split_before_it_is_decoded(void **state)
{
    struct http_target target;
    (void)state;
    assert_int_equal(http_target_parse(&target, "/store?a=1%262&b=x+y%2B&empty=&bare&a=second&&"),
            STATUS_OK);
    assert_int_equal(target.parameter_count, 5);
    assert_string_equal(http_target_find(&target, "a"), "1&2,second");
    assert_string_equal(http_target_find(&target, "b"), "x y+");
    assert_string_equal(http_target_find(&target, "empty"), "");
    assert_string_equal(http_target_find(&target, "bare"), "");
    assert_null(http_target_find(&target, "none"));
    http_target_fini(&target);
}

static void a_plus_in_the_path_is_a_plus(void **state)
{
    struct http_target target;
    (void)state;
    assert_int_equal(http_target_parse(&target, "/a+b"), STATUS_OK);
    assert_string_equal(target.segments[0], "a+b");
    http_target_fini(&target);
}

static void malformed_targets_are_refused(void **state)
{
    static const char *const malformed[] = {
            "/%", "/%2", "/%zz", "/a?b=%", "/a?%4=1", "/a%00b", "/a?b=%00"};
    struct http_target target;
    (void)state;
    for (size_t i = 0; i < sizeof(malformed) / sizeof(malformed[0]); i++) {
        assert_int_equal(http_target_parse(&target, malformed[i]), STATUS_BAD_FIELD);
        assert_null(target.text);
    }
}

static void what_is_no_path_is_refused(void **state)
{
    static const char *const bad[] = {
            "", "a", "*", "?a=b", "http://", "http://x", "http://x?/a", "ftp://x/a"};
    struct http_target target;
    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_int_equal(http_target_parse(&target, bad[i]), STATUS_BAD_ADDRESS);
        assert_null(target.text);
    }
    assert_int_equal(http_target_parse(&target, "HTTP://x:80/a/b?c=http://y/z"), STATUS_OK);
    assert_int_equal(target.segment_count, 2);
    assert_string_equal(target.segments[0], "a");
    assert_string_equal(http_target_find(&target, "c"), "http://y/z");
    http_target_fini(&target);
}

static void parts_are_bounded(void **state)
{
    char raw[1024] = "";
    struct http_target target;
    (void)state;
    for (size_t i = 0; i < HTTP_SEGMENTS_MAX; i++) {
        strcat(raw, "/a");
    }
    assert_int_equal(http_target_parse(&target, raw), STATUS_OK);
    http_target_fini(&target);
    strcat(raw, "/a");
    assert_int_equal(http_target_parse(&target, raw), STATUS_LIMIT_REACHED);
    strcpy(raw, "/a?");
    for (size_t i = 0; i <= HTTP_PARAMETERS_MAX; i++) {
        strcat(raw, "a=b&");
    }
    assert_int_equal(http_target_parse(&target, raw), STATUS_LIMIT_REACHED);
}

static void values_of_one_name_are_one_with_commas(void **state)
{
    struct http_target target;
    (void)state;
    assert_int_equal(http_target_parse(&target, "/a?t=%2Fa&n=1&t=b&t&=x&=y&n="), STATUS_OK);
    assert_string_equal(http_target_find(&target, "t"), "/a,b,");
    assert_string_equal(http_target_find(&target, "n"), "1,");
    assert_string_equal(http_target_find(&target, ""), "x,y");
    assert_null(http_target_find(&target, "a"));
    http_target_fini(&target);
}

static bool matches(const char *raw, const char *pattern)
{
    struct http_target target;
    assert_int_equal(http_target_parse(&target, raw), STATUS_OK);
    bool result = http_target_matches(&target, pattern);
    http_target_fini(&target);
    return result;
}

static void patterns_match_whole_paths(void **state)
{
    (void)state;
    assert_true(matches("/", "/"));
    assert_false(matches("/a", "/"));
    assert_false(matches("/", "/a"));
    assert_true(matches("/health", "/health"));
    assert_true(matches("/health/", "/health"));
    assert_false(matches("/healthy", "/health"));
    assert_false(matches("/heal", "/health"));
    assert_true(matches("/a/b%2Fc", "/a/{topic}"));
    assert_false(matches("/a/b/c", "/a/{topic}"));
    assert_false(matches("/a", "/a/{topic}"));
    assert_false(matches("/a//b", "/a/{topic}/b"));
    assert_true(matches("/a/1/b", "/a/{topic}/b"));
    assert_true(matches("/live/x/y", "/live/*"));
    assert_true(matches("/live", "/live/*"));
    assert_false(matches("/liver", "/live/*"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(an_encoded_slash_stays_in_its_segment),
            cmocka_unit_test(what_is_encoded_twice_is_decoded_once),
            cmocka_unit_test(values_of_one_name_are_one_with_commas),
            cmocka_unit_test(a_query_is_split_before_it_is_decoded),
            cmocka_unit_test(a_plus_in_the_path_is_a_plus),
            cmocka_unit_test(malformed_targets_are_refused),
            cmocka_unit_test(what_is_no_path_is_refused),
            cmocka_unit_test(parts_are_bounded),
            cmocka_unit_test(patterns_match_whole_paths),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
