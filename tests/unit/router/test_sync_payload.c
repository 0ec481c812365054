/* SPDX-License-Identifier: MIT */

/* Payloads written by hand from the description of the wire format. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "router/sync_payload.h"

/* 1,700,000,000 s and one hour, in nanoseconds, as LEB128. */
#define START_BYTES 0x80, 0x80, 0xA8, 0xB1, 0xE3, 0x9F, 0xE7, 0xCB, 0x17
#define HOUR_BYTES  0x80, 0xC0, 0xE2, 0x85, 0xE3, 0x68
#define START_NS    INT64_C(1700000000000000000)
#define HOUR_NS     INT64_C(3600000000000)
#define HASH_OF(b)                                                                                 \
    b, b, b, b, b, b, b, b, b, b, b, b, b, b, b, b, b, b, b, b, b, b, b, b, b, b, b, b, b, b, b, b

static const uint8_t whole[] = {
        0x01, 0x02, 'a', 'b',            /* one pubsub topic */
        0x00,                            /* all content topics */
        START_BYTES,                     /* the first timestamp */
        HOUR_BYTES, 0x01, HASH_OF(0xAA), /* a fingerprint */
        0xAC, 0x02, 0x00,                /* 300 ns on: skip */
        0x00, 0x02, 0x11, 0x22, 0x02,    /* the same time, two bytes of hash: an item set */
        0x02,                            /* of two */
        START_BYTES, HASH_OF(0x01),      /* at the start */
        0xE8, 0x07, HASH_OF(0x02),       /* 1,000 ns later */
        0x01,                            /* reconciled */
};

struct parsed {
    struct span pubsub[4];
    struct span content[4];
    size_t pubsub_count;
    size_t content_count;
    struct sync_payload_range ranges[8];
    size_t range_count;
};

static enum status parse(struct parsed *out, struct span bytes)
{
    struct sync_payload_reader reader = {.bytes = bytes};
    *out = (struct parsed){.range_count = 0};
    enum status status = sync_payload_read_topics(&reader, out->pubsub, 4, &out->pubsub_count, 16);
    if (status == STATUS_OK) {
        status = sync_payload_read_topics(&reader, out->content, 4, &out->content_count, 16);
    }
    if (status == STATUS_OK) {
        status = sync_payload_read_start(&reader);
    }
    while (status == STATUS_OK && sync_payload_has_range(&reader)) {
        assert_true(out->range_count < 8);
        status = sync_payload_read_range(&reader, &out->ranges[out->range_count]);
        out->range_count += status == STATUS_OK;
    }
    return status;
}

static void reads_every_kind_of_range(void **state)
{
    (void)state;
    struct parsed parsed;
    assert_int_equal(parse(&parsed, span_of(whole, sizeof(whole))), STATUS_OK);
    assert_int_equal(parsed.pubsub_count, 1);
    assert_true(span_equal(parsed.pubsub[0], span_of_text("ab")));
    assert_int_equal(parsed.content_count, 0);
    assert_int_equal(parsed.range_count, 3);

    const uint8_t fingerprint[] = {HASH_OF(0xAA)};
    const uint8_t zero[ID_HASH_BYTES] = {0};
    const struct sync_payload_range *range = &parsed.ranges[0];
    assert_int_equal(range->type, SYNC_RANGE_FINGERPRINT);
    assert_int_equal(range->bounds.from.timestamp_ns, START_NS);
    assert_int_equal(range->bounds.to.timestamp_ns, START_NS + HOUR_NS);
    assert_memory_equal(range->bounds.to.hash, zero, ID_HASH_BYTES);
    assert_memory_equal(range->fingerprint, fingerprint, ID_HASH_BYTES);

    range = &parsed.ranges[1];
    assert_int_equal(range->type, SYNC_RANGE_SKIP);
    assert_int_equal(range->bounds.from.timestamp_ns, START_NS + HOUR_NS);
    assert_int_equal(range->bounds.to.timestamp_ns, START_NS + HOUR_NS + 300);

    range = &parsed.ranges[2];
    const uint8_t upper[ID_HASH_BYTES] = {0x11, 0x22};
    assert_int_equal(range->type, SYNC_RANGE_ITEM_SET);
    assert_int_equal(range->bounds.from.timestamp_ns, START_NS + HOUR_NS + 300);
    assert_memory_equal(range->bounds.from.hash, zero, ID_HASH_BYTES);
    assert_int_equal(range->bounds.to.timestamp_ns, START_NS + HOUR_NS + 300);
    assert_memory_equal(range->bounds.to.hash, upper, ID_HASH_BYTES);
    assert_int_equal(range->item_count, 2);
    assert_true(range->is_reconciled);

    struct sync_item_walk walk = {.position = 0};
    const uint8_t hashes[2][ID_HASH_BYTES] = {{HASH_OF(0x01)}, {HASH_OF(0x02)}};
    assert_true(sync_item_next(&walk, range));
    assert_int_equal(walk.key.timestamp_ns, START_NS);
    assert_memory_equal(walk.key.hash, hashes[0], ID_HASH_BYTES);
    assert_true(sync_item_next(&walk, range));
    assert_int_equal(walk.key.timestamp_ns, START_NS + 1000);
    assert_memory_equal(walk.key.hash, hashes[1], ID_HASH_BYTES);
    assert_false(sync_item_next(&walk, range));
}

