/* SPDX-License-Identifier: MIT */
#include "admin/http_origins.h"

#include <string.h>

#include "tests/support/cmocka.h"

static bool matches(const char *pattern, const char *origin)
{
    struct http_origins *origins;
    assert_int_equal(http_origins_create(&origins, &pattern, 1), STATUS_OK);
    bool result = http_origins_match(origins, origin);
    http_origins_destroy(&origins);
    return result;
}

static void a_pattern_without_scheme_stands_for_both(void **state)
{
    (void)state;
    assert_true(matches("a.example", "http://a.example"));
    assert_true(matches("a.example", "https://a.example"));
    assert_false(matches("a.example", "ftp://a.example"));
    assert_false(matches("https://a.example", "http://a.example"));
    assert_true(matches("https://a.example", "HTTPS://A.example"));
}

static void wildcards_match_text_and_dots_are_dots(void **state)
{
    (void)state;
    assert_true(matches("localhost:*", "http://localhost:3000"));
    assert_true(matches("*.example", "http://a.b.example"));
    assert_false(matches("*.example", "http://aexample"));
    assert_false(matches("a.example", "http://axexample"));
    assert_true(matches("a?.example", "http://a1.example"));
    assert_true(matches("a?.example", "http://a.example"));
    assert_false(matches("a?.example", "http://a12.example"));
    assert_true(matches("*", "anything"));
    assert_true(matches("x.org,*.net", "http://y.net"));
    assert_false(matches("x.org,*.net", "http://x.org.evil"));
}

static void many_wildcards_take_no_more_time(void **state)
{
    char pattern[201];
    char origin[4096] = "http://";
    (void)state;
    for (size_t i = 0; i < 100; i++) {
        memcpy(pattern + 2 * i, "*a", 2);
    }
    pattern[200] = '\0';
    memset(origin + 7, 'a', sizeof(origin) - 8);
    origin[sizeof(origin) - 2] = 'b';
    origin[sizeof(origin) - 1] = '\0';
    assert_false(matches(pattern, origin));
}

static void too_many_or_too_long_is_refused(void **state)
{
    char longer[400];
    const char *item = longer;
    struct http_origins *origins;
    (void)state;
    memset(longer, 'a', sizeof(longer));
    longer[256] = '\0';
    assert_int_equal(http_origins_create(&origins, &item, 1), STATUS_LIMIT_REACHED);
    for (size_t i = 0; i < 65; i++) {
        memcpy(longer + 2 * i, "a,", 2);
    }
    longer[130] = '\0';
    assert_int_equal(http_origins_create(&origins, &item, 1), STATUS_LIMIT_REACHED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(a_pattern_without_scheme_stands_for_both),
            cmocka_unit_test(wildcards_match_text_and_dots_are_dots),
            cmocka_unit_test(many_wildcards_take_no_more_time),
            cmocka_unit_test(too_many_or_too_long_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
