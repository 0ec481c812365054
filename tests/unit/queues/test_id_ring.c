/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "queues/id_ring.h"

static struct id_record record_of(int64_t number)
{
    struct id_record record = {.timestamp_ns = number};
    memset(record.hash, (int)number, sizeof(record.hash));
    return record;
}

static void push(struct id_ring *ring, int64_t number)
{
    struct id_record record = record_of(number);
    assert_true(id_ring_try_push(ring, &record));
}

static void pop(struct id_ring *ring, int64_t number)
{
    struct id_record expected = record_of(number);
    struct id_record record;
    assert_true(id_ring_try_pop(ring, &record));
    assert_int_equal(record.timestamp_ns, number);
    assert_memory_equal(record.hash, expected.hash, sizeof(record.hash));
}

static void refuses_a_capacity_that_is_no_power_of_two(void **state)
{
    (void)state;
    struct id_ring *ring = NULL;
    assert_int_equal(id_ring_create(&ring, 1, NULL), STATUS_BAD_ARGUMENT);
    assert_int_equal(id_ring_create(&ring, 6, NULL), STATUS_BAD_ARGUMENT);
    assert_int_equal(id_ring_create(&ring, (size_t)1 << 63, NULL), STATUS_BAD_ARGUMENT);
    assert_null(ring);
}

static void refuses_a_push_when_all_slots_are_taken_and_keeps_order(void **state)
{
    (void)state;
    struct id_ring *ring = NULL;
    assert_int_equal(id_ring_create(&ring, 4, NULL), STATUS_OK);
    struct id_record record = record_of(99);
    assert_false(id_ring_try_pop(ring, &record));
    for (int i = 1; i <= 4; i++) {
        push(ring, i);
    }
    assert_false(id_ring_try_push(ring, &record));
    assert_int_equal(id_ring_depth_estimate(ring), 4);
    pop(ring, 1);
    push(ring, 5);
    assert_false(id_ring_try_push(ring, &record));
    for (int i = 2; i <= 5; i++) {
        pop(ring, i);
    }
    assert_false(id_ring_try_pop(ring, &record));
    id_ring_destroy(&ring);
    assert_null(ring);
}

static void remembers_the_deepest_it_was(void **state)
{
    (void)state;
    struct id_ring *ring = NULL;
    assert_int_equal(id_ring_create(&ring, 8, NULL), STATUS_OK);
    assert_int_equal(id_ring_capacity(ring), 8);
    for (int round = 0; round < 20; round++) {
        for (int i = 0; i < 3; i++) {
            push(ring, i);
        }
        for (int i = 0; i < 3; i++) {
            pop(ring, i);
        }
    }
    assert_int_equal(id_ring_high_water(ring), 3);
    id_ring_destroy(&ring);
}

static void wakes_whoever_sleeps_on_its_parking(void **state)
{
    (void)state;
    struct parking parking;
    parking_init(&parking);
    struct id_ring *ring = NULL;
    assert_int_equal(id_ring_create(&ring, 2, &parking), STATUS_OK);
    uint32_t ticket = parking_prepare(&parking);
    id_ring_wake(ring);
    assert_true(parking_wait(&parking, ticket, UINT64_MAX));
    id_ring_destroy(&ring);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(refuses_a_capacity_that_is_no_power_of_two),
            cmocka_unit_test(refuses_a_push_when_all_slots_are_taken_and_keeps_order),
            cmocka_unit_test(remembers_the_deepest_it_was),
            cmocka_unit_test(wakes_whoever_sleeps_on_its_parking),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