static void writes_the_same_bytes(void **state)
{
    (void)state;
    struct span topic = span_of_text("ab");
    struct sync_scope scope = {.pubsub_topics = &topic, .pubsub_topic_count = 1};
    struct sync_bytes bytes = {.length = 0};
    struct sync_payload_writer writer;
    struct id_key to = {.timestamp_ns = START_NS + HOUR_NS};
    const uint8_t fingerprint[] = {HASH_OF(0xAA)};
    struct id_key items[2] = {
            {.timestamp_ns = START_NS, .hash = {HASH_OF(0x01)}},
            {.timestamp_ns = START_NS + 1000, .hash = {HASH_OF(0x02)}},
    };
    sync_payload_begin(&writer, &bytes, &scope, START_NS);
    sync_payload_fingerprint(&writer, &to, fingerprint);
    /* two skips in a row are one */
    to.timestamp_ns += 100;
    sync_payload_skip(&writer, &to);
    to.timestamp_ns += 200;
    sync_payload_skip(&writer, &to);
    to.hash[0] = 0x11;
    to.hash[1] = 0x22;
    sync_payload_item_set(&writer, &to, 2);
    sync_payload_item(&writer, &items[0]);
    sync_payload_item(&writer, &items[1]);
    sync_payload_item_set_end(&writer, true);
    assert_int_equal(sync_payload_finish(&writer), STATUS_OK);
    assert_int_equal(bytes.length, sizeof(whole));
    assert_memory_equal(bytes.bytes, whole, sizeof(whole));
    free(bytes.bytes);
}

static void nothing_but_skips_is_one_zero_byte(void **state)
{
    (void)state;
    struct sync_scope scope = {.pubsub_topic_count = 0};
    struct sync_bytes bytes = {.length = 0};
    struct sync_payload_writer writer;
    struct id_key to = {.timestamp_ns = START_NS + HOUR_NS};
    sync_payload_begin(&writer, &bytes, &scope, START_NS);
    sync_payload_skip(&writer, &to);
    assert_int_equal(sync_payload_finish(&writer), STATUS_OK);
    assert_int_equal(bytes.length, 1);
    assert_int_equal(bytes.bytes[0], 0);
    free(bytes.bytes);
}

static void nine_bytes_follow_wherever_the_reference_wants_them(void **state)
{
    (void)state;
    struct sync_scope scope = {.pubsub_topic_count = 0};
    struct sync_bytes bytes = {.length = 0};
    struct sync_payload_writer writer;
    struct id_key to = {.timestamp_ns = 6};
    sync_payload_begin(&writer, &bytes, &scope, 5);
    sync_payload_item_set(&writer, &to, 0);
    sync_payload_item_set_end(&writer, true);
    assert_int_equal(sync_payload_finish(&writer), STATUS_OK);
    /* counts, the time 5 in nine bytes, then one later: an item set of none, reconciled */
    const uint8_t expected[] = {0x00, 0x00, 0x85, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x00,
            0x01, 0x02, 0x00, 0x01};
    assert_int_equal(bytes.length, sizeof(expected));
    assert_memory_equal(bytes.bytes, expected, sizeof(expected));
    free(bytes.bytes);
}

static void every_cut_is_seen_but_one_that_leaves_whole_ranges(void **state)
{
    (void)state;
    size_t ends[] = {14, 53, 56}; /* before the first range, after the first, after the second */
    for (size_t length = 2; length < sizeof(whole); length++) {
        uint8_t *exact = malloc(length); /* so that a read past the end is seen */
        assert_non_null(exact);
        memcpy(exact, whole, length);
        struct parsed parsed;
        bool is_whole = false;
        for (size_t i = 0; i < 3; i++) {
            /* the last byte alone is not read */
            is_whole = is_whole || length == ends[i] || length == ends[i] + 1;
        }
        assert_int_equal(
                parse(&parsed, span_of(exact, length)), is_whole ? STATUS_OK : STATUS_TRUNCATED);
        free(exact);
    }
}

