/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "queues/id_ring.h"
#include "tests/stress/queues/stress.h"

/* Two threads, tiny rings, every record checked whole and in order. */

struct run {
    struct id_ring *ring;
    struct parking parking;
    uint64_t records;
};

static void *produce(void *argument)
{
    struct run *run = argument;
    for (uint64_t number = 0; number < run->records; number++) {
        struct id_record record = {
                .timestamp_ns = (int64_t)number, .content_topic_key = number * 7};
        memset(record.hash, (int)(number & 0xff), sizeof(record.hash));
        while (!id_ring_try_push(run->ring, &record)) {
            sched_yield();
        }
        id_ring_wake(run->ring);
    }
    return NULL;
}

static void consume_one(struct run *run, uint64_t number)
{
    struct id_record record;
    while (!id_ring_try_pop(run->ring, &record)) {
        uint32_t ticket = parking_prepare(&run->parking);
        if (id_ring_depth_estimate(run->ring) > 0) {
            parking_cancel(&run->parking, ticket);
        } else {
            CHECK(parking_wait(&run->parking, ticket, LOST_WAKE_NS));
        }
    }
    uint8_t hash[MESSAGE_HASH_BYTES];
    memset(hash, (int)(number & 0xff), sizeof(hash));
    CHECK(record.timestamp_ns == (int64_t)number);
    CHECK(record.content_topic_key == number * 7);
    CHECK(memcmp(record.hash, hash, sizeof(hash)) == 0);
}

static void run_with(size_t capacity)
{
    struct run run = {.records = rounds(150000)};
    parking_init(&run.parking);
    assert_int_equal(id_ring_create(&run.ring, capacity, &run.parking), STATUS_OK);
    pthread_t producer;
    start_thread(&producer, produce, &run);
    for (uint64_t number = 0; number < run.records; number++) {
        consume_one(&run, number);
    }
    join_thread(producer);
    assert_true(id_ring_high_water(run.ring) <= capacity);
    id_ring_destroy(&run.ring);
}

static void every_record_arrives_whole_and_in_order(void **state)
{
    (void)state;
    run_with(2);
    run_with(8);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(every_record_arrives_whole_and_in_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
