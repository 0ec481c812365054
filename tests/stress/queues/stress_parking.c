/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "queues/parking.h"
#include "tests/stress/queues/stress.h"

/* A wake that is lost leaves a thread asleep: its wait then times out and the test fails. */

enum {
    SLEEPERS = 4
};

struct ping_pong {
    struct parking parkings[2];
    atomic_ullong turn; /* even: thread 0 is to move */
    uint64_t turns;
};

struct player {
    struct ping_pong *game;
    uint64_t id;
    uint64_t seed;
};

static void wait_for_turn(struct player *player)
{
    struct ping_pong *game = player->game;
    struct parking *own = &game->parkings[player->id];
    for (;;) {
        uint32_t ticket = parking_prepare(own);
        unsigned long long turn = atomic_load_explicit(&game->turn, memory_order_acquire);
        if (turn % 2 == player->id) {
            parking_cancel(own, ticket);
            return;
        }
        if (one_in(&player->seed, 4)) {
            parking_cancel(own, ticket);
        } else if (one_in(&player->seed, 16)) {
            parking_wait(own, ticket, random_next(&player->seed) % 2000);
        } else {
            CHECK(parking_wait(own, ticket, LOST_WAKE_NS));
        }
    }
}

static void *play(void *argument)
{
    struct player *player = argument;
    struct ping_pong *game = player->game;
    for (uint64_t i = 0; i < game->turns; i++) {
        wait_for_turn(player);
        /* A store, not a read-modify-write: that would be a full barrier and hide a missing one. */
        atomic_store_explicit(&game->turn, 2 * i + player->id + 1, memory_order_release);
        parking_wake(&game->parkings[1 - player->id]);
    }
    return NULL;
}

static void ping_pong_loses_no_wake(void **state)
{
    (void)state;
    struct ping_pong game = {.turns = rounds(200000)};
    parking_init(&game.parkings[0]);
    parking_init(&game.parkings[1]);
    struct player players[2] = {{&game, 0, 11}, {&game, 1, 12}};
    pthread_t other;
    start_thread(&other, play, &players[1]);
    play(&players[0]);
    join_thread(other);
    assert_int_equal(game.turn, 2 * game.turns);
}

struct crowd {
    struct parking parking;
    atomic_ullong round;
    atomic_ullong arrived;
    uint64_t rounds;
};

struct member {
    struct crowd *crowd;
    uint64_t seed;
    pthread_t thread;
};

static void wait_for_round(struct member *member, uint64_t round)
{
    struct crowd *crowd = member->crowd;
    for (;;) {
        uint32_t ticket = parking_prepare(&crowd->parking);
        if (atomic_load_explicit(&crowd->round, memory_order_acquire) >= round) {
            parking_cancel(&crowd->parking, ticket);
            return;
        }
        if (one_in(&member->seed, 4)) {
            parking_cancel(&crowd->parking, ticket);
        } else if (one_in(&member->seed, 4)) {
            parking_wait(&crowd->parking, ticket, random_next(&member->seed) % 2000);
        } else {
            CHECK(parking_wait(&crowd->parking, ticket, LOST_WAKE_NS));
        }
    }
}

static void *attend(void *argument)
{
    struct member *member = argument;
    for (uint64_t round = 1; round <= member->crowd->rounds; round++) {
        wait_for_round(member, round);
        atomic_fetch_add_explicit(&member->crowd->arrived, 1, memory_order_release);
    }
    return NULL;
}

static void one_wake_reaches_all_sleepers(void **state)
{
    (void)state;
    struct crowd crowd = {.rounds = rounds(20000)};
    parking_init(&crowd.parking);
    struct member members[SLEEPERS];
    for (uint64_t i = 0; i < SLEEPERS; i++) {
        members[i] = (struct member){.crowd = &crowd, .seed = i + 1};
        start_thread(&members[i].thread, attend, &members[i]);
    }
    for (uint64_t round = 1; round <= crowd.rounds; round++) {
        atomic_store_explicit(&crowd.round, round, memory_order_release);
        parking_wake(&crowd.parking);
        while (atomic_load_explicit(&crowd.arrived, memory_order_acquire) < round * SLEEPERS) {
            sched_yield();
        }
    }
    for (int i = 0; i < SLEEPERS; i++) {
        join_thread(members[i].thread);
    }
}

struct handover {
    struct parking parking;
    atomic_ullong ready; /* the round whose sleeper has prepared */
    uint64_t cargo;      /* ordered by the parking alone on its way to the sleeper */
    uint64_t rounds;
};

static void *hand_over(void *argument)
{
    struct handover *handover = argument;
    for (uint64_t round = 1; round <= handover->rounds; round++) {
        while (atomic_load_explicit(&handover->ready, memory_order_acquire) < round) {
            sched_yield();
        }
        handover->cargo = round;
        parking_wake(&handover->parking);
    }
    return NULL;
}

static void what_was_written_before_the_wake_is_seen_after_the_wait(void **state)
{
    (void)state;
    /* TSan misses this race on a variable of the main thread's stack. */
    static struct handover handover;
    handover.rounds = rounds(50000);
    parking_init(&handover.parking);
    pthread_t waker;
    start_thread(&waker, hand_over, &handover);
    for (uint64_t round = 1; round <= handover.rounds; round++) {
        uint32_t ticket = parking_prepare(&handover.parking);
        atomic_store_explicit(&handover.ready, round, memory_order_release);
        CHECK(parking_wait(&handover.parking, ticket, LOST_WAKE_NS));
        CHECK(handover.cargo == round);
    }
    join_thread(waker);
}

/* The new epoch in its ticket alone tells this thread of the wake. */
static void prepare_until_woken(struct handover *handover, uint64_t round)
{
    uint32_t first = parking_prepare(&handover->parking);
    atomic_store_explicit(&handover->ready, round, memory_order_release);
    uint32_t ticket = first;
    while (ticket == first) {
        ticket = parking_prepare(&handover->parking);
        parking_cancel(&handover->parking, ticket);
        sched_yield();
    }
    parking_cancel(&handover->parking, first);
}

static void what_was_written_before_the_wake_is_seen_after_a_later_prepare(void **state)
{
    (void)state;
    /* TSan misses this race on a variable of the main thread's stack. */
    static struct handover handover;
    handover.rounds = rounds(50000);
    parking_init(&handover.parking);
    pthread_t waker;
    start_thread(&waker, hand_over, &handover);
    for (uint64_t round = 1; round <= handover.rounds; round++) {
        prepare_until_woken(&handover, round);
        CHECK(handover.cargo == round);
    }
    join_thread(waker);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(ping_pong_loses_no_wake),
            cmocka_unit_test(one_wake_reaches_all_sleepers),
            cmocka_unit_test(what_was_written_before_the_wake_is_seen_after_the_wait),
            cmocka_unit_test(what_was_written_before_the_wake_is_seen_after_a_later_prepare),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
