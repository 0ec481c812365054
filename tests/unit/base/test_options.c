/* SPDX-License-Identifier: MIT */
#include "base/options.h"

#include <string.h>

#include "tests/support/cmocka.h"

static const struct option_spec table[] = {
        {"quiet", OPTION_BOOL, "false", 0, 0, "Test", "says less"},
        {"count", OPTION_NUMBER, "3", 1, 10, "Test", "how many"},
        {"size", OPTION_BYTES, "1KiB", 16, 1 << 20, "Test", "how large"},
        {"wait", OPTION_SECONDS, "2s", 100, 60000, "Test", "how long"},
        {"name", OPTION_TEXT, "x", 0, 0, "Test", "what"},
        {"topic", OPTION_LIST, "", 0, 0, "Test", "which"},
        {NULL, OPTION_BOOL, NULL, 0, 0, NULL, NULL},
};

static const struct option_spec *const tables[] = {table, NULL};

static struct options *made(void)
{
    struct options *options = NULL;
    assert_int_equal(options_create(&options, tables), STATUS_OK);
    return options;
}

static enum status parse(struct options *options, struct options_error *error,
        const char *const *arguments, int count)
{
    return options_parse_arguments(options, count, (char *const *)(uintptr_t)arguments, error);
}

static void has_the_defaults_of_the_table(void **state)
{
    struct options *options = made();
    (void)state;
    assert_false(options_flag(options, "quiet"));
    assert_int_equal(options_number(options, "count"), 3);
    assert_int_equal(options_number(options, "size"), 1024);
    assert_int_equal(options_number(options, "wait"), 2000);
    assert_string_equal(options_text(options, "name"), "x");
    assert_int_equal(options_list_count(options, "topic"), 0);
    assert_false(options_is_set(options, "count"));
    options_destroy(&options);
    assert_null(options);
}

static void takes_all_ways_of_writing_an_argument(void **state)
{
    static const char *const arguments[] = {"--quiet", "--count=7", "--size", "64KB", "one",
            "--wait=0.5m", "--topic=a", "--topic", "b", "--", "--two"};
    struct options *options = made();
    struct options_error error;
    (void)state;
    assert_int_equal(parse(options, &error, arguments, 11), STATUS_OK);
    assert_true(options_flag(options, "quiet"));
    assert_int_equal(options_number(options, "count"), 7);
    assert_int_equal(options_number(options, "size"), 64000);
    assert_int_equal(options_number(options, "wait"), 30000);
    assert_int_equal(options_list_count(options, "topic"), 2);
    assert_string_equal(options_list_item(options, "topic", 1), "b");
    assert_int_equal(options_positional_count(options), 2);
    assert_string_equal(options_positional(options, 1), "--two");
    assert_true(options_is_set(options, "wait"));
    options_destroy(&options);
}

static void refuses_what_is_out_of_range_and_names_the_range(void **state)
{
    static const char *const bad[] = {"--count=11", "--count=0", "--count=x", "--count=2.5",
            "--count=-1", "--size=1", "--size=2MiB", "--wait=50ms", "--quiet=perhaps", "--count="};
    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct options *options = made();
        struct options_error error = {.text = ""};
        assert_int_equal(parse(options, &error, &bad[i], 1), STATUS_BAD_ARGUMENT);
        assert_non_null(strstr(error.text, "expected"));
        options_destroy(&options);
    }
}

static void names_the_nearest_option_to_an_unknown_one(void **state)
{
    static const char *const arguments[] = {"--cuont=3"};
    struct options *options = made();
    struct options_error error;
    (void)state;
    assert_int_equal(parse(options, &error, arguments, 1), STATUS_NOT_FOUND);
    assert_string_equal(error.text, "unknown option --cuont; the nearest is --count");
    options_destroy(&options);
}

static void says_when_a_value_is_missing(void **state)
{
    static const char *const arguments[] = {"--count"};
    struct options *options = made();
    struct options_error error;
    (void)state;
    assert_int_equal(parse(options, &error, arguments, 1), STATUS_BAD_ARGUMENT);
    assert_string_equal(error.text, "--count needs a value");
    options_destroy(&options);
}

static void reads_sizes_in_both_kinds_of_units(void **state)
{
    uint64_t bytes = 0;
    (void)state;
    assert_int_equal(options_parse_bytes(&bytes, "150KiB"), STATUS_OK);
    assert_int_equal(bytes, 153600);
    assert_int_equal(options_parse_bytes(&bytes, "150kb"), STATUS_OK);
    assert_int_equal(bytes, 150000);
    assert_int_equal(options_parse_bytes(&bytes, "0.5GiB"), STATUS_OK);
    assert_int_equal(bytes, 536870912);
    assert_int_equal(options_parse_bytes(&bytes, "12 KiB"), STATUS_BAD_ARGUMENT);
    assert_int_equal(options_parse_bytes(&bytes, "KiB"), STATUS_BAD_ARGUMENT);
    assert_int_equal(options_parse_bytes(&bytes, "99999999999TiB"), STATUS_BAD_ARGUMENT);
}

static void every_default_of_the_node_is_in_its_own_range(void **state)
{
    const struct option_spec *const of_node[] = {options_of_node, NULL};
    struct options *options = NULL;
    (void)state;
    assert_int_equal(options_create(&options, of_node), STATUS_OK);
    assert_int_equal(options_number(options, "max-msg-size"), 153600);
    options_destroy(&options);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(has_the_defaults_of_the_table),
            cmocka_unit_test(takes_all_ways_of_writing_an_argument),
            cmocka_unit_test(refuses_what_is_out_of_range_and_names_the_range),
            cmocka_unit_test(names_the_nearest_option_to_an_unknown_one),
            cmocka_unit_test(says_when_a_value_is_missing),
            cmocka_unit_test(reads_sizes_in_both_kinds_of_units),
            cmocka_unit_test(every_default_of_the_node_is_in_its_own_range),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
