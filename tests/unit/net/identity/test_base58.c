/* SPDX-License-Identifier: MIT */
#include "net/identity/base58.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

#include <cmocka.h>

#include "net/identity/base32.h"
#include "tests/support/hex.h"

struct example {
    const char *hex;
    const char *text;
};

/* The test vectors of draft-msporny-base58, and leading zeros. */
static const struct example base58_examples[] = {
        {"48656c6c6f20576f726c6421", "2NEpo7TZRRrLZSi2U"},
        {"54686520717569636b2062726f776e20666f78206a756d7073206f76657220746865206c617a7920646f672e",
                "USm3fpXnKG5EUBx2ndxBDMPVciP5hGey2Jh4NDv6gmeo1LkMeiKrLJUUBk6Z"},
        {"0000287fb4cd", "11233QC4"},
        {"", ""},
        {"00", "1"},
        {"0000", "11"},
        {"ff", "5Q"},
};

/* RFC 4648, section 10, in lower case and without padding. */
static const struct example base32_examples[] = {
        {"", ""},
        {"66", "my"},
        {"666f", "mzxq"},
        {"666f6f", "mzxw6"},
        {"666f6f62", "mzxw6yq"},
        {"666f6f6261", "mzxw6ytb"},
        {"666f6f626172", "mzxw6ytboi"},
};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static void encodes_and_decodes_the_examples_of_the_draft(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(base58_examples); i++) {
        char text[BASE58_TEXT_SIZE];
        uint8_t bytes[BASE58_MAX_BYTES];
        size_t length = 99;
        struct span expected = hex_decode(base58_examples[i].hex);
        assert_int_equal(base58_encode(text, expected), strlen(base58_examples[i].text));
        assert_string_equal(text, base58_examples[i].text);
        struct span digits = span_of_text(base58_examples[i].text);
        assert_int_equal(base58_decode(bytes, &length, digits), STATUS_OK);
        assert_true(span_equal(span_of(bytes, length), expected));
        hex_free(expected);
    }
}

static void encodes_and_decodes_the_longest_bytes_of_either_extreme(void **state)
{
    (void)state;
    const uint8_t fills[] = {0x00, 0x01, 0xff};
    for (size_t i = 0; i < COUNT(fills); i++) {
        char text[BASE58_TEXT_SIZE];
        uint8_t bytes[BASE58_MAX_BYTES];
        uint8_t decoded[BASE58_MAX_BYTES];
        size_t length = 0;
        memset(bytes, fills[i], sizeof(bytes));
        base58_encode(text, span_of(bytes, sizeof(bytes)));
        assert_int_equal(base58_decode(decoded, &length, span_of_text(text)), STATUS_OK);
        assert_true(span_equal(span_of(decoded, length), span_of(bytes, sizeof(bytes))));
    }
}

static void refuses_characters_outside_the_alphabet(void **state)
{
    (void)state;
    const char *const bad[] = {"0", "O", "I", "l", "11 1", "1+", "\x80", "abc\n"};
    uint8_t bytes[BASE58_MAX_BYTES];
    size_t length;
    for (size_t i = 0; i < COUNT(bad); i++) {
        assert_int_equal(base58_decode(bytes, &length, span_of_text(bad[i])), STATUS_BAD_FIELD);
    }
    assert_int_equal(base58_decode(bytes, &length, span_of("1\0", 2)), STATUS_BAD_FIELD);
}

static void refuses_numbers_of_more_bytes_than_there_is_room_for(void **state)
{
    (void)state;
    char text[BASE58_TEXT_SIZE + 1];
    uint8_t bytes[BASE58_MAX_BYTES];
    size_t length;
    memset(text, 'z', sizeof(text));
    for (size_t n = BASE58_TEXT_SIZE - 1; n <= sizeof(text); n++) {
        assert_int_equal(base58_decode(bytes, &length, span_of(text, n)), STATUS_TOO_LARGE);
    }
    memset(text, '1', sizeof(text));
    assert_int_equal(
            base58_decode(bytes, &length, span_of(text, BASE58_MAX_BYTES + 1)), STATUS_TOO_LARGE);
}

static void expect_base32(const char *text, struct span expected)
{
    uint8_t bytes[8];
    size_t length = 99;
    assert_int_equal(base32_decode(bytes, sizeof(bytes), &length, span_of_text(text)), STATUS_OK);
    assert_true(span_equal(span_of(bytes, length), expected));
}

static void decodes_the_base32_examples_of_the_standard_in_either_case(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(base32_examples); i++) {
        char upper[16] = "";
        struct span expected = hex_decode(base32_examples[i].hex);
        const char *text = base32_examples[i].text;
        for (size_t j = 0; text[j] != '\0'; j++) {
            bool is_letter = text[j] >= 'a' && text[j] <= 'z';
            upper[j] = (char)(is_letter ? text[j] - 'a' + 'A' : text[j]);
        }
        expect_base32(text, expected);
        expect_base32(upper, expected);
        hex_free(expected);
    }
}

static void refuses_base32_with_padding_spare_bits_or_too_much(void **state)
{
    (void)state;
    const char *const bad[] = {"m", "mz", "mzx", "my======", "m1", "m8", "mzxw6z", "a a"};
    uint8_t bytes[8];
    size_t length;
    for (size_t i = 0; i < COUNT(bad); i++) {
        assert_int_equal(base32_decode(bytes, sizeof(bytes), &length, span_of_text(bad[i])),
                STATUS_BAD_FIELD);
    }
    assert_int_equal(
            base32_decode(bytes, 5, &length, span_of_text("mzxw6ytboi")), STATUS_TOO_LARGE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(encodes_and_decodes_the_examples_of_the_draft),
            cmocka_unit_test(encodes_and_decodes_the_longest_bytes_of_either_extreme),
            cmocka_unit_test(refuses_characters_outside_the_alphabet),
            cmocka_unit_test(refuses_numbers_of_more_bytes_than_there_is_room_for),
            cmocka_unit_test(decodes_the_base32_examples_of_the_standard_in_either_case),
            cmocka_unit_test(refuses_base32_with_padding_spare_bits_or_too_much),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
