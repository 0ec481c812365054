/* SPDX-License-Identifier: MIT */
#include "codec/utf8.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include "tests/support/hex.h"

static bool is_valid(const char *hex)
{
    struct span bytes = hex_decode(hex);
    bool valid = utf8_is_valid(bytes);
    hex_free(bytes);
    return valid;
}

static void takes_ascii_and_every_length_of_character(void **state)
{
    (void)state;
    assert_true(utf8_is_valid(span_of(NULL, 0)));
    assert_true(utf8_is_valid(span_of_text("/chat/1/room-a/proto")));
    assert_true(utf8_is_valid(span_of_text("/日本/1/ünï/proto")));
    assert_true(is_valid("00"));
    assert_true(is_valid("c280 dfbf e0a080 ed9fbf ee8080 efbfbf f0908080 f48fbfbf"));
}

static void refuses_overlong_forms_and_surrogates(void **state)
{
    (void)state;
    assert_false(is_valid("c080"));
    assert_false(is_valid("c1bf"));
    assert_false(is_valid("e09fbf"));
    assert_false(is_valid("eda080"));
    assert_false(is_valid("f08fbfbf"));
}

static void refuses_what_lies_above_the_last_code_point(void **state)
{
    (void)state;
    assert_false(is_valid("f4908080"));
    assert_false(is_valid("f5808080"));
    assert_false(is_valid("ff"));
}

static void refuses_characters_that_are_cut_short_or_stray(void **state)
{
    (void)state;
    assert_false(is_valid("80"));
    assert_false(is_valid("c3"));
    assert_false(is_valid("e697"));
    assert_false(is_valid("f09f98"));
    assert_false(is_valid("c328"));
    assert_false(is_valid("e6 28 a5"));
    assert_false(is_valid("6161616161616161 ff"));
    assert_false(is_valid("61616161616161c3 28"));
}

/* Against the arithmetic definition: every code point that is no surrogate, and no other. */
static void agrees_with_the_definition_on_all_three_byte_sequences(void **state)
{
    (void)state;
    for (uint32_t bits = 0; bits < 0x10000; bits++) {
        uint8_t bytes[3] = {(uint8_t)(0xe0 | bits >> 12), (uint8_t)(0x80 | (bits >> 6 & 0x3f)),
                (uint8_t)(0x80 | (bits & 0x3f))};
        bool expected = bits >= 0x800 && (bits < 0xd800 || bits > 0xdfff);
        assert_int_equal(utf8_is_valid(span_of(bytes, sizeof(bytes))), expected);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(takes_ascii_and_every_length_of_character),
            cmocka_unit_test(refuses_overlong_forms_and_surrogates),
            cmocka_unit_test(refuses_what_lies_above_the_last_code_point),
            cmocka_unit_test(refuses_characters_that_are_cut_short_or_stray),
            cmocka_unit_test(agrees_with_the_definition_on_all_three_byte_sequences),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
