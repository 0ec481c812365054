/* SPDX-License-Identifier: MIT */
#include "base/log.h"

#include <stdio.h>
#include <string.h>

#include "tests/support/cmocka.h"

struct captured {
    int lines;
    enum log_level level;
    char last[256];
};

static void capture(void *context, enum log_level level, const char *module, const char *line)
{
    struct captured *captured = context;
    captured->lines++;
    captured->level = level;
    snprintf(captured->last, sizeof(captured->last), "%s: %s", module, line);
}

static void writes_lines_of_the_level_and_above(void **state)
{
    struct captured captured = {0};
    (void)state;
    log_set_sink(capture, &captured);
    log_set_level(LOG_NOTICE);
    log_write(LOG_INFO, "test", "not this one");
    assert_int_equal(captured.lines, 0);
    log_write(LOG_ERROR, "test", "number %d", 7);
    assert_int_equal(captured.lines, 1);
    assert_int_equal(captured.level, LOG_ERROR);
    assert_string_equal(captured.last, "test: number 7");
    log_set_sink(NULL, NULL);
    log_write(LOG_ERROR, "test", "nobody listens");
    assert_int_equal(captured.lines, 1);
}

static void writes_one_line_of_a_burst(void **state)
{
    struct captured captured = {0};
    static struct log_limit limit;
    (void)state;
    log_set_sink(capture, &captured);
    for (int i = 0; i < 1000; i++) {
        log_write_limited(&limit, LOG_ERROR, "test", "burst");
    }
    assert_in_range(captured.lines, 1, 4); /* more only if the burst takes seconds */
    log_set_sink(NULL, NULL);
}

static void knows_the_names_of_the_levels(void **state)
{
    enum log_level level = LOG_TRACE;
    (void)state;
    assert_true(log_level_from_name(&level, "warn"));
    assert_int_equal(level, LOG_WARN);
    assert_string_equal(log_level_name(LOG_FATAL), "FATAL");
    assert_false(log_level_from_name(&level, "loud"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(writes_lines_of_the_level_and_above),
            cmocka_unit_test(writes_one_line_of_a_burst),
            cmocka_unit_test(knows_the_names_of_the_levels),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
