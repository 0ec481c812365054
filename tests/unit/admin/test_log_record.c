/* SPDX-License-Identifier: MIT */
#include "admin/log_record.h"

#include <jansson.h>
#include <string.h>

#include "tests/support/cmocka.h"

/* 2009-02-13 23:31:30 UTC, the second 1234567890. */
static const struct log_record typical = {.time_ns = 1234567890987654321,
        .thread_id = 42,
        .level = LOG_WARN,
        .thread_name = "decode-1",
        .module = "relay",
        .text = "peer left"};

static json_t *parsed(const struct log_record *record)
{
    char line[LOG_LINE_MAX_BYTES];
    json_error_t error;
    size_t length = log_record_format(line, record, LOG_FORMAT_JSON);
    assert_int_equal(length, strlen(line));
    assert_ptr_equal(strchr(line, '\n'), line + length - 1);
    json_t *object = json_loads(line, 0, &error);
    assert_non_null(object);
    return object;
}

static const char *text_of(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    assert_non_null(text);
    return text;
}

static void text_has_time_level_module_and_thread(void **state)
{
    char line[LOG_LINE_MAX_BYTES];
    (void)state;
    log_record_format(line, &typical, LOG_FORMAT_TEXT);
    assert_string_equal(line, "WRN 2009-02-13 23:31:30.987+00:00 peer left topics=\"relay\" tid=42 "
                              "thread=decode-1\n");
}

static void json_is_one_object_with_the_references_names(void **state)
{
    json_t *object = parsed(&typical);
    (void)state;
    assert_string_equal(text_of(object, "lvl"), "WRN");
    assert_string_equal(text_of(object, "ts"), "2009-02-13 23:31:30.987+00:00");
    assert_string_equal(text_of(object, "msg"), "peer left");
    assert_string_equal(text_of(object, "topics"), "relay");
    assert_int_equal(json_integer_value(json_object_get(object, "tid")), 42);
    assert_string_equal(text_of(object, "thread"), "decode-1");
    json_decref(object);
}

static void what_a_peer_sent_makes_no_second_line(void **state)
{
    struct log_record record = typical;
    char line[LOG_LINE_MAX_BYTES];
    (void)state;
    strcpy(record.text, "a\nERR b\r\x1b[31m \"q\" \\ \xC3\xA9");
    json_t *object = parsed(&record);
    assert_string_equal(text_of(object, "msg"), record.text);
    json_decref(object);
    log_record_format(line, &record, LOG_FORMAT_TEXT);
    assert_ptr_equal(strchr(line, '\n'), line + strlen(line) - 1);
    assert_null(strchr(line, '\x1b'));
}

static void bytes_that_are_no_text_are_replaced(void **state)
{
    struct log_record record = typical;
    (void)state;
    strcpy(record.text, "x\xFF\xC3y");
    json_t *object = parsed(&record);
    assert_string_equal(text_of(object, "msg"), "x??y");
    json_decref(object);
}

static void the_longest_line_of_escapes_has_room(void **state)
{
    struct log_record record = typical;
    (void)state;
    memset(record.text, 1, LOG_TEXT_MAX_BYTES);
    memset(record.module, 1, sizeof(record.module) - 1);
    memset(record.thread_name, 1, sizeof(record.thread_name) - 1);
    json_t *object = parsed(&record);
    assert_int_equal(strlen(text_of(object, "msg")), LOG_TEXT_MAX_BYTES);
    json_decref(object);
}

static void times_before_1970_are_written_too(void **state)
{
    struct log_record record = typical;
    char line[LOG_LINE_MAX_BYTES];
    (void)state;
    record.time_ns = -1;
    log_record_format(line, &record, LOG_FORMAT_TEXT);
    assert_non_null(strstr(line, "1969-12-31 23:59:59.999"));
}

static void knows_the_formats_by_name(void **state)
{
    enum log_format format;
    (void)state;
    assert_true(log_format_from_name(&format, "TEXT"));
    assert_int_equal(format, LOG_FORMAT_TEXT);
    assert_true(log_format_from_name(&format, "json"));
    assert_int_equal(format, LOG_FORMAT_JSON);
    assert_false(log_format_from_name(&format, "xml"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(text_has_time_level_module_and_thread),
            cmocka_unit_test(json_is_one_object_with_the_references_names),
            cmocka_unit_test(what_a_peer_sent_makes_no_second_line),
            cmocka_unit_test(bytes_that_are_no_text_are_replaced),
            cmocka_unit_test(the_longest_line_of_escapes_has_room),
            cmocka_unit_test(times_before_1970_are_written_too),
            cmocka_unit_test(knows_the_formats_by_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
