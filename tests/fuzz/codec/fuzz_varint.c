/* SPDX-License-Identifier: MIT */

/* Varints against arithmetic in 128 bits, and there and back. */

#include "codec/varint.h"

#include "tests/support/require.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

__extension__ typedef unsigned __int128 wide_number;

/* The wide value of the first integer; *used is 0 when it does not end within ten bytes. */
static wide_number read_wide(size_t *used, const uint8_t *data, size_t size)
{
    wide_number value = 0;
    *used = 0;
    for (size_t i = 0; i < size && i < VARINT_MAX_BYTES; i++) {
        value += (wide_number)(data[i] % 128) << (7 * i);
        if (data[i] < 128) {
            *used = i + 1;
            break;
        }
    }
    return value;
}

static void check_length_prefix(struct span bytes, enum status status, uint64_t value)
{
    const size_t limits[] = {0, 127, 153600, SIZE_MAX};
    for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++) {
        size_t length = 0;
        struct span rest = bytes;
        enum status expected = status == STATUS_OK && value > limits[i] ? STATUS_TOO_LARGE : status;
        REQUIRE(varint_read_length(&length, &rest, limits[i]) == expected);
        REQUIRE(expected != STATUS_OK || length == value);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint64_t value = 0;
    size_t used;
    struct span rest = span_of(data, size);
    wide_number wide = read_wide(&used, data, size);
    enum status status = varint_read(&value, &rest);
    if (used == 0) {
        REQUIRE(status == (size >= VARINT_MAX_BYTES ? STATUS_BAD_VARINT : STATUS_TRUNCATED));
    } else {
        REQUIRE(status == (wide > UINT64_MAX ? STATUS_BAD_VARINT : STATUS_OK));
    }
    if (status == STATUS_OK) {
        uint8_t out[VARINT_MAX_BYTES];
        size_t written = (size_t)(varint_write(out, value) - out);
        struct span again = span_of(out, written);
        uint64_t second = 0;
        REQUIRE(value == (uint64_t)wide);
        REQUIRE(rest.length == size - used);
        REQUIRE(written == varint_size(value) && written <= used);
        REQUIRE(varint_read(&second, &again) == STATUS_OK && second == value);
        REQUIRE(varint_zigzag(varint_unzigzag(value)) == value);
    } else {
        REQUIRE(rest.length == size);
    }
    check_length_prefix(span_of(data, size), status, value);
    return 0;
}
