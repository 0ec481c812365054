/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "net/protocols/prefixed_reader.h"

enum {
    LARGEST = 20000
};

/* Gives bytes in pieces of at most step; returns how many were taken. */
static size_t feed(
        struct prefixed_reader *reader, struct span bytes, size_t step, enum status *status)
{
    size_t taken = 0;
    *status = STATUS_OK;
    while (taken < bytes.length && *status == STATUS_OK) {
        uint8_t *to;
        size_t wanted = bytes.length - taken < step ? bytes.length - taken : step;
        size_t room = prefixed_reader_reserve(reader, wanted, &to);
        if (room == 0) {
            break;
        }
        size_t n = room < wanted ? room : wanted;
        memcpy(to, bytes.bytes + taken, n);
        taken += n;
        *status = prefixed_reader_commit(reader, n);
    }
    return taken;
}

static void check_arrival(uint8_t *bytes, size_t size, size_t step)
{
    struct prefixed_reader reader;
    enum status status;
    prefixed_reader_init(&reader, LARGEST);
    size_t header = (size_t)(varint_write(bytes, size) - bytes);
    for (size_t i = 0; i < size; i++) {
        bytes[header + i] = (uint8_t)(i * 7 + step);
    }
    /* One byte more, which belongs to whatever comes next. */
    assert_int_equal(
            feed(&reader, span_of(bytes, header + size + 1), step, &status), header + size);
    assert_int_equal(status, STATUS_OK);
    assert_true(prefixed_reader_is_done(&reader));
    assert_true(span_equal(prefixed_reader_message(&reader), span_of(bytes + header, size)));
    prefixed_reader_fini(&reader);
}

static void messages_of_all_sizes_arrive_in_any_cut(void **state)
{
    (void)state;
    static const size_t sizes[] = {0, 1, 127, 128, 4095, 4096, 4097, LARGEST};
    uint8_t *bytes = calloc(1, LARGEST + VARINT_MAX_BYTES + 1);
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        for (size_t step = 1; step < 9000; step = step * 3 + 1) {
            check_arrival(bytes, sizes[i], step);
        }
    }
    free(bytes);
}

static void expect_refusal(const char *bytes, size_t length, enum status expected)
{
    struct prefixed_reader reader;
    enum status status;
    prefixed_reader_init(&reader, 1000);
    feed(&reader, span_of(bytes, length), 100, &status);
    assert_int_equal(status, expected);
    assert_false(prefixed_reader_is_done(&reader));
    prefixed_reader_fini(&reader);
}

static void lengths_above_the_limit_and_malformed_ones_are_refused(void **state)
{
    (void)state;
    expect_refusal("\xe9\x07", 2, STATUS_TOO_LARGE); /* 1001 */
    expect_refusal("\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 10, STATUS_TOO_LARGE);
    expect_refusal("\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 11, STATUS_BAD_VARINT);
}

static void a_length_alone_costs_little(void **state)
{
    (void)state;
    struct prefixed_reader reader;
    enum status status;
    uint8_t bytes[VARINT_MAX_BYTES + 1];
    prefixed_reader_init(&reader, 1U << 30);
    size_t length = (size_t)(varint_write(bytes, 1U << 30) - bytes);
    feed(&reader, span_of(bytes, length + 1), 100, &status);
    assert_int_equal(status, STATUS_OK);
    assert_true(reader.capacity <= 4096);
    prefixed_reader_fini(&reader);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(messages_of_all_sizes_arrive_in_any_cut),
            cmocka_unit_test(lengths_above_the_limit_and_malformed_ones_are_refused),
            cmocka_unit_test(a_length_alone_costs_little),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
