/* SPDX-License-Identifier: MIT */
#include "base/cpu_set.h"

#include "tests/support/cmocka.h"

static void parses_numbers_ranges_and_lists(void **state)
{
    struct cpu_set set;
    (void)state;
    assert_int_equal(cpu_set_parse(&set, "0,2-4,9"), STATUS_OK);
    assert_int_equal(cpu_set_count(&set), 5);
    assert_true(cpu_set_contains(&set, 0));
    assert_false(cpu_set_contains(&set, 1));
    assert_true(cpu_set_contains(&set, 3));
    assert_true(cpu_set_contains(&set, 9));
    assert_int_equal(cpu_set_next(&set, 5), 9);
    assert_int_equal(cpu_set_next(&set, 10), -1);
}

static void refuses_what_is_no_list(void **state)
{
    static const char *const bad[] = {
            "", "a", "1,", ",1", "1-", "3-2", "1 ", "-1", "1024", "0-1024"};
    struct cpu_set set;
    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_int_equal(cpu_set_parse(&set, bad[i]), STATUS_BAD_ARGUMENT);
    }
}

static void prints_the_shortest_list(void **state)
{
    struct cpu_set set;
    char text[64];
    (void)state;
    assert_int_equal(cpu_set_parse(&set, "9,4,3,2,0"), STATUS_OK);
    cpu_set_format(text, sizeof(text), &set);
    assert_string_equal(text, "0,2-4,9");
}

static void names_the_first_member_that_is_not_allowed(void **state)
{
    struct cpu_set set;
    struct cpu_set allowed;
    int missing = -1;
    (void)state;
    assert_int_equal(cpu_set_parse(&allowed, "0-3"), STATUS_OK);
    assert_int_equal(cpu_set_parse(&set, "1,3"), STATUS_OK);
    assert_true(cpu_set_within(&set, &allowed, &missing));
    assert_int_equal(cpu_set_parse(&set, "1,5,7"), STATUS_OK);
    assert_false(cpu_set_within(&set, &allowed, &missing));
    assert_int_equal(missing, 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(parses_numbers_ranges_and_lists),
            cmocka_unit_test(refuses_what_is_no_list),
            cmocka_unit_test(prints_the_shortest_list),
            cmocka_unit_test(names_the_first_member_that_is_not_allowed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
