/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "queues/frame.h"
#include "tests/stress/queues/stress.h"

/*
 * Frames of three parts, each part to another thread: whichever drops the last reference frees the
 * bytes that the others have just read.
 */

enum {
    TAKERS = 3,
    FRAME_BYTES = 64,
    LIMIT = 64 * 1024,
    SHARE = 4 * 1024,
    SHARE_FRAMES = 1000
};

struct taker {
    struct inbox *inbox;
    uint64_t parts;
    pthread_t thread;
};

static void check_part(const struct frame_part *part, uint64_t number)
{
    uint8_t expected[FRAME_BYTES];
    memset(expected, (int)(number & 0xff), sizeof(expected));
    CHECK(part->received_ns == (int64_t)number);
    CHECK(part->message.length == sizeof(expected));
    CHECK(memcmp(part->message.bytes, expected, sizeof(expected)) == 0);
}

static void *take_parts(void *argument)
{
    struct taker *taker = argument;
    for (uint64_t number = 0; number < taker->parts;) {
        struct frame_part *part = frame_part_of(inbox_try_pop(taker->inbox));
        if (part == NULL) {
            sched_yield();
            continue;
        }
        check_part(part, number++);
        frame_part_destroy(part);
    }
    return NULL;
}

static struct frame *make_frame(
        struct frame_budget *budget, struct frame_share *share, uint64_t number)
{
    struct frame *frame;
    while (share != NULL && !frame_share_try_charge(share, frame_charge(FRAME_BYTES))) {
        sched_yield();
    }
    while ((frame = frame_try_create(budget, FRAME_BUDGET_COMPLETE, FRAME_BYTES)) == NULL) {
        sched_yield();
    }
    if (share != NULL) {
        frame_set_share(frame, share);
    }
    memset(frame_bytes(frame), (int)(number & 0xff), FRAME_BYTES);
    return frame;
}

static void send_to_all(struct taker *takers, struct frame *frame, uint64_t number)
{
    for (uint64_t i = 0; i < TAKERS; i++) {
        struct frame_part *part = frame_add_part(frame);
        CHECK(part != NULL);
        part->message = span_of(frame_bytes(frame), FRAME_BYTES);
        part->received_ns = (int64_t)number;
        /* The part that lives inside the frame goes to each of them in turn. */
        inbox_push(takers[(i + number) % TAKERS].inbox, &part->link);
    }
    frame_unref_posted(frame);
}

static void count_wake(void *context)
{
    atomic_fetch_add_explicit((atomic_uint *)context, 1, memory_order_relaxed);
}

/* Every other frame is of a peer that has a share, and comes again with a new one now and then. */
static void the_last_of_several_threads_frees_the_frame(void **state)
{
    (void)state;
    static atomic_uint wakes;
    struct frame_share *share = NULL;
    struct frame_budget *budget = NULL;
    assert_int_equal(frame_budget_create(&budget, LIMIT, 0), STATUS_OK);
    struct taker takers[TAKERS];
    uint64_t frames = rounds(200000);
    for (int i = 0; i < TAKERS; i++) {
        takers[i].parts = frames;
        assert_int_equal(inbox_create(&takers[i].inbox), STATUS_OK);
        start_thread(&takers[i].thread, take_parts, &takers[i]);
    }
    for (uint64_t number = 0; number < frames; number++) {
        if (number % SHARE_FRAMES == 0) {
            frame_share_drop(&share);
            CHECK(frame_share_create(&share, SHARE, count_wake, &wakes) == STATUS_OK);
        }
        send_to_all(takers, make_frame(budget, number % 2 == 0 ? share : NULL, number), number);
    }
    frame_share_drop(&share);
    for (int i = 0; i < TAKERS; i++) {
        join_thread(takers[i].thread);
        inbox_destroy(&takers[i].inbox);
    }
    assert_int_equal(frame_budget_used(budget), 0);
    assert_true(frame_budget_peak(budget) <= LIMIT);
    frame_budget_destroy(&budget);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(the_last_of_several_threads_frees_the_frame),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
