/* SPDX-License-Identifier: MIT */
#include "admin/config_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/cmocka.h"

/* What the visitor saw: key=text; for a value, key[ for an array, +text; for its items. */
struct seen {
    char text[4096];
    struct config_position last;
};

static void append(struct seen *seen, const char *before, const char *text, const char *after)
{
    size_t length = strlen(seen->text);
    snprintf(seen->text + length, sizeof(seen->text) - length, "%s%s%s", before, text, after);
}

static void take_value(
        void *context, struct config_position at, const char *key, const char *text, bool is_item)
{
    struct seen *seen = context;
    seen->last = at;
    if (!is_item) {
        append(seen, key, "=", "");
    }
    append(seen, is_item ? "+" : "", text, ";");
}

static void take_array(void *context, struct config_position at, const char *key)
{
    struct seen *seen = context;
    seen->last = at;
    append(seen, key, "[", "");
}

static enum status parse(struct seen *seen, struct config_file_error *error, struct span text)
{
    struct config_file_visitor visitor = {
            .value = take_value, .array = take_array, .context = seen};
    memset(seen, 0, sizeof(*seen));
    return config_file_parse(text, &visitor, error);
}

static void expect(const char *text, const char *seen_text)
{
    struct seen seen;
    struct config_file_error error;
    assert_int_equal(parse(&seen, &error, span_of_text(text)), STATUS_OK);
    assert_string_equal(seen.text, seen_text);
}

static void refuse(const char *text, size_t line, size_t column, const char *why)
{
    struct seen seen;
    struct config_file_error error;
    assert_int_not_equal(parse(&seen, &error, span_of_text(text)), STATUS_OK);
    assert_non_null(strstr(error.text, why));
    assert_int_equal(error.position.line, line);
    assert_int_equal(error.position.column, column);
}

static void reads_every_kind_of_value(void **state)
{
    (void)state;
    expect("a = \"text\"\nb = 'literal \\n'\nc = true\nd = false\n",
            "a=text;b=literal \\n;c=true;d=false;");
    expect("a = 42\nb = -17\nc = +99\nd = 1_000\ne = 3.1415\n", "a=42;b=-17;c=99;d=1000;e=3.1415;");
    expect("a = 0xDEAD_beef\nb = 0o755\nc = 0b1101\n", "a=3735928559;b=493;c=13;");
    expect("a = \"\"\nb = []\nc = ''", "a=;b[c=;");
    expect("\"tcp-port\" = 1\n'udp' = 2", "tcp-port=1;udp=2;");
}

static void reads_arrays_over_lines_with_comments_and_a_last_comma(void **state)
{
    (void)state;
    expect("a = [1,2 , 3]", "a[+1;+2;+3;");
    expect("a = [ # first\n  \"x\", # one\n\n  'y'\n  ,\n]\nb = true", "a[+x;+y;b=true;");
}

static void reads_escapes_of_strings(void **state)
{
    (void)state;
    expect("a = \"\\b\\t\\n\\f\\r\\\"\\\\\"", "a=\b\t\n\f\r\"\\;");
    expect("a = \"\\u00e9 \\u20AC \\U0001F600\"", "a=\xC3\xA9 \xE2\x82\xAC \xF0\x9F\x98\x80;");
    expect("a = \"# no comment\" # one", "a=# no comment;");
}

static void takes_files_as_editors_leave_them(void **state)
{
    (void)state;
    expect("", "");
    expect("\n\n  # only this\n\t\n", "");
    expect("a = 1\r\n# x\r\nb = 2\r\n", "a=1;b=2;");
    expect("\xEF\xBB\xBF"
           "a = 1",
            "a=1;");
    expect("  a=1  # x\n\tb\t=\t2", "a=1;b=2;");
}

static void says_where_and_why_a_file_is_refused(void **state)
{
    (void)state;
    refuse("a = 1\n[table]\n", 2, 1, "tables");
    refuse("a = {b = 1}", 1, 5, "tables");
    refuse("a.b = 1", 1, 2, "dotted");
    refuse("a = \"\"\"\nx\"\"\"", 1, 6, "several lines");
    refuse("a = 1\nb = 2\na = 3", 3, 2, "twice");
    refuse("\n\n  a = 1979-05-27", 3, 7, "neither a number");
    refuse("a = yes", 1, 5, "quotes");
    refuse("a = 01", 1, 5, "neither a number");
    refuse("a = 1__0", 1, 5, "neither a number");
    refuse("a = _1", 1, 5, "neither a number");
    refuse("a = 1_", 1, 5, "neither a number");
    refuse("a = 1.", 1, 5, "neither a number");
    refuse("a = 0x", 1, 5, "neither a number");
    refuse("a = 0x11112222333344445", 1, 5, "neither a number");
    refuse("a =", 1, 4, "a value is expected");
    refuse("a", 1, 2, "= is expected");
    refuse("a 1", 1, 3, "= is expected");
    refuse("= 1", 1, 1, "name of an option");
    refuse("a = 1 b = 2", 1, 7, "should end");
    refuse("a = \"x", 1, 7, "does not end");
    refuse("a = \"x\ny\"", 1, 7, "does not end");
    refuse("a = \"\\x41\"", 1, 7, "unknown escape");
    refuse("a = \"\\u00g0\"", 1, 10, "hexadecimal");
    refuse("a = \"\\ud800\"", 1, 12, "no such character");
    refuse("a = \"\\u0000\"", 1, 12, "no such character");
    refuse("a = [1 2]", 1, 8, "comma");
    refuse("a = [1, [2]]", 1, 9, "inside an array");
    refuse("a = [1, 2", 1, 10, "comma");
    refuse("a = 1\rb = 2", 1, 6, "control character");
    refuse("a = 'x\x01'", 1, 7, "control character");
}

