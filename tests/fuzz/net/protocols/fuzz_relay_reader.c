/* SPDX-License-Identifier: MIT */

/*
 * Frames do not depend on how their bytes are cut nor on when there is credit. The first byte says
 * how the bytes are cut, the second when the budget is full; a walk over the bytes at once is the
 * oracle. Nothing stays charged.
 */

#include <stdbool.h>
#include <string.h>

#include "net/protocols/relay_reader.h"
#include "tests/support/require.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum {
    RPC_MAX = 4096,
    BUDGET = 64 * 1024,
    RESERVE = 1024,
    FILL = BUDGET - RESERVE
};

struct reading {
    struct relay_reader reader;
    struct frame_budget *budget;
    struct span expected; /* where the next frame begins */
    uint8_t pattern;      /* when there is no credit */
    unsigned turn;
};

static void check_frame(struct reading *reading, struct frame *frame)
{
    size_t length;
    do {
        enum status status = varint_read_length(&length, &reading->expected, RPC_MAX);
        REQUIRE(status == STATUS_OK);
    } while (length == 0);
    REQUIRE(length == frame_length(frame));
    REQUIRE(length <= reading->expected.length);
    REQUIRE(memcmp(frame_bytes(frame), reading->expected.bytes, length) == 0);
    reading->expected =
            span_of(reading->expected.bytes + length, reading->expected.length - length);
    frame_unref(frame);
}

static size_t reserve(struct reading *reading, size_t wanted, uint8_t **to)
{
    bool is_full = (reading->pattern >> reading->turn++ % 8 & 1) != 0 &&
                   frame_budget_try_charge(reading->budget, FRAME_BUDGET_PARTIAL,
                           FILL - frame_budget_used(reading->budget));
    size_t filled = is_full ? frame_budget_used(reading->budget) : 0;
    size_t charged = reading->reader.frame == NULL ? 0 : frame_charge(reading->reader.length);
    size_t n = relay_reader_reserve(&reading->reader, wanted, to);
    if (is_full) {
        frame_budget_release(reading->budget, filled - charged);
    }
    if (n == 0) {
        REQUIRE(is_full && relay_reader_is_starved(&reading->reader));
        n = relay_reader_reserve(&reading->reader, wanted, to);
    }
    REQUIRE(n > 0 && n <= wanted);
    return n;
}

static enum status read_all(struct reading *reading, struct span bytes, size_t step)
{
    enum status status = STATUS_OK;
    while (status == STATUS_OK && bytes.length > 0) {
        uint8_t *to = NULL;
        struct frame *frame;
        size_t n = reserve(reading, bytes.length < step ? bytes.length : step, &to);
        memcpy(to, bytes.bytes, n);
        bytes = span_of(bytes.bytes + n, bytes.length - n);
        status = relay_reader_commit(&reading->reader, n, &frame);
        if (frame != NULL) {
            check_frame(reading, frame);
        }
    }
    return status;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct reading reading = {0};
    if (size < 2) {
        return 0;
    }
    REQUIRE(frame_budget_create(&reading.budget, BUDGET, RESERVE) == STATUS_OK);
    relay_reader_init(&reading.reader, reading.budget, NULL, RPC_MAX);
    reading.expected = span_of(data + 2, size - 2);
    reading.pattern = data[1];
    (void)read_all(&reading, reading.expected, (size_t)data[0] + 1);
    relay_reader_reset(&reading.reader);
    REQUIRE(frame_budget_used(reading.budget) == 0);
    frame_budget_destroy(&reading.budget);
    return 0;
}
