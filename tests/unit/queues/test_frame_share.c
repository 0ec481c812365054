/* SPDX-License-Identifier: MIT */
#include "queues/frame.h"
#include "tests/support/cmocka.h"

enum {
    LIMIT = 1000
};

static void count_wake(void *context)
{
    (*(unsigned *)context)++;
}

static struct frame_share *create_share(size_t limit, unsigned *wakes)
{
    struct frame_share *share;
    assert_int_equal(frame_share_create(&share, limit, count_wake, wakes), STATUS_OK);
    return share;
}

static void refuses_more_than_its_limit_but_always_takes_one(void **state)
{
    (void)state;
    unsigned wakes = 0;
    struct frame_share *share = create_share(LIMIT, &wakes);
    assert_true(frame_share_try_charge(share, 5 * LIMIT));
    assert_false(frame_share_try_charge(share, 1));
    frame_share_release(share, 5 * LIMIT);
    assert_true(frame_share_try_charge(share, LIMIT - 1));
    assert_false(frame_share_try_charge(share, 2));
    assert_true(frame_share_try_charge(share, 1));
    frame_share_release(share, LIMIT);
    assert_int_equal(frame_share_used(share), 0);
    frame_share_drop(&share);
}

static void wakes_once_after_a_refusal_when_half_is_free(void **state)
{
    (void)state;
    unsigned wakes = 0;
    struct frame_share *share = create_share(LIMIT, &wakes);
    assert_true(frame_share_try_charge(share, LIMIT));
    frame_share_release(share, LIMIT);
    assert_int_equal(wakes, 0);
    assert_true(frame_share_try_charge(share, LIMIT));
    assert_false(frame_share_try_charge(share, 1));
    frame_share_release(share, LIMIT / 2 - 1);
    assert_int_equal(wakes, 0);
    frame_share_release(share, 1);
    assert_int_equal(wakes, 1);
    frame_share_release(share, LIMIT / 2);
    assert_int_equal(wakes, 1);
    frame_share_drop(&share);
}

static void outlives_its_owner_and_wakes_nobody_then(void **state)
{
    (void)state;
    unsigned wakes = 0;
    struct frame_share *share = create_share(LIMIT, &wakes);
    struct frame_share *later = share;
    assert_true(frame_share_try_charge(share, LIMIT));
    assert_false(frame_share_try_charge(share, 1));
    frame_share_drop(&share);
    assert_null(share);
    frame_share_release(later, LIMIT);
    assert_int_equal(wakes, 0);
}

static struct frame *shared_frame(struct frame_share *share)
{
    assert_true(frame_share_try_charge(share, frame_charge(100)));
    struct frame *frame = frame_try_create(NULL, FRAME_BUDGET_PARTIAL, 100);
    assert_non_null(frame);
    frame_set_share(frame, share);
    return frame;
}

static void a_frame_counts_until_its_parts_are_gone_and_not_while_it_is_kept(void **state)
{
    (void)state;
    unsigned wakes = 0;
    struct frame_share *share = create_share(LIMIT, &wakes);
    struct frame *frame = shared_frame(share);
    struct frame_part *part = frame_add_part(frame);
    struct frame_part *other = frame_add_part(frame);
    frame_ref_carried(frame);
    frame_unref_posted(frame);
    frame_ref(frame); /* an envelope's */
    frame_part_destroy(part);
    frame_part_destroy(other);
    assert_int_equal(frame_share_used(share), frame_charge(100));
    frame_unref_carried(frame);
    assert_int_equal(frame_share_used(share), 0);
    frame_unref(frame);
    assert_int_equal(frame_share_used(share), 0);
    frame_share_drop(&share);
}

static void a_frame_that_is_never_posted_gives_back_its_share(void **state)
{
    (void)state;
    unsigned wakes = 0;
    struct frame_share *share = create_share(LIMIT, &wakes);
    frame_unref(shared_frame(share));
    assert_int_equal(frame_share_used(share), 0);
    /* Nor does one whose creator forgets that it carried it. */
    struct frame *frame = shared_frame(share);
    frame_part_destroy(frame_add_part(frame));
    assert_int_equal(frame_share_used(share), frame_charge(100));
    frame_unref(frame);
    assert_int_equal(frame_share_used(share), 0);
    frame_share_drop(&share);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(refuses_more_than_its_limit_but_always_takes_one),
            cmocka_unit_test(wakes_once_after_a_refusal_when_half_is_free),
            cmocka_unit_test(outlives_its_owner_and_wakes_nobody_then),
            cmocka_unit_test(a_frame_counts_until_its_parts_are_gone_and_not_while_it_is_kept),
            cmocka_unit_test(a_frame_that_is_never_posted_gives_back_its_share),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
