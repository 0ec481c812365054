/* SPDX-License-Identifier: MIT */
#include "base/metrics.h"

#include <pthread.h>

#include "tests/support/cmocka.h"

enum {
    THREADS = 4,
    ADDITIONS = 10000
};

static void *count(void *context)
{
    assert_int_equal(metrics_attach_thread(context), STATUS_OK);
    for (int i = 0; i < ADDITIONS; i++) {
        metrics_add(METRIC_DECODES, 3);
    }
    metrics_detach_thread();
    return NULL;
}

static void sums_the_rows_of_all_threads_also_of_those_that_ended(void **state)
{
    struct metrics *metrics = NULL;
    pthread_t threads[THREADS];
    (void)state;
    assert_int_equal(metrics_create(&metrics), STATUS_OK);
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, count, metrics), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
    assert_int_equal(metrics_sum(metrics, METRIC_DECODES), 3 * THREADS * ADDITIONS);
    assert_int_equal(metrics_sum(metrics, METRIC_COPIES), 0);
    metrics_destroy(&metrics);
    assert_null(metrics);
}

static void keeps_two_nodes_and_threads_without_a_row_apart(void **state)
{
    struct metrics *one = NULL;
    struct metrics *two = NULL;
    uint64_t before = metrics_sum(NULL, METRIC_PARKS);
    (void)state;
    assert_int_equal(metrics_create(&one), STATUS_OK);
    assert_int_equal(metrics_create(&two), STATUS_OK);
    assert_int_equal(metrics_attach_thread(one), STATUS_OK);
    metrics_add(METRIC_PARKS, 5);
    struct metrics_row *row = metrics_suspend_thread();
    metrics_add(METRIC_PARKS, 7);
    metrics_resume_thread(row);
    metrics_add(METRIC_PARKS, 1);
    metrics_detach_thread();
    assert_int_equal(metrics_sum(one, METRIC_PARKS), 6);
    assert_int_equal(metrics_sum(two, METRIC_PARKS), 0);
    assert_int_equal(metrics_sum(NULL, METRIC_PARKS) - before, 7);
    metrics_destroy(&one);
    metrics_destroy(&two);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(sums_the_rows_of_all_threads_also_of_those_that_ended),
            cmocka_unit_test(keeps_two_nodes_and_threads_without_a_row_apart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