static void ends_with_no_byte_or_one(void **state)
{
    (void)state;
    assert_true(sync_payload_is_end(span_of(NULL, 0)));
    assert_true(sync_payload_is_end(span_of("\x00", 1)));
    assert_true(sync_payload_is_end(span_of("\x07", 1)));
    assert_false(sync_payload_is_end(span_of("\x00\x00", 2)));
}

static enum status parse_bytes(const uint8_t *bytes, size_t length)
{
    struct parsed parsed;
    return parse(&parsed, span_of(bytes, length));
}

#define ASSERT_REFUSED(status, ...)                                                                \
    do {                                                                                           \
        const uint8_t bytes[] = {__VA_ARGS__};                                                     \
        assert_int_equal(parse_bytes(bytes, sizeof(bytes)), status);                               \
    } while (0)

static void refuses_what_the_format_does_not_have(void **state)
{
    (void)state;
    /* a range of type 3; 33 bytes of hash; reconciled = 2 */
    ASSERT_REFUSED(STATUS_BAD_FIELD, 0x00, 0x00, START_BYTES, 0x01, 0x03, 0x00, 0x00);
    ASSERT_REFUSED(STATUS_BAD_FIELD, 0x00, 0x00, START_BYTES, 0x00, 0x21, HASH_OF(1), 1, 0x00);
    ASSERT_REFUSED(STATUS_BAD_FIELD, 0x00, 0x00, START_BYTES, 0x01, 0x02, 0x00, 0x02);
    /* items that do not ascend: twice the same */
    ASSERT_REFUSED(STATUS_BAD_FIELD, 0x00, 0x00, START_BYTES, 0x01, 0x02, 0x02, START_BYTES,
            HASH_OF(1), 0x00, HASH_OF(1), 0x00);
    /* a time past what 63 bits hold, in a bound and in an item */
    ASSERT_REFUSED(STATUS_BAD_FIELD, 0x00, 0x00, START_BYTES, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF,
            0xFF, 0xFF, 0x7F, 0x00, 0x00);
    ASSERT_REFUSED(STATUS_BAD_VARINT, 0x00, 0x00, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF,
            0xFF, 0x01, 0x00);
    /* more topics than the limit, a longer one, and counts of 2^63 - 1 */
    ASSERT_REFUSED(STATUS_TOO_LARGE, 0x05, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, START_BYTES);
    ASSERT_REFUSED(STATUS_TOO_LARGE, 0x01, 0x11, HASH_OF('t'), START_BYTES);
    ASSERT_REFUSED(STATUS_TOO_LARGE, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x7F, 0x00);
    ASSERT_REFUSED(STATUS_TRUNCATED, 0x00, 0x00, START_BYTES, 0x01, 0x02, 0xFF, 0xFF, 0xFF, 0xFF,
            0xFF, 0xFF, 0xFF, 0xFF, 0x7F, 0x00);
}

static void takes_numbers_that_are_longer_than_need_be(void **state)
{
    (void)state;
    const uint8_t bytes[] = {0x80, 0x00, 0x80, 0x80, 0x00, 0x85, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80,
            0x80, 0x80, 0x00, 0x81, 0x00, 0x00};
    struct parsed parsed;
    assert_int_equal(parse(&parsed, span_of(bytes, sizeof(bytes))), STATUS_OK);
    assert_int_equal(parsed.range_count, 1);
    assert_int_equal(parsed.ranges[0].bounds.from.timestamp_ns, 5);
    assert_int_equal(parsed.ranges[0].bounds.to.timestamp_ns, 6);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(reads_every_kind_of_range),
            cmocka_unit_test(writes_the_same_bytes),
            cmocka_unit_test(nothing_but_skips_is_one_zero_byte),
            cmocka_unit_test(nine_bytes_follow_wherever_the_reference_wants_them),
            cmocka_unit_test(every_cut_is_seen_but_one_that_leaves_whole_ranges),
            cmocka_unit_test(ends_with_no_byte_or_one),
            cmocka_unit_test(refuses_what_the_format_does_not_have),
            cmocka_unit_test(takes_numbers_that_are_longer_than_need_be),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
