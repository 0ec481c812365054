/* SPDX-License-Identifier: MIT */
#include "tools/common/histogram.h"

#include <stdlib.h>

#include "tests/support/cmocka.h"

enum {
    VALUES = 20000
};

static struct histogram histogram;
static struct histogram other;

static int set_up(void **state)
{
    (void)state;
    histogram = (struct histogram){0};
    other = (struct histogram){0};
    return 0;
}

static int compare(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a;
    uint64_t y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static void an_empty_one_has_no_percentiles(void **state)
{
    (void)state;
    assert_int_equal(histogram_at(&histogram, 0.5), 0);
    assert_int_equal(histogram_at(&histogram, 1.0), 0);
}

static void small_values_are_exact(void **state)
{
    (void)state;
    for (uint64_t value = 0; value < 200; value++) {
        histogram_add(&histogram, value);
    }
    assert_int_equal(histogram_at(&histogram, 0.5), 99);
    assert_int_equal(histogram_at(&histogram, 0.99), 197);
    assert_int_equal(histogram_at(&histogram, 1.0), 199);
    assert_int_equal(histogram.min, 0);
    assert_int_equal(histogram.max, 199);
    assert_int_equal(histogram.count, 200);
}

/* Beside the sorted values themselves, over nine orders of magnitude. */
static void percentiles_are_those_of_the_sorted_values_within_a_bucket(void **state)
{
    static const double shares[] = {0.001, 0.1, 0.5, 0.9, 0.99, 0.999};
    uint64_t *values = calloc(VALUES, sizeof(*values));
    uint64_t random = 88172645463325252ULL;
    (void)state;
    assert_non_null(values);
    for (size_t i = 0; i < VALUES; i++) {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        values[i] = random >> (random % 61);
        histogram_add(&histogram, values[i]);
    }
    qsort(values, VALUES, sizeof(*values), compare);
    for (size_t i = 0; i < sizeof(shares) / sizeof(shares[0]); i++) {
        size_t rank = (size_t)(shares[i] * VALUES);
        uint64_t exact = values[rank - 1];
        uint64_t found = histogram_at(&histogram, shares[i]);
        assert_true(found >= exact);
        assert_true(found - exact <= exact / 128);
    }
    assert_int_equal(histogram_at(&histogram, 1.0), values[VALUES - 1]);
    free(values);
}

static void the_largest_value_has_a_bucket(void **state)
{
    (void)state;
    histogram_add(&histogram, UINT64_MAX);
    histogram_add(&histogram, 1);
    assert_int_equal(histogram_at(&histogram, 0.5), 1);
    assert_int_equal(histogram_at(&histogram, 1.0), UINT64_MAX);
}

static void no_percentile_is_above_the_largest_value(void **state)
{
    (void)state;
    histogram_add(&histogram, 1000001);
    assert_int_equal(histogram_at(&histogram, 0.5), 1000001);
}

static void merging_is_as_if_all_had_been_added_to_one(void **state)
{
    (void)state;
    histogram_add(&histogram, 500);
    histogram_add(&other, 7);
    histogram_add(&other, 90000);
    histogram_merge(&histogram, &other);
    assert_int_equal(histogram.count, 3);
    assert_int_equal(histogram.min, 7);
    assert_int_equal(histogram.max, 90000);
    assert_int_equal(histogram_at(&histogram, 0.3), 7);
    assert_int_equal(histogram_at(&histogram, 1.0), 90000);
    histogram_merge(&histogram, &(struct histogram){0});
    assert_int_equal(histogram.min, 7);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test_setup(an_empty_one_has_no_percentiles, set_up),
            cmocka_unit_test_setup(small_values_are_exact, set_up),
            cmocka_unit_test_setup(
                    percentiles_are_those_of_the_sorted_values_within_a_bucket, set_up),
            cmocka_unit_test_setup(the_largest_value_has_a_bucket, set_up),
            cmocka_unit_test_setup(no_percentile_is_above_the_largest_value, set_up),
            cmocka_unit_test_setup(merging_is_as_if_all_had_been_added_to_one, set_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
