/* SPDX-License-Identifier: MIT */
#include "tests/support/cmocka.h"

#include <string.h>

#include "base/span.h"
#include "router/traffic.h"

static struct traffic traffic; /* cleared by each case: it is large */

static uint64_t load(const _Atomic uint64_t *value)
{
    return atomic_load_explicit(value, memory_order_relaxed);
}

static struct topic topic_of(uint32_t index, const char *name)
{
    return (struct topic){.index = index, .name = span_of_text(name)};
}

static void counts_each_topic_by_itself_and_the_rest_together(void **state)
{
    (void)state;
    struct topic one = topic_of(1, "/a/b");
    struct topic beyond = topic_of(TRAFFIC_TOPICS_MAX + 5, "/c");
    memset(&traffic, 0, sizeof(traffic));
    traffic_arrived(&traffic, &one, 100);
    traffic_arrived(&traffic, &one, 100);
    traffic_accepted(&traffic, &one, 100, 60);
    traffic_sent(&traffic, &one, 100, 3);
    traffic_accepted(&traffic, &beyond, 10, 1);
    traffic_accepted(&traffic, &beyond, 10, 3);
    traffic_accepted(&traffic, &beyond, 10, 2);
    assert_int_equal(load(&traffic.topics[1].gross_bytes), 208);
    assert_int_equal(load(&traffic.topics[1].net_bytes), 104);
    assert_int_equal(load(&traffic.topics[1].sent_bytes), 312);
    assert_int_equal(load(&traffic.topics[1].messages), 1);
    assert_int_equal(load(&traffic.topics[TRAFFIC_TOPICS_MAX - 1].messages), 3);
    assert_int_equal(load(&traffic.topics[TRAFFIC_TOPICS_MAX - 1].payload_bytes), 6);
    assert_int_equal(load(&traffic.topics[TRAFFIC_TOPICS_MAX - 1].payload_largest), 3);
}

static void puts_sizes_into_classes_whose_bounds_belong_to_them(void **state)
{
    (void)state;
    struct topic topic = topic_of(0, "/a");
    static const struct {
        uint64_t bytes;
        size_t class;
    } cases[] = {{0, 0}, {1, 1}, {1000, 1}, {1001, 2}, {150000, 9}, {1000000, 12}, {1000001, 13}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        memset(&traffic, 0, sizeof(traffic));
        traffic_accepted(&traffic, &topic, cases[i].bytes, cases[i].bytes);
        assert_int_equal(load(&traffic.sizes[cases[i].class]), 1);
    }
}

static void median_is_of_the_last_messages_of_all_lanes(void **state)
{
    (void)state;
    static struct traffic other;
    struct traffic *both[] = {&traffic, &other};
    size_t samples;
    memset(&traffic, 0, sizeof(traffic));
    memset(&other, 0, sizeof(other));
    assert_int_equal(traffic_median_offset(both, 2, &samples), 0);
    assert_int_equal(samples, 0);
    traffic_note_offset(&traffic, -5);
    traffic_note_offset(&other, 100);
    traffic_note_offset(&other, 7);
    assert_int_equal(traffic_median_offset(both, 2, &samples), 7);
    assert_int_equal(samples, 3);
    traffic_note_offset(&other, 8); /* -5, 7, 8, 100 */
    assert_int_equal(traffic_median_offset(both, 2, &samples), 7);
    for (int i = 0; i < TRAFFIC_OFFSETS; i++) { /* what was before is forgotten */
        traffic_note_offset(&other, 1000 + i);
    }
    assert_int_equal(traffic_median_offset(both, 2, &samples), 1000 + TRAFFIC_OFFSETS / 2 - 1);
    assert_int_equal(samples, TRAFFIC_OFFSETS + 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(counts_each_topic_by_itself_and_the_rest_together),
            cmocka_unit_test(puts_sizes_into_classes_whose_bounds_belong_to_them),
            cmocka_unit_test(median_is_of_the_last_messages_of_all_lanes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
