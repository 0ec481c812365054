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
    assert_int_equal(options_parse_bytes(&bytes, "1500 B"), STATUS_OK);
    assert_int_equal(bytes, 1500);
    assert_int_equal(options_parse_bytes(&bytes, "153600"), STATUS_OK);
    assert_int_equal(bytes, 153600);
    assert_int_equal(options_parse_bytes(&bytes, "1.2.3KiB"), STATUS_BAD_ARGUMENT);
    assert_int_equal(options_parse_bytes(&bytes, "KiB"), STATUS_BAD_ARGUMENT);
    assert_int_equal(options_parse_bytes(&bytes, "99999999999TiB"), STATUS_BAD_ARGUMENT);
}

/* What the reference's command line parser takes for true and for false. */
static void reads_flags_in_every_form_of_the_reference(void **state)
{
    static const char *const yes[] = {
            "--quiet", "--quiet=true", "--quiet:true", "--quiet=1", "--quiet=ON", "--quiet="};
    static const char *const no[] = {"--quiet=false", "--quiet:false", "--quiet=0", "--quiet:off"};
    (void)state;
    for (size_t i = 0; i < sizeof(yes) / sizeof(yes[0]); i++) {
        struct options *options = made();
        struct options_error error;
        assert_int_equal(parse(options, &error, &yes[i], 1), STATUS_OK);
        assert_true(options_flag(options, "quiet"));
        options_destroy(&options);
    }
    for (size_t i = 0; i < sizeof(no) / sizeof(no[0]); i++) {
        struct options *options = made();
        struct options_error error;
        assert_int_equal(options_set(options, "quiet", "true", &error), STATUS_OK);
        assert_int_equal(parse(options, &error, &no[i], 1), STATUS_OK);
        assert_false(options_flag(options, "quiet"));
        options_destroy(&options);
    }
}

static void a_value_may_hold_the_characters_that_end_a_name(void **state)
{
    static const char *const arguments[] = {"--name=extip:1.2.3.4", "--topic:a=b", "--topic=c:d"};
    struct options *options = made();
    struct options_error error;
    (void)state;
    assert_int_equal(parse(options, &error, arguments, 3), STATUS_OK);
    assert_string_equal(options_text(options, "name"), "extip:1.2.3.4");
    assert_string_equal(options_list_item(options, "topic", 0), "a=b");
    assert_string_equal(options_list_item(options, "topic", 1), "c:d");
    options_destroy(&options);
}

static void set(
        struct options *options, enum option_source source, const char *name, const char *text)
{
    struct options_error error;
    assert_int_equal(options_set_from(options, source, name, text, &error), STATUS_OK);
}

static void the_stronger_source_prevails_in_whatever_order(void **state)
{
    struct options *options = made();
    (void)state;
    set(options, OPTION_FROM_ENVIRONMENT, "count", "4");
    set(options, OPTION_FROM_FILE, "count", "5");
    assert_int_equal(options_number(options, "count"), 4);
    set(options, OPTION_FROM_ARGUMENT, "count", "6");
    set(options, OPTION_FROM_ENVIRONMENT, "count", "7");
    assert_int_equal(options_number(options, "count"), 6);
    assert_int_equal(options_source(options, "count"), OPTION_FROM_ARGUMENT);
    set(options, OPTION_FROM_ARGUMENT, "count", "8");
    assert_int_equal(options_number(options, "count"), 8);
    options_destroy(&options);
}

static void a_list_has_the_items_of_one_source(void **state)
{
    struct options *options = made();
    (void)state;
    set(options, OPTION_FROM_FILE, "topic", "a");
    set(options, OPTION_FROM_FILE, "topic", "b");
    assert_int_equal(options_list_count(options, "topic"), 2);
    set(options, OPTION_FROM_ARGUMENT, "topic", "c");
    set(options, OPTION_FROM_FILE, "topic", "d");
    assert_int_equal(options_list_count(options, "topic"), 1);
    assert_string_equal(options_list_item(options, "topic", 0), "c");
    options_empty_list(options, OPTION_FROM_FILE, "topic");
    assert_int_equal(options_list_count(options, "topic"), 1);
    options_empty_list(options, OPTION_FROM_ARGUMENT, "topic");
    assert_int_equal(options_list_count(options, "topic"), 0);
    options_destroy(&options);
}

static void a_value_that_does_not_prevail_must_be_right_all_the_same(void **state)
{
    struct options *options = made();
    struct options_error error;
    (void)state;
    set(options, OPTION_FROM_ARGUMENT, "count", "4");
    assert_int_equal(options_set_from(options, OPTION_FROM_FILE, "count", "11", &error),
            STATUS_BAD_ARGUMENT);
    assert_int_equal(options_number(options, "count"), 4);
    options_destroy(&options);
}

static void help_names_every_option_once_under_its_group(void **state)
{
    static const struct option_spec more[] = {
            {"other", OPTION_TEXT, "", 0, 0, "Other", "something else"},
            {"again", OPTION_TEXT, "", 0, 0, "Test", "of the group of the first table"},
            {NULL, OPTION_BOOL, NULL, 0, 0, NULL, NULL}};
    static const struct option_spec *const both[] = {table, more, NULL};
    struct options *options = NULL;
    char text[4096] = "";
    (void)state;
    assert_int_equal(options_create(&options, both), STATUS_OK);
    FILE *out = fmemopen(text, sizeof(text), "w");
    assert_non_null(out);
    options_print_help(options, out);
    assert_int_equal(fclose(out), 0);
    const char *again = strstr(text, "--again");
    assert_non_null(again);
    assert_true(again < strstr(text, "\nOther\n"));
    assert_null(strstr(strstr(text, "\nTest\n") + 1, "\nTest\n"));
    assert_non_null(strstr(text, "how many; 1 to 10 (default 3)"));
    options_destroy(&options);
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
            cmocka_unit_test(reads_flags_in_every_form_of_the_reference),
            cmocka_unit_test(a_value_may_hold_the_characters_that_end_a_name),
            cmocka_unit_test(the_stronger_source_prevails_in_whatever_order),
            cmocka_unit_test(a_list_has_the_items_of_one_source),
            cmocka_unit_test(a_value_that_does_not_prevail_must_be_right_all_the_same),
            cmocka_unit_test(help_names_every_option_once_under_its_group),
            cmocka_unit_test(every_default_of_the_node_is_in_its_own_range),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
