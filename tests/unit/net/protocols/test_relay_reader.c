/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "net/protocols/relay_reader.h"
#include "tests/support/cmocka.h"

enum {
    RPC_MAX = 1000
};

static struct frame_budget *make_budget(void)
{
    struct frame_budget *budget = NULL;
    assert_int_equal(frame_budget_create(&budget, 64 * 1024, 1024), STATUS_OK);
    return budget;
}

/* Gives bytes in pieces of at most step; the frames that come out are compared with rpcs in order. */
static void feed(struct relay_reader *reader, struct span bytes, size_t step,
        const struct span rpcs[], size_t count)
{
    size_t found = 0;
    while (bytes.length > 0) {
        uint8_t *to = NULL;
        size_t n = relay_reader_reserve(reader, bytes.length < step ? bytes.length : step, &to);
        struct frame *frame;
        assert_true(n > 0 && n <= bytes.length);
        memcpy(to, bytes.bytes, n);
        bytes = span_of(bytes.bytes + n, bytes.length - n);
        assert_int_equal(relay_reader_commit(reader, n, &frame), STATUS_OK);
        if (frame != NULL) {
            assert_true(found < count);
            assert_int_equal(frame_length(frame), rpcs[found].length);
            assert_memory_equal(frame_bytes(frame), rpcs[found].bytes, rpcs[found].length);
            frame_unref(frame);
            found++;
        }
    }
    assert_int_equal(found, count);
    assert_false(relay_reader_is_inside(reader));
}

static void finds_the_same_frames_whatever_the_cuts(void **state)
{
    (void)state;
    struct frame_budget *budget = make_budget();
    struct relay_reader reader;
    uint8_t long_rpc[300];
    uint8_t bytes[512] = {3, 'a', 'b', 'c', 0, 1, 'x', 0xac, 0x02};
    memset(long_rpc, 'y', sizeof(long_rpc));
    memcpy(bytes + 9, long_rpc, sizeof(long_rpc));
    struct span rpcs[] = {span_of("abc", 3), span_of("x", 1), span_of(long_rpc, sizeof(long_rpc))};
    relay_reader_init(&reader, budget, NULL, RPC_MAX);
    for (size_t step = 1; step <= 310; step++) {
        feed(&reader, span_of(bytes, 9 + sizeof(long_rpc)), step, rpcs, 3);
    }
    assert_int_equal(frame_budget_used(budget), 0);
    frame_budget_destroy(&budget);
}

static enum status status_of_prefix(const uint8_t *prefix, size_t length)
{
    struct relay_reader reader;
    struct frame *frame;
    enum status status = STATUS_OK;
    relay_reader_init(&reader, NULL, NULL, RPC_MAX);
    for (size_t i = 0; status == STATUS_OK && i < length; i++) {
        uint8_t *to;
        assert_int_equal(relay_reader_reserve(&reader, 100, &to), 1);
        *to = prefix[i];
        status = relay_reader_commit(&reader, 1, &frame);
    }
    relay_reader_reset(&reader);
    return status;
}

static void refuses_lengths_above_the_limit_before_any_byte_of_them(void **state)
{
    (void)state;
    const uint8_t at_limit[] = {0xe8, 0x07};
    const uint8_t above[] = {0xe9, 0x07};
    const uint8_t two_to_31[] = {0x80, 0x80, 0x80, 0x80, 0x08};
    const uint8_t two_to_63[] = {0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x01};
    const uint8_t endless[] = {0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80};
    assert_int_equal(status_of_prefix(at_limit, sizeof(at_limit)), STATUS_OK);
    assert_int_equal(status_of_prefix(above, sizeof(above)), STATUS_TOO_LARGE);
    assert_int_equal(status_of_prefix(two_to_31, sizeof(two_to_31)), STATUS_TOO_LARGE);
    assert_int_equal(status_of_prefix(two_to_63, sizeof(two_to_63)), STATUS_TOO_LARGE);
    assert_int_equal(status_of_prefix(endless, sizeof(endless)), STATUS_BAD_VARINT);
}

static void begin_frame(struct relay_reader *reader, uint8_t length)
{
    struct frame *frame;
    uint8_t *to;
    assert_int_equal(relay_reader_reserve(reader, 1, &to), 1);
    *to = length;
    assert_int_equal(relay_reader_commit(reader, 1, &frame), STATUS_OK);
    assert_null(frame);
}

static void waits_without_credit_and_goes_on_with_it(void **state)
{
    (void)state;
    struct frame_budget *budget = make_budget();
    struct relay_reader reader;
    struct frame *frame;
    uint8_t *to;
    relay_reader_init(&reader, budget, NULL, RPC_MAX);
    size_t all = 63 * 1024;
    assert_true(frame_budget_try_charge(budget, FRAME_BUDGET_PARTIAL, all));
    begin_frame(&reader, 5);
    assert_int_equal(relay_reader_reserve(&reader, 5, &to), 0);
    assert_true(relay_reader_is_starved(&reader));
    assert_false(relay_reader_is_inside(&reader));
    frame_budget_release(budget, all);
    assert_int_equal(relay_reader_reserve(&reader, 99, &to), 5);
    assert_int_equal(frame_budget_used(budget), frame_charge(5));
    assert_true(relay_reader_is_inside(&reader));
    memcpy(to, (const uint8_t[]){'h', 'e', 'l', 'l', 'o'}, 5);
    assert_int_equal(relay_reader_commit(&reader, 5, &frame), STATUS_OK);
    assert_memory_equal(frame_bytes(frame), "hello", 5);
    frame_unref(frame);
    frame_budget_destroy(&budget);
}

static void skips_a_frame_and_finds_the_next_one(void **state)
{
    (void)state;
    struct frame_budget *budget = make_budget();
    struct relay_reader reader;
    struct span next = span_of("ok", 2);
    uint8_t bytes[] = {'1', '2', '3', '4', '5', 2, 'o', 'k'};
    uint8_t *to;
    size_t all = 63 * 1024;
    relay_reader_init(&reader, budget, NULL, RPC_MAX);
    assert_true(frame_budget_try_charge(budget, FRAME_BUDGET_PARTIAL, all));
    begin_frame(&reader, 5);
    assert_int_equal(relay_reader_reserve(&reader, 5, &to), 0);
    relay_reader_skip(&reader);
    frame_budget_release(budget, all);
    feed(&reader, span_of(bytes, sizeof(bytes)), 3, &next, 1);
    frame_budget_destroy(&budget);
}

static void gives_the_charge_of_a_cut_frame_back(void **state)
{
    (void)state;
    struct frame_budget *budget = make_budget();
    struct relay_reader reader;
    struct frame *frame;
    uint8_t *to;
    relay_reader_init(&reader, budget, NULL, RPC_MAX);
    begin_frame(&reader, 100);
    assert_int_equal(relay_reader_reserve(&reader, 7, &to), 7);
    memset(to, 0, 7);
    assert_int_equal(relay_reader_commit(&reader, 7, &frame), STATUS_OK);
    relay_reader_reset(&reader);
    assert_int_equal(frame_budget_used(budget), 0);
    assert_false(relay_reader_is_inside(&reader));
    frame_budget_destroy(&budget);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(finds_the_same_frames_whatever_the_cuts),
            cmocka_unit_test(refuses_lengths_above_the_limit_before_any_byte_of_them),
            cmocka_unit_test(waits_without_credit_and_goes_on_with_it),
            cmocka_unit_test(skips_a_frame_and_finds_the_next_one),
            cmocka_unit_test(gives_the_charge_of_a_cut_frame_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
