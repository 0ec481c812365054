/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>
#include <xxhash.h>

#include "hash/fast_key.h"

static bool wide_equal(struct wide_key a, struct wide_key b)
{
    return a.low == b.low && a.high == b.high;
}

static void depends_on_the_bytes_alone_and_not_on_where_they_lie(void **state)
{
    (void)state;
    uint8_t bytes[1000];
    uint8_t moved[1001];
    for (size_t i = 0; i < sizeof(bytes); i++) {
        bytes[i] = (uint8_t)(i * 7);
    }
    for (size_t length = 0; length <= sizeof(bytes); length += 37) {
        memcpy(moved + 1, bytes, length);
        struct span a = span_of(bytes, length);
        struct span b = span_of(moved + 1, length);
        assert_int_equal(fast_key(3, a), fast_key(3, b));
        assert_int_equal(fast_key_of_bytes(a), fast_key_of_bytes(b));
        assert_true(wide_equal(fast_key_wide(3, a), fast_key_wide(3, b)));
    }
}

/* Of a large one some chunks are looked at only, but always its length and both ends. */
static void a_large_message_differs_by_its_length_and_its_ends(void **state)
{
    enum {
        LARGE = 150000
    };
    static uint8_t bytes[LARGE];
    static uint8_t moved[LARGE + 1];
    static const size_t places[] = {0, 8, LARGE - 9, LARGE - 1};
    (void)state;
    for (size_t i = 0; i < LARGE; i++) {
        bytes[i] = (uint8_t)(i * 7);
    }
    memcpy(moved + 1, bytes, LARGE);
    uint64_t key = fast_key(3, span_of(bytes, LARGE));
    assert_int_equal(fast_key(3, span_of(moved + 1, LARGE)), key);
    assert_int_not_equal(fast_key(4, span_of(bytes, LARGE)), key);
    memset(bytes, 0, LARGE);
    key = fast_key(3, span_of(bytes, LARGE));
    assert_int_not_equal(fast_key(3, span_of(bytes, LARGE - 1)), key);
    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
        bytes[places[i]] = 1;
        assert_int_not_equal(fast_key(3, span_of(bytes, LARGE)), key);
        bytes[places[i]] = 0;
    }
}

static void differs_for_every_topic(void **state)
{
    (void)state;
    struct span message = span_of_text("the same message");
    for (uint32_t a = 0; a < 40; a++) {
        for (uint32_t b = 0; b < a; b++) {
            assert_int_not_equal(fast_key(a, message), fast_key(b, message));
            assert_false(wide_equal(fast_key_wide(a, message), fast_key_wide(b, message)));
        }
    }
}

static void differs_when_one_bit_differs(void **state)
{
    (void)state;
    uint8_t bytes[500] = {0};
    struct span message = span_of(bytes, sizeof(bytes));
    uint64_t key = fast_key(0, message);
    struct wide_key wide = fast_key_wide(0, message);
    for (size_t bit = 0; bit < sizeof(bytes) * 8; bit++) {
        bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
        assert_int_not_equal(fast_key(0, message), key);
        assert_false(wide_equal(fast_key_wide(0, message), wide));
        bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
}

static void is_keyed_and_so_not_what_anybody_can_compute(void **state)
{
    (void)state;
    struct span bytes = span_of_text("known to everybody");
    assert_int_not_equal(fast_key_of_bytes(bytes), XXH3_64bits(bytes.bytes, bytes.length));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(depends_on_the_bytes_alone_and_not_on_where_they_lie),
            cmocka_unit_test(a_large_message_differs_by_its_length_and_its_ends),
            cmocka_unit_test(differs_for_every_topic),
            cmocka_unit_test(differs_when_one_bit_differs),
            cmocka_unit_test(is_keyed_and_so_not_what_anybody_can_compute),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
