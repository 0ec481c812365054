/* SPDX-License-Identifier: MIT */
#include "codec/base64.h"

#include <string.h>

#include "tests/support/cmocka.h"

/* RFC 4648, section 10. */
static const char *const vectors[][2] = {{"", ""}, {"f", "Zg=="}, {"fo", "Zm8="}, {"foo", "Zm9v"},
        {"foob", "Zm9vYg=="}, {"fooba", "Zm9vYmE="}, {"foobar", "Zm9vYmFy"}};

static void writes_what_the_specification_says(void **state)
{
    char out[64];
    (void)state;
    for (size_t i = 0; i < sizeof(vectors) / sizeof(vectors[0]); i++) {
        size_t length = base64_encode(out, span_of_text(vectors[i][0]));
        assert_int_equal(length, base64_size(strlen(vectors[i][0])));
        assert_int_equal(length, strlen(vectors[i][1]));
        assert_memory_equal(out, vectors[i][1], length);
    }
}

static void assert_decodes(const char *text, const char *bytes)
{
    uint8_t out[64];
    size_t length;
    assert_int_equal(base64_decode(out, &length, span_of_text(text)), STATUS_OK);
    assert_int_equal(length, strlen(bytes));
    assert_memory_equal(out, bytes, length);
}

static void reads_with_and_without_padding(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(vectors) / sizeof(vectors[0]); i++) {
        char bare[16];
        assert_decodes(vectors[i][1], vectors[i][0]);
        strcpy(bare, vectors[i][1]);
        bare[strcspn(bare, "=")] = '\0';
        assert_decodes(bare, vectors[i][0]);
    }
}

static void reads_both_alphabets(void **state)
{
    char out[8];
    (void)state;
    assert_decodes("+/+/", "\xfb\xff\xbf");
    assert_decodes("-_-_", "\xfb\xff\xbf");
    assert_int_equal(base64_encode_url(out, span_of("\xfb\xff\xbf\xff", 4)), 6);
    assert_string_equal(out, "-_-__w");
}

static void refuses_what_is_none(void **state)
{
    static const char *const bad[] = {"A", "AAAAA", "Zg=", "Zm8==", "=",
            "==", "====", "Z===", "Zg= =", "Z g=", "Zm9v\n",
            "Zm9v=", "Zm9v====", "Z=g=", "Hello World!", "\xc3\xa9"};
    uint8_t out[64];
    size_t length;
    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_int_equal(base64_decode(out, &length, span_of_text(bad[i])), STATUS_BAD_FIELD);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(writes_what_the_specification_says),
            cmocka_unit_test(reads_with_and_without_padding),
            cmocka_unit_test(reads_both_alphabets),
            cmocka_unit_test(refuses_what_is_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
