/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "queues/inbox.h"
#include "tests/stress/queues/stress.h"

/* Four pushers, one taker that sleeps when there is nothing. */

enum {
    PUSHERS = 4
};

struct item {
    uint64_t pusher;
    uint64_t number;
    struct inbox_link link;
    uint64_t check;
};

struct pusher {
    struct inbox *inbox;
    uint64_t id;
    uint64_t items;
    pthread_t thread;
};

static void *push_all(void *argument)
{
    struct pusher *pusher = argument;
    uint64_t seed = pusher->id + 1;
    for (uint64_t number = 0; number < pusher->items; number++) {
        struct item *item = malloc(sizeof(*item));
        CHECK(item != NULL);
        item->pusher = pusher->id;
        item->number = number;
        item->check = ~(number * PUSHERS + pusher->id);
        inbox_push(pusher->inbox, &item->link);
        if (one_in(&seed, 4)) {
            inbox_wake(pusher->inbox);
        }
        if (one_in(&seed, 256)) {
            sched_yield();
        }
    }
    inbox_wake(pusher->inbox);
    return NULL;
}

static struct item *pop_or_sleep(struct inbox *inbox)
{
    struct inbox_link *link;
    while ((link = inbox_try_pop(inbox)) == NULL) {
        uint32_t ticket = parking_prepare(inbox_parking(inbox));
        if (!inbox_is_empty(inbox)) {
            parking_cancel(inbox_parking(inbox), ticket);
            sched_yield();
        } else {
            CHECK(parking_wait(inbox_parking(inbox), ticket, LOST_WAKE_NS));
        }
    }
    return (struct item *)((char *)link - offsetof(struct item, link));
}

static void every_item_arrives_once_and_in_its_pushers_order(void **state)
{
    (void)state;
    struct inbox *inbox = NULL;
    assert_int_equal(inbox_create(&inbox), STATUS_OK);
    struct pusher pushers[PUSHERS];
    uint64_t items = rounds(200000);
    for (uint64_t i = 0; i < PUSHERS; i++) {
        pushers[i] = (struct pusher){.inbox = inbox, .id = i, .items = items};
        start_thread(&pushers[i].thread, push_all, &pushers[i]);
    }
    uint64_t expected[PUSHERS] = {0};
    for (uint64_t popped = 0; popped < items * PUSHERS; popped++) {
        struct item *item = pop_or_sleep(inbox);
        CHECK(item->pusher < PUSHERS);
        CHECK(item->number == expected[item->pusher]++);
        CHECK(item->check == ~(item->number * PUSHERS + item->pusher));
        free(item);
    }
    for (int i = 0; i < PUSHERS; i++) {
        join_thread(pushers[i].thread);
    }
    assert_true(inbox_is_empty(inbox));
    assert_int_equal(inbox_depth_estimate(inbox), 0);
    assert_true(inbox_high_water(inbox) <= items * PUSHERS);
    inbox_destroy(&inbox);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(every_item_arrives_once_and_in_its_pushers_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
