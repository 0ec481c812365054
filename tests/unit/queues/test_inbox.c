/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "queues/inbox.h"

static void keeps_the_order_of_one_pusher_over_batches(void **state)
{
    (void)state;
    struct inbox_link links[5];
    struct inbox *inbox = NULL;
    assert_int_equal(inbox_create(&inbox), STATUS_OK);
    assert_null(inbox_try_pop(inbox));
    inbox_push(inbox, &links[0]);
    inbox_push(inbox, &links[1]);
    inbox_push(inbox, &links[2]);
    assert_ptr_equal(inbox_try_pop(inbox), &links[0]);
    inbox_push(inbox, &links[3]);
    inbox_push(inbox, &links[4]);
    for (int i = 1; i < 5; i++) {
        assert_ptr_equal(inbox_try_pop(inbox), &links[i]);
    }
    assert_null(inbox_try_pop(inbox));
    inbox_destroy(&inbox);
    assert_null(inbox);
}

static void is_not_empty_while_the_fetched_batch_is_unpopped(void **state)
{
    (void)state;
    struct inbox_link links[2];
    struct inbox *inbox = NULL;
    assert_int_equal(inbox_create(&inbox), STATUS_OK);
    assert_true(inbox_is_empty(inbox));
    inbox_push(inbox, &links[0]);
    inbox_push(inbox, &links[1]);
    assert_false(inbox_is_empty(inbox));
    assert_ptr_equal(inbox_try_pop(inbox), &links[0]);
    assert_false(inbox_is_empty(inbox));
    assert_int_equal(inbox_depth_estimate(inbox), 1);
    assert_ptr_equal(inbox_try_pop(inbox), &links[1]);
    assert_true(inbox_is_empty(inbox));
    assert_int_equal(inbox_depth_estimate(inbox), 0);
    assert_int_equal(inbox_high_water(inbox), 2);
    inbox_destroy(&inbox);
}

static void peeks_at_what_it_pops_next(void **state)
{
    (void)state;
    struct inbox_link links[3];
    struct inbox *inbox = NULL;
    assert_int_equal(inbox_create(&inbox), STATUS_OK);
    assert_null(inbox_peek(inbox));
    for (size_t i = 0; i < 3; i++) {
        inbox_push(inbox, &links[i]);
    }
    assert_ptr_equal(inbox_try_pop(inbox), &links[0]);
    assert_ptr_equal(inbox_peek(inbox), &links[1]);
    assert_ptr_equal(inbox_try_pop(inbox), &links[1]);
    assert_ptr_equal(inbox_peek(inbox), &links[2]);
    assert_ptr_equal(inbox_peek(inbox), &links[2]);
    assert_ptr_equal(inbox_try_pop(inbox), &links[2]);
    assert_null(inbox_peek(inbox));
    inbox_destroy(&inbox);
}

static void takes_an_item_again_right_after_its_pop(void **state)
{
    (void)state;
    struct inbox_link link;
    struct inbox *inbox = NULL;
    assert_int_equal(inbox_create(&inbox), STATUS_OK);
    for (int i = 0; i < 3; i++) {
        inbox_push(inbox, &link);
        assert_ptr_equal(inbox_try_pop(inbox), &link);
    }
    assert_null(inbox_try_pop(inbox));
    inbox_destroy(&inbox);
}

static void wakes_its_taker(void **state)
{
    (void)state;
    struct inbox *inbox = NULL;
    assert_int_equal(inbox_create(&inbox), STATUS_OK);
    uint32_t ticket = parking_prepare(inbox_parking(inbox));
    inbox_wake(inbox);
    assert_true(parking_wait(inbox_parking(inbox), ticket, UINT64_MAX));
    inbox_destroy(&inbox);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(keeps_the_order_of_one_pusher_over_batches),
            cmocka_unit_test(is_not_empty_while_the_fetched_batch_is_unpopped),
            cmocka_unit_test(peeks_at_what_it_pops_next),
            cmocka_unit_test(takes_an_item_again_right_after_its_pop),
            cmocka_unit_test(wakes_its_taker),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
