/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "net/muxer/muxer_private.h"

enum {
    KEYS = 500
};

static void finds_exactly_what_was_added_and_not_removed(void **state)
{
    (void)state;
    static struct muxer_stream streams[KEYS];
    bool is_in[KEYS] = {false};
    struct stream_table table = {0};
    uint64_t random = 1;
    size_t count = 0;
    for (size_t i = 0; i < KEYS; i++) {
        streams[i].key = i % 2 == 0 ? i : UINT64_MAX - i;
    }
    for (int step = 0; step < 20000; step++) {
        random = random * UINT64_C(6364136223846793005) + 1;
        size_t i = (size_t)(random >> 40) % KEYS;
        if (is_in[i]) {
            stream_table_remove(&table, &streams[i]);
            count--;
        } else {
            assert_int_equal(stream_table_add(&table, &streams[i]), STATUS_OK);
            count++;
        }
        is_in[i] = !is_in[i];
        assert_int_equal(table.count, count);
        size_t other = (size_t)(random >> 20) % KEYS;
        assert_ptr_equal(stream_table_find(&table, streams[other].key),
                is_in[other] ? &streams[other] : NULL);
    }
    for (size_t i = 0; i < KEYS; i++) {
        assert_ptr_equal(stream_table_find(&table, streams[i].key), is_in[i] ? &streams[i] : NULL);
    }
    stream_table_fini(&table);
}

static void keeps_no_large_table_when_empty(void **state)
{
    (void)state;
    static struct muxer_stream streams[KEYS];
    struct stream_table table = {0};
    for (size_t i = 0; i < KEYS; i++) {
        streams[i].key = i;
        assert_int_equal(stream_table_add(&table, &streams[i]), STATUS_OK);
    }
    assert_ptr_equal(stream_table_find_any(&table)->muxer, NULL);
    for (size_t i = 0; i < KEYS; i++) {
        stream_table_remove(&table, &streams[i]);
    }
    assert_int_equal(table.capacity, 0);
    assert_null(stream_table_find(&table, 0));
    assert_null(stream_table_find_any(&table));
    stream_table_fini(&table);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(finds_exactly_what_was_added_and_not_removed),
            cmocka_unit_test(keeps_no_large_table_when_empty),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
