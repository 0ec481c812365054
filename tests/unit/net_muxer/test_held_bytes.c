/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "net/muxer/held_bytes.h"

static void put(struct held_bytes *held, uint8_t first, size_t n)
{
    while (n > 0) {
        uint8_t *to;
        size_t room = held_bytes_reserve(held, n, &to);
        assert_true(room > 0);
        room = room < n ? room : n;
        for (size_t i = 0; i < room; i++) {
            to[i] = first++;
        }
        held_bytes_commit(held, room);
        n -= room;
    }
}

/* Takes up to n bytes, each the one after the last. */
static void take(struct held_bytes *held, uint8_t *next, size_t n)
{
    while (n > 0 && held->size > 0) {
        struct span front = held_bytes_front(held);
        size_t taken = front.length < n ? front.length : n;
        for (size_t i = 0; i < taken; i++) {
            assert_int_equal(front.bytes[i], *next);
            (*next)++;
        }
        held_bytes_drop(held, taken);
        n -= taken;
    }
}

static void gives_bytes_back_in_order(void **state)
{
    (void)state;
    struct held_bytes held = {0};
    uint8_t next = 0;
    for (size_t round = 0; round < 200; round++) {
        put(&held, (uint8_t)(next + held.size), round * 37 % 9000);
        take(&held, &next, round * 53 % 8000);
    }
    held_bytes_fini(&held);
    assert_int_equal(held.size, 0);
}

static void puts_small_frames_together(void **state)
{
    (void)state;
    struct held_bytes held = {0};
    for (int i = 0; i < 1000; i++) {
        put(&held, (uint8_t)i, 1);
    }
    assert_int_equal(held_bytes_front(&held).length, 1000);
    held_bytes_fini(&held);
}

static void has_no_memory_while_empty(void **state)
{
    (void)state;
    struct held_bytes held = {0};
    put(&held, 0, 70000);
    while (held.size > 0) {
        held_bytes_drop(&held, held_bytes_front(&held).length);
    }
    assert_null(held.first);
    assert_null(held.last);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(gives_bytes_back_in_order),
            cmocka_unit_test(puts_small_frames_together),
            cmocka_unit_test(has_no_memory_while_empty),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
