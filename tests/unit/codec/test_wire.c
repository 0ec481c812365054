/* SPDX-License-Identifier: MIT */
#include "codec/wire.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>

#include <cmocka.h>

#include "tests/support/hex.h"

static enum status check_hex(const char *hex)
{
    struct span bytes = hex_decode(hex);
    enum status status = wire_check(bytes);
    hex_free(bytes);
    return status;
}

static void yields_each_field_with_its_whole_tag(void **state)
{
    (void)state;
    struct wire_field field;
    struct span bytes = hex_decode("0a03010203 189601 ba01 01ff");
    struct span rest = bytes;
    assert_int_equal(wire_next(&field, &rest), STATUS_OK);
    assert_true(field.tag == WIRE_TAG(1, WIRE_LENGTH));
    assert_ptr_equal(field.bytes.bytes, bytes.bytes + 2);
    assert_int_equal(field.bytes.length, 3);
    assert_int_equal(wire_next(&field, &rest), STATUS_OK);
    assert_true(field.tag == WIRE_TAG(3, WIRE_VARINT));
    assert_true(field.number == 150);
    assert_int_equal(wire_next(&field, &rest), STATUS_OK);
    assert_true(field.tag == WIRE_TAG(23, WIRE_LENGTH));
    assert_int_equal(field.bytes.length, 1);
    assert_int_equal(rest.length, 0);
    hex_free(bytes);
}

static void skips_fixed_fields_by_their_width(void **state)
{
    (void)state;
    assert_int_equal(check_hex("0d01020304 090102030405060708 0800"), STATUS_OK);
    assert_int_equal(check_hex("0d010203"), STATUS_TRUNCATED);
    assert_int_equal(check_hex("0901020304050607"), STATUS_TRUNCATED);
}

static void refuses_groups_and_undefined_wire_types(void **state)
{
    (void)state;
    assert_int_equal(check_hex("0b0c"), STATUS_BAD_FIELD);
    assert_int_equal(check_hex("0c"), STATUS_BAD_FIELD);
    assert_int_equal(check_hex("0e00"), STATUS_BAD_FIELD);
    assert_int_equal(check_hex("0f00"), STATUS_BAD_FIELD);
}

static void refuses_field_number_zero_however_it_is_written(void **state)
{
    (void)state;
    assert_int_equal(check_hex("0000"), STATUS_BAD_FIELD);
    assert_int_equal(check_hex("0200"), STATUS_BAD_FIELD);
    assert_int_equal(check_hex("820000"), STATUS_BAD_FIELD);
}

static void refuses_tags_and_lengths_of_more_than_five_bytes(void **state)
{
    (void)state;
    assert_int_equal(check_hex("8a8080800000"), STATUS_OK);
    assert_int_equal(check_hex("8a808080800000"), STATUS_BAD_VARINT);
    assert_int_equal(check_hex("0a8080808000"), STATUS_OK);
    assert_int_equal(check_hex("0a808080808000"), STATUS_BAD_VARINT);
}

static void never_reads_past_a_length_that_lies(void **state)
{
    (void)state;
    assert_int_equal(check_hex("0a"), STATUS_TRUNCATED);
    assert_int_equal(check_hex("0a01"), STATUS_TRUNCATED);
    assert_int_equal(check_hex("0a0301 02"), STATUS_TRUNCATED);
    assert_int_equal(check_hex("0a8001"), STATUS_TRUNCATED);
    assert_int_equal(check_hex("0affffffff07 00"), STATUS_TRUNCATED);
    assert_int_equal(check_hex("0a8080808008 00"), STATUS_TRUNCATED);
    assert_int_equal(check_hex("0affffffff0f 00"), STATUS_TRUNCATED);
    assert_int_equal(check_hex("0a80808080808080808001 00"), STATUS_BAD_VARINT);
    assert_int_equal(check_hex("0affffffffffffffffff01 00"), STATUS_BAD_VARINT);
}

static void writes_what_the_sizes_say(void **state)
{
    (void)state;
    uint8_t out[16];
    struct span expected = hex_decode("aa01 03 010203 f801 9601");
    struct span content = span_of(expected.bytes + 3, 3);
    uint8_t *at = wire_write_bytes(out, WIRE_TAG(21, WIRE_LENGTH), content);
    assert_int_equal(at - out, wire_bytes_size(WIRE_TAG(21, WIRE_LENGTH), 3));
    uint8_t *end = wire_write_number(at, WIRE_TAG(31, WIRE_VARINT), 150);
    assert_int_equal(end - at, wire_number_size(WIRE_TAG(31, WIRE_VARINT), 150));
    assert_int_equal(end - out, expected.length);
    assert_memory_equal(out, expected.bytes, expected.length);
    hex_free(expected);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(yields_each_field_with_its_whole_tag),
            cmocka_unit_test(skips_fixed_fields_by_their_width),
            cmocka_unit_test(refuses_groups_and_undefined_wire_types),
            cmocka_unit_test(refuses_field_number_zero_however_it_is_written),
            cmocka_unit_test(refuses_tags_and_lengths_of_more_than_five_bytes),
            cmocka_unit_test(never_reads_past_a_length_that_lies),
            cmocka_unit_test(writes_what_the_sizes_say),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
