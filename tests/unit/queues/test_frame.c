/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/metrics.h"
#include "queues/frame.h"
#include "queues/frame_heap.h"

static void charges_its_whole_size_and_gives_it_back_with_the_last_reference(void **state)
{
    (void)state;
    struct frame_budget *budget = NULL;
    assert_int_equal(frame_budget_create(&budget, 4096, 0), STATUS_OK);
    struct frame *frame = frame_try_create(budget, FRAME_BUDGET_COMPLETE, 1000);
    assert_non_null(frame);
    assert_int_equal(frame_length(frame), 1000);
    assert_int_equal(frame_budget_used(budget), frame_charge(1000));
    assert_true(frame_charge(1000) > 1000);
    frame_ref(frame);
    frame_unref(frame);
    assert_int_equal(frame_budget_used(budget), frame_charge(1000));
    frame_unref(frame);
    assert_int_equal(frame_budget_used(budget), 0);
    frame_budget_destroy(&budget);
}

static void is_refused_without_credit(void **state)
{
    (void)state;
    struct frame_budget *budget = NULL;
    assert_int_equal(frame_budget_create(&budget, 4096, 0), STATUS_OK);
    assert_null(frame_try_create(budget, FRAME_BUDGET_COMPLETE, 4096));
    assert_int_equal(frame_budget_used(budget), 0);
    frame_budget_destroy(&budget);
}

static void is_refused_when_its_size_does_not_fit_an_address_space(void **state)
{
    (void)state;
    assert_null(frame_try_create(NULL, FRAME_BUDGET_COMPLETE, SIZE_MAX));
    assert_null(frame_try_create(NULL, FRAME_BUDGET_COMPLETE, (size_t)1 << 63));
}

static void gives_its_charge_back_early_and_only_once(void **state)
{
    (void)state;
    struct frame_budget *budget = NULL;
    assert_int_equal(frame_budget_create(&budget, 4096, 0), STATUS_OK);
    struct frame *frame = frame_try_create(budget, FRAME_BUDGET_COMPLETE, 10);
    assert_non_null(frame);
    frame_uncharge(frame);
    frame_uncharge(frame);
    assert_int_equal(frame_budget_used(budget), 0);
    frame_unref(frame);
    assert_int_equal(frame_budget_used(budget), 0);
    frame_budget_destroy(&budget);
}

static void aligns_its_bytes(void **state)
{
    (void)state;
    struct frame *frame = frame_try_create(NULL, FRAME_BUDGET_COMPLETE, 1);
    assert_non_null(frame);
    assert_int_equal((uintptr_t)frame_bytes(frame) % 16, 0);
    frame_unref(frame);
}

static void large_frames_live_in_the_frame_heap_and_larger_ones_beside_it(void **state)
{
    (void)state;
    static const size_t lengths[] = {100, 50000, 150000, 10000000};
    for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
        struct frame *frame = frame_try_create(NULL, FRAME_BUDGET_COMPLETE, lengths[i]);
        assert_non_null(frame);
        frame_bytes(frame)[lengths[i] - 1] = 1;
        size_t used = frame_heap_used_bytes(frame_heap_of_process());
        if (lengths[i] == 50000 || lengths[i] == 150000) {
            assert_in_range(used, lengths[i], lengths[i] + 1024);
        } else {
            assert_int_equal(used, 0);
        }
        frame_unref(frame);
    }
    assert_int_equal(frame_heap_used_bytes(frame_heap_of_process()), 0);
}

static void the_first_part_costs_no_allocation(void **state)
{
    (void)state;
    struct frame *frame = frame_try_create(NULL, FRAME_BUDGET_COMPLETE, 1);
    assert_non_null(frame);
    uint64_t before = metrics_sum(NULL, METRIC_ALLOCATIONS);
    struct frame_part *first = frame_add_part(frame);
    assert_int_equal(metrics_sum(NULL, METRIC_ALLOCATIONS), before);
    struct frame_part *second = frame_add_part(frame);
    assert_int_equal(metrics_sum(NULL, METRIC_ALLOCATIONS), before + 1);
    assert_ptr_equal(first->frame, frame);
    assert_ptr_equal(second->frame, frame);
    frame_part_destroy(second);
    frame_part_destroy(first);
    frame_unref(frame);
}

static void parts_keep_the_frame_whatever_order_they_go_in(void **state)
{
    (void)state;
    struct frame_budget *budget = NULL;
    assert_int_equal(frame_budget_create(&budget, 4096, 0), STATUS_OK);
    struct frame *frame = frame_try_create(budget, FRAME_BUDGET_COMPLETE, 4);
    assert_non_null(frame);
    frame_bytes(frame)[3] = 77;
    struct frame_part *first = frame_add_part(frame);
    struct frame_part *second = frame_add_part(frame);
    assert_non_null(first);
    assert_non_null(second);
    frame_unref(frame);
    frame_part_destroy(first);
    assert_int_equal(frame_bytes(second->frame)[3], 77);
    assert_true(frame_budget_used(budget) > 0);
    frame_part_destroy(second);
    assert_int_equal(frame_budget_used(budget), 0);
    frame_budget_destroy(&budget);
}

static void finds_a_part_by_its_link(void **state)
{
    (void)state;
    struct frame_part part;
    assert_ptr_equal(frame_part_of(&part.link), &part);
    assert_null(frame_part_of(NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(charges_its_whole_size_and_gives_it_back_with_the_last_reference),
            cmocka_unit_test(is_refused_without_credit),
            cmocka_unit_test(is_refused_when_its_size_does_not_fit_an_address_space),
            cmocka_unit_test(gives_its_charge_back_early_and_only_once),
            cmocka_unit_test(aligns_its_bytes),
            cmocka_unit_test(large_frames_live_in_the_frame_heap_and_larger_ones_beside_it),
            cmocka_unit_test(the_first_part_costs_no_allocation),
            cmocka_unit_test(parts_keep_the_frame_whatever_order_they_go_in),
            cmocka_unit_test(finds_a_part_by_its_link),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
