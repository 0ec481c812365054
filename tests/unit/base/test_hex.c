/* SPDX-License-Identifier: MIT */
#include "base/hex.h"

#include "tests/support/cmocka.h"

static void writes_two_lower_case_digits_a_byte(void **state)
{
    char text[9];
    (void)state;
    hex_encode(text, span_of("\x00\x7f\xab\xff", 4));
    assert_string_equal(text, "007fabff");
}

static void reads_both_cases_with_and_without_prefix(void **state)
{
    uint8_t bytes[3];
    (void)state;
    assert_int_equal(hex_decode(bytes, 3, "00aBfF"), STATUS_OK);
    assert_memory_equal(bytes, "\x00\xab\xff", 3);
    assert_int_equal(hex_decode(bytes, 3, "0x7f00Aa"), STATUS_OK);
    assert_memory_equal(bytes, "\x7f\x00\xaa", 3);
}

static void refuses_other_lengths_and_characters(void **state)
{
    static const char *const bad[] = {"", "00", "0011", "00112233", "00112g", "0x", "0011 2"};
    uint8_t bytes[3];
    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_int_equal(hex_decode(bytes, 3, bad[i]), STATUS_BAD_ARGUMENT);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(writes_two_lower_case_digits_a_byte),
            cmocka_unit_test(reads_both_cases_with_and_without_prefix),
            cmocka_unit_test(refuses_other_lengths_and_characters),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
