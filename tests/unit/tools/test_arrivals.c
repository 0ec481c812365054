/* SPDX-License-Identifier: MIT */
#include "tools/common/arrivals.h"

#include "tests/support/cmocka.h"

static struct arrivals arrivals;

static int tear_down(void **state)
{
    (void)state;
    arrivals_fini(&arrivals);
    return 0;
}

static void what_the_slowest_lacks_is_in_flight(void **state)
{
    (void)state;
    assert_int_equal(arrivals_init(&arrivals, 3), STATUS_OK);
    assert_int_equal(arrivals_in_flight(&arrivals, 5), 5);
    for (int i = 0; i < 5; i++) {
        arrivals_add(&arrivals, 0);
        arrivals_add(&arrivals, 2);
    }
    assert_int_equal(arrivals_in_flight(&arrivals, 5), 5);
    arrivals_add(&arrivals, 1);
    assert_int_equal(arrivals_in_flight(&arrivals, 5), 4);
    for (int i = 0; i < 4; i++) {
        arrivals_add(&arrivals, 1);
    }
    assert_int_equal(arrivals_in_flight(&arrivals, 5), 0);
}

/* Beside a plain search for the least, whatever the order. */
static void any_order_gives_the_least_of_all(void **state)
{
    uint64_t counts[7] = {0};
    uint32_t random = 1;
    (void)state;
    assert_int_equal(arrivals_init(&arrivals, 7), STATUS_OK);
    for (int i = 0; i < 5000; i++) {
        random = random * 1664525U + 1013904223U;
        size_t receiver = (random >> 16) % 7;
        counts[receiver]++;
        arrivals_add(&arrivals, receiver);
        uint64_t least = counts[0];
        for (size_t r = 1; r < 7; r++) {
            least = counts[r] < least ? counts[r] : least;
        }
        assert_int_equal(arrivals_in_flight(&arrivals, 10000), 10000 - least);
    }
}

static void what_is_written_off_is_not_waited_for(void **state)
{
    (void)state;
    assert_int_equal(arrivals_init(&arrivals, 2), STATUS_OK);
    arrivals_add(&arrivals, 0);
    arrivals_write_off(&arrivals, 10);
    assert_int_equal(arrivals_in_flight(&arrivals, 10), 0);
    assert_int_equal(arrivals_in_flight(&arrivals, 12), 2);
    arrivals_add(&arrivals, 0);
    assert_int_equal(arrivals_in_flight(&arrivals, 12), 2);
    arrivals_add(&arrivals, 1);
    assert_int_equal(arrivals_in_flight(&arrivals, 12), 1);
}

static void without_receivers_nothing_is_in_flight(void **state)
{
    (void)state;
    assert_int_equal(arrivals_init(&arrivals, 0), STATUS_OK);
    assert_int_equal(arrivals_in_flight(&arrivals, 12), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test_teardown(what_the_slowest_lacks_is_in_flight, tear_down),
            cmocka_unit_test_teardown(any_order_gives_the_least_of_all, tear_down),
            cmocka_unit_test_teardown(what_is_written_off_is_not_waited_for, tear_down),
            cmocka_unit_test_teardown(without_receivers_nothing_is_in_flight, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
