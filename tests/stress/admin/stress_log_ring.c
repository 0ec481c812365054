/* SPDX-License-Identifier: MIT */

/* Several threads push numbered lines into a ring of two and of eight; every line is checked. */

#include "admin/log_ring.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/cmocka.h"

enum {
    PRODUCERS = 4,
    LINES = 20000,
    TEXT_BYTES = 200
};

struct producer {
    struct log_ring *ring;
    pthread_t thread;
    uint32_t number;
    uint64_t refused;
    atomic_bool is_done;
};

/* Number and sequence again and again, so that a torn line is seen. */
static void fill(struct log_record *record, uint32_t number, uint64_t sequence)
{
    record->thread_id = number;
    record->time_ns = (int64_t)sequence;
    record->level = LOG_INFO;
    memset(record->text, 'a' + (int)((number + sequence) % 26), TEXT_BYTES);
    record->text[TEXT_BYTES] = '\0';
}

static void *produce(void *context)
{
    struct producer *producer = context;
    struct log_record record = {.module = "stress"};
    for (uint64_t i = 1; i <= LINES; i++) {
        fill(&record, producer->number, i);
        while (!log_ring_try_push(producer->ring, &record)) {
            producer->refused++;
            sched_yield();
        }
    }
    atomic_store_explicit(&producer->is_done, true, memory_order_release);
    return NULL;
}

static void check(const struct log_record *record, uint64_t last[PRODUCERS])
{
    struct log_record wanted;
    assert_true(record->thread_id < PRODUCERS);
    assert_int_equal(record->time_ns, last[record->thread_id] + 1);
    last[record->thread_id]++;
    fill(&wanted, record->thread_id, last[record->thread_id]);
    assert_string_equal(record->text, wanted.text);
    assert_string_equal(record->module, "stress");
}

static void run(size_t capacity)
{
    struct producer producers[PRODUCERS];
    uint64_t last[PRODUCERS] = {0};
    struct log_ring *ring = NULL;
    struct log_record record;
    uint64_t taken = 0;
    assert_int_equal(log_ring_create(&ring, capacity), STATUS_OK);
    for (uint32_t i = 0; i < PRODUCERS; i++) {
        producers[i] = (struct producer){.ring = ring, .number = i};
        assert_int_equal(pthread_create(&producers[i].thread, NULL, produce, &producers[i]), 0);
    }
    while (taken < (uint64_t)PRODUCERS * LINES) {
        if (log_ring_try_pop(ring, &record)) {
            check(&record, last);
            taken++;
        } else {
            sched_yield();
        }
    }
    for (uint32_t i = 0; i < PRODUCERS; i++) {
        assert_int_equal(pthread_join(producers[i].thread, NULL), 0);
        assert_int_equal(last[i], LINES);
    }
    assert_false(log_ring_has_next(ring));
    log_ring_destroy(&ring);
    assert_null(ring);
}

static void every_line_comes_once_whole_and_in_its_producers_order(void **state)
{
    (void)state;
    run(2);
    run(8);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(every_line_comes_once_whole_and_in_its_producers_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
