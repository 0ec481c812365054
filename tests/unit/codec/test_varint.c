/* SPDX-License-Identifier: MIT */
#include "codec/varint.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>

#include <cmocka.h>

#include "tests/support/hex.h"

struct example {
    const char *hex;
    uint64_t value;
};

/* From protobuf's description of its encoding and the multiformats specification of varints. */
static const struct example examples[] = {
        {"00", 0},
        {"01", 1},
        {"7f", 127},
        {"8001", 128},
        {"9601", 150},
        {"ff01", 255},
        {"ac02", 300},
        {"808001", 16384},
        {"ffffffff0f", UINT32_MAX},
        {"80808080 08", 1ULL << 31},
        {"ffffffffffffffff7f", INT64_MAX},
        {"80808080808080808001", 1ULL << 63},
        {"ffffffffffffffffff01", UINT64_MAX},
};

enum {
    EXAMPLE_COUNT = sizeof(examples) / sizeof(examples[0])
};

static void reads_the_examples_of_the_specifications(void **state)
{
    (void)state;
    for (size_t i = 0; i < EXAMPLE_COUNT; i++) {
        uint64_t value = 0;
        struct span bytes = hex_decode(examples[i].hex);
        struct span rest = bytes;
        assert_int_equal(varint_read(&value, &rest), STATUS_OK);
        assert_true(value == examples[i].value);
        assert_int_equal(rest.length, 0);
        hex_free(bytes);
    }
}

static void writes_the_examples_in_their_shortest_form(void **state)
{
    (void)state;
    for (size_t i = 0; i < EXAMPLE_COUNT; i++) {
        uint8_t out[VARINT_MAX_BYTES];
        struct span bytes = hex_decode(examples[i].hex);
        assert_int_equal(varint_size(examples[i].value), bytes.length);
        assert_ptr_equal(varint_write(out, examples[i].value), out + bytes.length);
        assert_memory_equal(out, bytes.bytes, bytes.length);
        hex_free(bytes);
    }
}

static void size_grows_by_one_every_seven_bits(void **state)
{
    (void)state;
    for (unsigned bit = 0; bit < 64; bit++) {
        assert_int_equal(varint_size(1ULL << bit), bit / 7 + 1);
    }
}

static enum status read_hex(const char *hex)
{
    uint64_t value;
    struct span bytes = hex_decode(hex);
    struct span rest = bytes;
    enum status status = varint_read(&value, &rest);
    if (status != STATUS_OK) {
        assert_ptr_equal(rest.bytes, bytes.bytes);
        assert_int_equal(rest.length, bytes.length);
    }
    hex_free(bytes);
    return status;
}

static void asks_for_more_when_cut_short(void **state)
{
    (void)state;
    assert_int_equal(read_hex(""), STATUS_TRUNCATED);
    assert_int_equal(read_hex("80"), STATUS_TRUNCATED);
    assert_int_equal(read_hex("ffffffffffffffffff"), STATUS_TRUNCATED);
}

static void refuses_an_eleventh_byte_and_a_sixty_fifth_bit(void **state)
{
    (void)state;
    assert_int_equal(read_hex("80808080808080808080"), STATUS_BAD_VARINT);
    assert_int_equal(read_hex("8080808080808080808000"), STATUS_BAD_VARINT);
    assert_int_equal(read_hex("ffffffffffffffffff02"), STATUS_BAD_VARINT);
    assert_int_equal(read_hex("8080808080808080807f"), STATUS_BAD_VARINT);
}

static void takes_padded_forms_as_protobuf_parsers_do(void **state)
{
    (void)state;
    uint64_t value = 9;
    struct span bytes = hex_decode("81808000 05");
    struct span rest = bytes;
    assert_int_equal(varint_read(&value, &rest), STATUS_OK);
    assert_true(value == 1);
    assert_int_equal(rest.length, 1);
    hex_free(bytes);
}

static enum status read_length(const char *hex, size_t *length)
{
    struct span bytes = hex_decode(hex);
    struct span rest = bytes;
    enum status status = varint_read_length(length, &rest, 153600);
    assert_int_equal(rest.length == bytes.length, status != STATUS_OK);
    hex_free(bytes);
    return status;
}

static void a_frame_length_may_reach_its_maximum_and_not_pass_it(void **state)
{
    (void)state;
    size_t length = 0;
    assert_int_equal(read_length("80b009", &length), STATUS_OK);
    assert_int_equal(length, 153600);
    assert_int_equal(read_length("81b009", &length), STATUS_TOO_LARGE);
    assert_int_equal(read_length("8080808008", &length), STATUS_TOO_LARGE);
    assert_int_equal(read_length("80808080808080808001", &length), STATUS_TOO_LARGE);
    assert_int_equal(read_length("80b0", &length), STATUS_TRUNCATED);
    assert_int_equal(read_length("80808080808080808002", &length), STATUS_BAD_VARINT);
    assert_int_equal(length, 153600);
}

static void zigzag_orders_numbers_by_their_distance_from_zero(void **state)
{
    (void)state;
    /* the table of protobuf's description */
    assert_true(varint_zigzag(0) == 0);
    assert_true(varint_zigzag(-1) == 1);
    assert_true(varint_zigzag(1) == 2);
    assert_true(varint_zigzag(-2) == 3);
    assert_true(varint_zigzag(INT32_MAX) == 4294967294U);
    assert_true(varint_zigzag(INT32_MIN) == 4294967295U);
    assert_true(varint_zigzag(INT64_MAX) == UINT64_MAX - 1);
    assert_true(varint_zigzag(INT64_MIN) == UINT64_MAX);
    assert_true(varint_unzigzag(UINT64_MAX) == INT64_MIN);
    assert_true(varint_unzigzag(UINT64_MAX - 1) == INT64_MAX);
    assert_true(varint_unzigzag(3) == -2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(reads_the_examples_of_the_specifications),
            cmocka_unit_test(writes_the_examples_in_their_shortest_form),
            cmocka_unit_test(size_grows_by_one_every_seven_bits),
            cmocka_unit_test(asks_for_more_when_cut_short),
            cmocka_unit_test(refuses_an_eleventh_byte_and_a_sixty_fifth_bit),
            cmocka_unit_test(takes_padded_forms_as_protobuf_parsers_do),
            cmocka_unit_test(a_frame_length_may_reach_its_maximum_and_not_pass_it),
            cmocka_unit_test(zigzag_orders_numbers_by_their_distance_from_zero),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
