/* SPDX-License-Identifier: MIT */
#include "hash/keccak256.h"

#include <string.h>

#include "base/hex.h"
#include "tests/support/cmocka.h"

static void assert_hash(struct span message, const char *hex)
{
    uint8_t hash[KECCAK256_BYTES];
    char text[2 * KECCAK256_BYTES + 1];
    keccak256(hash, message);
    hex_encode(text, span_of(hash, sizeof(hash)));
    assert_string_equal(text, hex);
}

/* The hashes that Ethereum is full of: of nothing, of "abc", of the RLP of nothing, of a signature. */
static void known_answers(void **state)
{
    (void)state;
    assert_hash(
            span_of_text(""), "c5d2460186f7233c927e7db2dcc703c0e500b653ca82273b7bfad8045d85a470");
    assert_hash(span_of_text("abc"),
            "4e03657aea45a94fc7d47ba826c8d667c0d1e6e33a64a036ec44f58fa12d6c45");
    assert_hash(
            span_of("\x80", 1), "56e81f171bcc55a6ff8345e692c0f86e5b48e01b996cadc001622fb5e363b421");
    assert_hash(span_of_text("Transfer(address,address,uint256)"),
            "ddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(known_answers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
