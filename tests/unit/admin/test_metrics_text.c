/* SPDX-License-Identifier: MIT */
#include "tests/support/cmocka.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "admin/metrics_text.h"
#include "admin/process_figures.h"
#include "base/duration.h"

static struct metrics_seen seen; /* cleared by each case: it is large */

static const struct metrics_series plain = {.suffix = "", .labels = ""};

/* A page with one counter of that value. */
static char *page_of(struct metrics_seen *memory, uint64_t value)
{
    struct metrics_text text;
    size_t length;
    metrics_text_begin(&text, memory);
    metrics_text_family(&text, "a_total", "counter", "as");
    metrics_text_count(&text, &plain, value);
    char *page = metrics_text_end(&text, &length);
    assert_non_null(page);
    assert_int_equal(strlen(page), length);
    return page;
}

static void expect_page(struct metrics_seen *memory, uint64_t value, const char *wanted)
{
    char *page = page_of(memory, value);
    assert_string_equal(page, wanted);
    free(page);
}

static void a_zero_is_shown_only_after_another_value(void **state)
{
    (void)state;
    memset(&seen, 0, sizeof(seen));
    expect_page(&seen, 0, "");
    expect_page(&seen, 3, "# HELP a_total as\n# TYPE a_total counter\na_total 3\n");
    expect_page(&seen, 0, "# HELP a_total as\n# TYPE a_total counter\na_total 0\n");
}

static bool only_a(char out[METRICS_NAME_MAX], const char *name)
{
    snprintf(out, METRICS_NAME_MAX, "new_%s", name);
    return strcmp(name, "a_total") == 0;
}

static void a_page_may_have_other_names_and_leave_families_out(void **state)
{
    struct metrics_text text;
    size_t length;
    (void)state;
    metrics_text_begin(&text, NULL);
    text.rename = only_a;
    metrics_text_family(&text, "b_total", "counter", "bs");
    metrics_text_count(&text, &plain, 1);
    metrics_text_family(&text, "a_total", "counter", "as");
    metrics_text_count(&text, &plain, 2);
    text.rename = NULL;
    metrics_text_family(&text, "b_total", "counter", "bs");
    metrics_text_count(&text, &plain, 3);
    char *page = metrics_text_end(&text, &length);
    assert_string_equal(page, "# HELP new_a_total as\n# TYPE new_a_total counter\nnew_a_total 2\n"
                              "# HELP b_total bs\n# TYPE b_total counter\nb_total 3\n");
    free(page);
}

static void zeros_are_shown_without_a_memory_and_where_they_are_wanted(void **state)
{
    struct metrics_text text;
    struct metrics_series always = {
            .suffix = "_count", .labels = "b=\"c\"", .is_always_there = true};
    size_t length;
    (void)state;
    expect_page(NULL, 0, "# HELP a_total as\n# TYPE a_total counter\na_total 0\n");
    memset(&seen, 0, sizeof(seen));
    metrics_text_begin(&text, &seen);
    metrics_text_family(&text, "d", "histogram", "ds");
    metrics_text_number(&text, &plain, 0);
    metrics_text_count(&text, &always, 0);
    char *page = metrics_text_end(&text, &length);
    assert_string_equal(page, "# HELP d ds\n# TYPE d histogram\nd_count{b=\"c\"} 0\n");
    free(page);
}

static void more_series_than_are_remembered_only_lose_their_zeros(void **state)
{
    struct metrics_text text;
    size_t length;
    (void)state;
    memset(&seen, 0, sizeof(seen));
    metrics_text_begin(&text, &seen);
    metrics_text_family(&text, "e", "gauge", "es");
    for (unsigned i = 0; i < METRICS_SEEN_MAX + 1; i++) {
        char labels[32];
        snprintf(labels, sizeof(labels), "i=\"%u\"", i);
        struct metrics_series series = {.suffix = "", .labels = labels};
        metrics_text_count(&text, &series, 1);
    }
    char *page = metrics_text_end(&text, &length);
    assert_non_null(strstr(page, "e{i=\"8192\"} 1\n"));
    free(page);
}

static void label_values_are_escaped_and_cut(void **state)
{
    char out[METRICS_LABEL_VALUE_MAX];
    char longest[2 * METRICS_LABEL_VALUE_MAX];
    (void)state;
    assert_string_equal(metrics_label_value(out, "a\\b\"c\nd"), "a\\\\b\\\"c\\nd");
    memset(longest, '"', sizeof(longest) - 1);
    longest[sizeof(longest) - 1] = '\0';
    metrics_label_value(out, longest);
    assert_true(strlen(out) < METRICS_LABEL_VALUE_MAX);
    assert_int_equal(strlen(out) % 2, 0); /* no escape without what it escapes */
}

static void durations_count_in_every_class_that_they_fit(void **state)
{
    struct metrics *metrics;
    (void)state;
    assert_int_equal(metrics_create(&metrics), STATUS_OK);
    assert_int_equal(metrics_attach_thread(metrics), STATUS_OK);
    duration_observe(METRIC_ARCHIVE_QUERY_LE_5MS, 5000000, 1);
    duration_observe(METRIC_ARCHIVE_QUERY_LE_5MS, 5000001, 2);
    duration_observe(METRIC_ARCHIVE_QUERY_LE_5MS, 31000000000, 1);
    assert_int_equal(metrics_sum(metrics, METRIC_ARCHIVE_QUERY_LE_5MS), 1);
    assert_int_equal(metrics_sum(metrics, METRIC_ARCHIVE_QUERY_LE_10MS), 3);
    assert_int_equal(metrics_sum(metrics, METRIC_ARCHIVE_QUERY_LE_30S), 3);
    assert_int_equal(metrics_sum(metrics, METRIC_ARCHIVE_QUERY_COUNT), 4);
    assert_int_equal(
            metrics_sum(metrics, METRIC_ARCHIVE_QUERY_MICROSECONDS), 5000 + 10000 + 31000000);
    metrics_detach_thread();
    metrics_destroy(&metrics);
}

static void the_process_knows_itself(void **state)
{
    struct process_figures figures;
    (void)state;
    process_figures_read(&figures);
    assert_true(figures.resident_bytes > 100000 && figures.virtual_bytes > figures.resident_bytes);
    assert_true(figures.open_fds >= 3 && figures.open_fds < figures.max_fds);
    assert_true(figures.start_time_seconds > 1.7e9);
    assert_true(figures.threads >= 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(a_zero_is_shown_only_after_another_value),
            cmocka_unit_test(a_page_may_have_other_names_and_leave_families_out),
            cmocka_unit_test(zeros_are_shown_without_a_memory_and_where_they_are_wanted),
            cmocka_unit_test(more_series_than_are_remembered_only_lose_their_zeros),
            cmocka_unit_test(label_values_are_escaped_and_cut),
            cmocka_unit_test(durations_count_in_every_class_that_they_fit),
            cmocka_unit_test(the_process_knows_itself),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