static void refuses_zero_bytes_in_the_middle(void **state)
{
    static const char text[] = "a = \"x\0y\"";
    struct seen seen;
    struct config_file_error error;
    (void)state;
    assert_int_equal(parse(&seen, &error, span_of(text, sizeof(text) - 1)), STATUS_BAD_FIELD);
    assert_string_equal(seen.text, "");
}

static char *filled(size_t length, const char *prefix, char with)
{
    char *text = malloc(length + 1);
    assert_non_null(text);
    memset(text, with, length);
    memcpy(text, prefix, strlen(prefix));
    text[length] = '\0';
    return text;
}

static void holds_its_limits(void **state)
{
    struct seen seen;
    struct config_file_error error;
    (void)state;
    char *large = filled(CONFIG_FILE_MAX_BYTES + 1, "#", 'x');
    assert_int_equal(parse(&seen, &error, span_of_text(large)), STATUS_TOO_LARGE);
    assert_int_equal(parse(&seen, &error, span_of(large, CONFIG_FILE_MAX_BYTES)), STATUS_OK);
    free(large);
    char *value = filled(CONFIG_VALUE_MAX_BYTES + 6, "a = \"", 'x');
    value[CONFIG_VALUE_MAX_BYTES + 5] = '"';
    assert_int_equal(parse(&seen, &error, span_of_text(value)), STATUS_OK);
    free(value);
    value = filled(CONFIG_VALUE_MAX_BYTES + 7, "a = \"", 'x');
    value[CONFIG_VALUE_MAX_BYTES + 6] = '"';
    assert_int_equal(parse(&seen, &error, span_of_text(value)), STATUS_TOO_LARGE);
    free(value);
    char *key = filled(CONFIG_KEY_MAX_BYTES + 1, "", 'k');
    assert_int_equal(parse(&seen, &error, span_of_text(key)), STATUS_BAD_FIELD);
    assert_non_null(strstr(error.text, "name of an option"));
    free(key);
}

static void refuses_more_keys_than_it_keeps(void **state)
{
    char *text = calloc(CONFIG_FILE_MAX_KEYS + 1, 16);
    struct seen seen;
    struct config_file_error error;
    size_t length = 0;
    (void)state;
    assert_non_null(text);
    for (size_t i = 0; i <= CONFIG_FILE_MAX_KEYS; i++) {
        length += (size_t)snprintf(text + length, 16, "k%zu=1\n", i);
    }
    assert_int_equal(parse(&seen, &error, span_of(text, length)), STATUS_TOO_LARGE);
    assert_int_equal(error.position.line, CONFIG_FILE_MAX_KEYS + 1);
    free(text);
}

static void tells_a_missing_file_from_a_bad_one(void **state)
{
    struct config_file_visitor visitor = {.value = take_value, .array = take_array};
    struct config_file_error error;
    (void)state;
    assert_int_equal(
            config_file_read("tests/unit/admin/no-such-file", &visitor, &error), STATUS_NOT_FOUND);
    assert_int_equal(error.position.line, 0);
    assert_int_equal(config_file_read("tests/unit/admin", &visitor, &error), STATUS_SYSTEM);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(reads_every_kind_of_value),
            cmocka_unit_test(reads_arrays_over_lines_with_comments_and_a_last_comma),
            cmocka_unit_test(reads_escapes_of_strings),
            cmocka_unit_test(takes_files_as_editors_leave_them),
            cmocka_unit_test(says_where_and_why_a_file_is_refused),
            cmocka_unit_test(refuses_zero_bytes_in_the_middle),
            cmocka_unit_test(holds_its_limits),
            cmocka_unit_test(refuses_more_keys_than_it_keeps),
            cmocka_unit_test(tells_a_missing_file_from_a_bad_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
