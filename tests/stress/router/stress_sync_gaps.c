/* SPDX-License-Identifier: MIT */
#include "tests/support/cmocka.h"

#include <pthread.h>
#include <stdlib.h>

#include "router/dispatcher.h"
#include "tests/support/mesh_fixture.h"

/*
 * A lane whose sync ring is full loses id after id, at ever later times, while the sync worker takes
 * the gaps: together they leave out none of the times.
 */

enum {
    LOST = 3000000,
    RING = 2
};

static const struct topic topic = {.name = {(const uint8_t *)"/waku/2/rs/16/0", 15}};

static struct dispatcher dispatcher;
static struct progress progress;
static atomic_bool is_done; /* DONE: release store -> acquire load */

static void publish(struct envelope *envelope, int64_t timestamp_ns)
{
    envelope->timestamp_ns = timestamp_ns;
    envelope_ref(envelope);
    dispatcher_publish(&dispatcher, envelope);
}

static void *lose(void *context)
{
    struct envelope *envelope = make_message(1, &topic, 1);
    (void)context;
    envelope->is_timestamp_in_range = true;
    for (int i = 0; i < RING; i++) {
        publish(envelope, 0);
    }
    for (int64_t time = 1; time <= LOST; time++) {
        publish(envelope, time);
    }
    envelope_unref(envelope);
    atomic_store_explicit(&is_done, true, memory_order_release); /* DONE */
    return NULL;
}

static bool is_covered[LOST + 1];

static void take_all(void)
{
    int64_t from;
    int64_t to;
    while (dispatcher_take_gap(&dispatcher, &from, &to)) {
        assert_in_range(from, 1, to);
        assert_in_range(to, from, LOST);
        memset(is_covered + from, true, (size_t)(to - from) + 1);
    }
}

static void no_time_that_was_lost_is_left_out(void **state)
{
    pthread_t lane;
    bool was_done;
    (void)state;
    dispatcher_init(&dispatcher);
    progress_init(&progress);
    dispatcher.progress = &progress;
    dispatcher.slot_sync = progress_add_slot(&progress, progress_add_stage(&progress));
    assert_int_equal(id_ring_create(&dispatcher.sync, RING, NULL), STATUS_OK);
    assert_int_equal(pthread_create(&lane, NULL, lose, NULL), 0);
    do {
        was_done = atomic_load_explicit(&is_done, memory_order_acquire); /* DONE */
        take_all();
    } while (!was_done);
    assert_int_equal(pthread_join(lane, NULL), 0);
    is_covered[0] = true;
    assert_null(memchr(is_covered, false, sizeof(is_covered)));
    struct id_record record;
    while (id_ring_try_pop(dispatcher.sync, &record)) {
    }
    id_ring_destroy(&dispatcher.sync);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(no_time_that_was_lost_is_left_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
