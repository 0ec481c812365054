/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/metrics.h"
#include "queues/spmc_ring.h"
#include "tests/stress/queues/messages.h"

/*
 * One producer, three consumers, tiny rings. Consumers stop at random points, with and without a
 * message in hand, until the producer has met a full ring: this is where a ring that overwrites would
 * tear or double a message.
 */

enum {
    CONSUMERS = 3
};

struct run {
    struct spmc_ring *rings[CONSUMERS]; /* the same one for all, or one each */
    struct parking parking;
    uint64_t messages;
    bool is_fanned_out;
    atomic_bool is_done;
    atomic_ullong refusals; /* pushes that met a full ring */
    atomic_ullong dropped;
    atomic_ullong popped;
    atomic_uchar *pops; /* of each message, by number */
};

struct consumer {
    struct run *run;
    struct spmc_ring *ring;
    uint64_t seed;
    pthread_t thread;
};

static bool is_done(struct run *run)
{
    return atomic_load_explicit(&run->is_done, memory_order_acquire);
}

/* Holds this consumer up until the producer was refused once more, or has ended. */
static void stop_for_a_while(struct run *run)
{
    unsigned long long before = atomic_load_explicit(&run->refusals, memory_order_relaxed);
    while (!is_done(run) && atomic_load_explicit(&run->refusals, memory_order_relaxed) == before) {
        sched_yield();
    }
}

static void sleep_until_work(struct consumer *consumer)
{
    struct run *run = consumer->run;
    uint32_t ticket = parking_prepare(&run->parking);
    if (spmc_ring_depth_estimate(consumer->ring) > 0 || is_done(run)) {
        parking_cancel(&run->parking, ticket);
    } else {
        CHECK(parking_wait(&run->parking, ticket, LOST_WAKE_NS));
    }
}

static void *consume(void *argument)
{
    struct consumer *consumer = argument;
    struct run *run = consumer->run;
    uint64_t least = 0;
    for (;;) {
        bool is_last_look = is_done(run);
        struct envelope *envelope = spmc_ring_try_pop(consumer->ring);
        if (envelope == NULL && is_last_look) {
            return NULL;
        }
        if (envelope == NULL) {
            sleep_until_work(consumer);
            continue;
        }
        if (one_in(&consumer->seed, 64)) {
            stop_for_a_while(run);
        }
        uint64_t number = check_message(envelope);
        CHECK(number >= least); /* a ring never changes the order */
        least = number + 1;
        atomic_fetch_add_explicit(&run->pops[number], 1, memory_order_relaxed);
        atomic_fetch_add_explicit(&run->popped, 1, memory_order_relaxed);
        envelope_unref(envelope);
        if (one_in(&consumer->seed, 64)) {
            stop_for_a_while(run);
        }
    }
}

static void push_or_drop(
        struct run *run, struct spmc_ring *ring, struct envelope *envelope, uint64_t *seed)
{
    while (!spmc_ring_try_push(ring, envelope)) {
        atomic_fetch_add_explicit(&run->refusals, 1, memory_order_relaxed);
        if (one_in(seed, 8)) {
            atomic_fetch_add_explicit(&run->dropped, 1, memory_order_relaxed);
            envelope_unref(envelope);
            return;
        }
        spmc_ring_wake(ring); /* or all might sleep beside a full ring */
        sched_yield();
    }
    if (one_in(seed, 2)) {
        spmc_ring_wake(ring);
    }
}

static void produce(struct run *run)
{
    uint64_t seed = 88172645463325252;
    size_t rings = run->is_fanned_out ? CONSUMERS : 1;
    for (uint64_t number = 0; number < run->messages; number++) {
        struct envelope *envelope = try_make_message(NULL, number);
        CHECK(envelope != NULL);
        if (rings > 1) {
            envelope_ref_many(envelope, (unsigned)rings - 1);
        }
        for (size_t i = 0; i < rings; i++) {
            push_or_drop(run, run->rings[i], envelope, &seed);
        }
    }
    atomic_store_explicit(&run->is_done, true, memory_order_release);
    parking_wake(&run->parking);
}

static void run_with(size_t capacity, bool is_fanned_out)
{
    struct run run = {.messages = rounds(50000), .is_fanned_out = is_fanned_out};
    uint64_t made = metrics_sum(NULL, METRIC_ENVELOPES);
    uint64_t freed = metrics_sum(NULL, METRIC_ENVELOPES_FREED);
    parking_init(&run.parking);
    run.pops = calloc(run.messages, sizeof(run.pops[0]));
    CHECK(run.pops != NULL);
    struct consumer consumers[CONSUMERS];
    for (size_t i = 0; i < CONSUMERS; i++) {
        if (i == 0 || is_fanned_out) {
            CHECK(spmc_ring_create(&run.rings[i], capacity, &run.parking) == STATUS_OK);
        }
        consumers[i] = (struct consumer){.run = &run, .seed = i + 1};
        consumers[i].ring = run.rings[is_fanned_out ? i : 0];
        start_thread(&consumers[i].thread, consume, &consumers[i]);
    }
    produce(&run);
    for (size_t i = 0; i < CONSUMERS; i++) {
        join_thread(consumers[i].thread);
    }
    for (size_t i = 0; i < CONSUMERS; i++) {
        assert_true(run.rings[i] == NULL || spmc_ring_high_water(run.rings[i]) < capacity);
        spmc_ring_destroy(&run.rings[i]);
    }
    uint64_t offered = run.messages * (is_fanned_out ? CONSUMERS : 1);
    assert_int_equal(run.popped + run.dropped, offered);
    for (uint64_t number = 0; number < run.messages; number++) {
        assert_true(run.pops[number] <= (is_fanned_out ? CONSUMERS : 1));
    }
    assert_int_equal(metrics_sum(NULL, METRIC_ENVELOPES) - made, run.messages);
    assert_int_equal(metrics_sum(NULL, METRIC_ENVELOPES_FREED) - freed, run.messages);
    free(run.pops);
}

static void each_reference_reaches_one_consumer(void **state)
{
    (void)state;
    run_with(2, false);
    run_with(4, false);
    run_with(8, false);
}

static void each_of_several_rings_takes_one_reference_of_the_same_envelope(void **state)
{
    (void)state;
    run_with(2, true);
    run_with(8, true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(each_reference_reaches_one_consumer),
            cmocka_unit_test(each_of_several_rings_takes_one_reference_of_the_same_envelope),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
