/* SPDX-License-Identifier: MIT */
#include "workers/ring_set.h"

#include "tests/support/archive_fixture.h"
#include "tests/support/cmocka.h"

enum {
    RINGS = 3,
    CAPACITY = 16
};

static struct spmc_ring *rings[RINGS];
static struct ring_set set;

static int set_up(void **state)
{
    (void)state;
    set = (struct ring_set){.count = RINGS};
    for (size_t i = 0; i < RINGS; i++) {
        assert_int_equal(spmc_ring_create(&rings[i], CAPACITY, NULL), STATUS_OK);
        set.rings[i] = rings[i];
    }
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    for (size_t i = 0; i < RINGS; i++) {
        spmc_ring_destroy(&rings[i]);
    }
    return 0;
}

static void push(size_t ring, unsigned number)
{
    struct fixture_message fields = {
            .number = number, .timestamp_ns = (int64_t)number, .payload_bytes = 8};
    assert_true(spmc_ring_try_push(rings[ring], fixture_envelope(&fields)));
}

static void drains_every_ring_and_keeps_the_order_of_each(void **state)
{
    struct envelope *out[16];
    int64_t last[RINGS] = {-1, -1, -1};
    (void)state;
    for (unsigned i = 0; i < 4; i++) {
        push(0, i);
        push(1, 100 + i);
        push(2, 200 + i);
    }
    assert_int_equal(ring_set_depth(&set), 12);
    assert_int_equal(ring_set_drain(&set, out, 16), 12);
    for (size_t i = 0; i < 12; i++) {
        size_t ring = (size_t)out[i]->timestamp_ns / 100;
        assert_true(out[i]->timestamp_ns > last[ring]);
        last[ring] = out[i]->timestamp_ns;
        envelope_unref(out[i]);
    }
    assert_true(ring_set_is_empty(&set));
    assert_int_equal(ring_set_drain(&set, out, 16), 0);
}

static void takes_no_more_than_there_is_room_for(void **state)
{
    struct envelope *out[16];
    (void)state;
    for (unsigned i = 0; i < 5; i++) {
        push(0, i);
    }
    assert_int_equal(ring_set_drain(&set, out, 0), 0);
    assert_int_equal(ring_set_drain(&set, out, 3), 3);
    assert_int_equal(ring_set_depth(&set), 2);
    assert_int_equal(ring_set_drain(&set, out + 3, 13), 2);
    for (size_t i = 0; i < 5; i++) {
        envelope_unref(out[i]);
    }
}

static void a_busy_lane_does_not_keep_another_one_waiting(void **state)
{
    struct envelope *out;
    (void)state;
    push(2, 7);
    for (unsigned drained = 0; drained < RINGS; drained++) {
        push(0, 100);
        push(0, 101);
        assert_int_equal(ring_set_drain(&set, &out, 1), 1);
        bool is_quiet_lane = out->timestamp_ns == 7;
        envelope_unref(out);
        if (is_quiet_lane) {
            break;
        }
        assert_true(drained < RINGS - 1);
    }
    while (ring_set_drain(&set, &out, 1) == 1) {
        envelope_unref(out);
    }
}

static void counts_an_envelope_until_it_is_released(void **state)
{
    static struct stage_load load;
    struct envelope *out;
    (void)state;
    load = (struct stage_load){.lane_count = 1};
    set.load = &load;
    push(0, 1);
    assert_int_equal(ring_set_drain(&set, &out, 1), 1);
    stage_load_add(&load, 0, stage_load_of(out));
    assert_true(stage_load_bytes(&load) > 0);
    ring_set_release(&set, out);
    assert_int_equal(stage_load_bytes(&load), 0);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
            CASE(drains_every_ring_and_keeps_the_order_of_each),
            CASE(takes_no_more_than_there_is_room_for),
            CASE(a_busy_lane_does_not_keep_another_one_waiting),
            CASE(counts_an_envelope_until_it_is_released),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
