/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "queues/envelope.h"
#include "queues/spmc_ring.h"

static void refuses_a_capacity_that_is_no_power_of_two(void **state)
{
    (void)state;
    struct spmc_ring *ring = NULL;
    assert_int_equal(spmc_ring_create(&ring, 0, NULL), STATUS_BAD_ARGUMENT);
    assert_int_equal(spmc_ring_create(&ring, 1, NULL), STATUS_BAD_ARGUMENT);
    assert_int_equal(spmc_ring_create(&ring, 3, NULL), STATUS_BAD_ARGUMENT);
    assert_int_equal(spmc_ring_create(&ring, (size_t)1 << 40, NULL), STATUS_BAD_ARGUMENT);
    assert_null(ring);
}

static void refuses_a_push_when_full_and_keeps_order(void **state)
{
    (void)state;
    struct envelope envelopes[4];
    struct spmc_ring *ring = NULL;
    assert_int_equal(spmc_ring_create(&ring, 4, NULL), STATUS_OK);
    assert_null(spmc_ring_try_pop(ring));
    assert_true(spmc_ring_try_push(ring, &envelopes[0]));
    assert_true(spmc_ring_try_push(ring, &envelopes[1]));
    assert_true(spmc_ring_try_push(ring, &envelopes[2]));
    assert_false(spmc_ring_try_push(ring, &envelopes[3]));
    assert_int_equal(spmc_ring_depth_estimate(ring), 3);
    assert_ptr_equal(spmc_ring_try_pop(ring), &envelopes[0]);
    assert_true(spmc_ring_try_push(ring, &envelopes[3]));
    assert_ptr_equal(spmc_ring_try_pop(ring), &envelopes[1]);
    assert_ptr_equal(spmc_ring_try_pop(ring), &envelopes[2]);
    assert_ptr_equal(spmc_ring_try_pop(ring), &envelopes[3]);
    assert_null(spmc_ring_try_pop(ring));
    spmc_ring_destroy(&ring);
    assert_null(ring);
}

static void remembers_the_deepest_it_was(void **state)
{
    (void)state;
    struct envelope envelope;
    struct spmc_ring *ring = NULL;
    assert_int_equal(spmc_ring_create(&ring, 8, NULL), STATUS_OK);
    assert_int_equal(spmc_ring_capacity(ring), 8);
    assert_int_equal(spmc_ring_high_water(ring), 0);
    for (int round = 0; round < 20; round++) {
        for (int i = 0; i < 5; i++) {
            assert_true(spmc_ring_try_push(ring, &envelope));
        }
        for (int i = 0; i < 5; i++) {
            assert_ptr_equal(spmc_ring_try_pop(ring), &envelope);
        }
    }
    assert_int_equal(spmc_ring_high_water(ring), 5);
    spmc_ring_destroy(&ring);
}

static void wakes_whoever_sleeps_on_its_parking(void **state)
{
    (void)state;
    struct parking parking;
    parking_init(&parking);
    struct spmc_ring *ring = NULL;
    assert_int_equal(spmc_ring_create(&ring, 2, &parking), STATUS_OK);
    uint32_t ticket = parking_prepare(&parking);
    spmc_ring_wake(ring);
    assert_true(parking_wait(&parking, ticket, UINT64_MAX));
    spmc_ring_destroy(&ring);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(refuses_a_capacity_that_is_no_power_of_two),
            cmocka_unit_test(refuses_a_push_when_full_and_keeps_order),
            cmocka_unit_test(remembers_the_deepest_it_was),
            cmocka_unit_test(wakes_whoever_sleeps_on_its_parking),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
