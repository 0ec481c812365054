/* SPDX-License-Identifier: MIT */
#include "codec/capture.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "tests/support/hex.h"

#define HEAD "000000000000000a 00000007 "

enum {
    FRAME_MAX = 1000
};

static struct capture *open_bytes(struct span bytes)
{
    struct capture *capture = NULL;
    FILE *stream = fmemopen((void *)(uintptr_t)bytes.bytes, bytes.length, "rb");
    assert_non_null(stream);
    assert_int_equal(capture_open_stream(&capture, stream, FRAME_MAX), STATUS_OK);
    return capture;
}

static void reads_records_one_by_one_until_the_end(void **state)
{
    (void)state;
    struct capture_record record;
    bool has_record;
    uint8_t frame[4];
    struct span bytes = hex_decode("18867bd59ff80000 01020304 03 aabbcc" HEAD "00");
    struct capture *capture = open_bytes(bytes);
    assert_int_equal(capture_next(capture, &record, &has_record), STATUS_OK);
    assert_true(has_record);
    assert_true(record.received_ns == 0x18867bd59ff80000);
    assert_int_equal(record.peer, 0x01020304);
    assert_int_equal(record.frame_length, 3);
    assert_int_equal(capture_read_frame(capture, frame), STATUS_OK);
    assert_memory_equal(frame, "\xaa\xbb\xcc", 3);
    assert_int_equal(capture_next(capture, &record, &has_record), STATUS_OK);
    assert_true(has_record);
    assert_int_equal(record.peer, 7);
    assert_int_equal(record.frame_length, 0);
    assert_int_equal(capture_read_frame(capture, frame), STATUS_OK);
    assert_int_equal(capture_offset(capture), 16);
    assert_int_equal(capture_record_number(capture), 2);
    assert_int_equal(capture_next(capture, &record, &has_record), STATUS_OK);
    assert_false(has_record);
    assert_int_equal(capture_record_number(capture), 2);
    capture_close(&capture);
    assert_null(capture);
    hex_free(bytes);
}

struct damage {
    const char *hex;
    enum status status;
};

/* Reads on until something is wrong; the second record is the damaged one. */
static enum status read_all(struct capture *capture)
{
    struct capture_record record;
    bool has_record = true;
    uint8_t frame[FRAME_MAX];
    enum status status = STATUS_OK;
    while (status == STATUS_OK && has_record) {
        status = capture_next(capture, &record, &has_record);
        if (status == STATUS_OK && has_record) {
            assert_true(record.frame_length <= FRAME_MAX);
            status = capture_read_frame(capture, frame);
        }
    }
    return status;
}

static void names_what_is_wrong_with_a_record_and_where_it_begins(void **state)
{
    (void)state;
    const struct damage damages[] = {
            {"00", STATUS_TRUNCATED}, {"000000000000000a 000000", STATUS_TRUNCATED},
            {HEAD, STATUS_TRUNCATED}, {HEAD "80", STATUS_TRUNCATED},
            {HEAD "03 aabb", STATUS_TRUNCATED},
            {HEAD "e807 aabb", STATUS_TRUNCATED},               /* the maximum */
            {HEAD "e907 aabb", STATUS_TOO_LARGE},               /* one more */
            {HEAD "8080808008", STATUS_TOO_LARGE},              /* 2^31 */
            {HEAD "80808080808080808001", STATUS_TOO_LARGE},    /* 2^63 */
            {HEAD "80808080808080808002", STATUS_BAD_VARINT},   /* 2^64 */
            {HEAD "8080808080808080808001", STATUS_BAD_VARINT}, /* eleven bytes */
    };
    for (size_t i = 0; i < sizeof(damages) / sizeof(damages[0]); i++) {
        struct capture_record record;
        bool has_record;
        char hex[200];
        snprintf(hex, sizeof(hex), "%s%s", HEAD "01 aa", damages[i].hex);
        struct span bytes = hex_decode(hex);
        struct capture *capture = open_bytes(bytes);
        assert_int_equal(read_all(capture), damages[i].status);
        assert_int_equal(capture_offset(capture), 14);
        assert_int_equal(capture_record_number(capture), 2);
        assert_int_equal(capture_next(capture, &record, &has_record), damages[i].status);
        assert_false(has_record);
        capture_close(&capture);
        hex_free(bytes);
    }
}

static void says_when_a_file_cannot_be_opened_or_read(void **state)
{
    (void)state;
    struct capture *capture = NULL;
    assert_int_equal(capture_open(&capture, "tests/captures/none.cap", 1), STATUS_SYSTEM);
    assert_int_equal(errno, ENOENT);
    assert_null(capture);
    struct capture_record record;
    bool has_record;
    assert_int_equal(capture_open(&capture, "tests/captures", 1), STATUS_OK);
    assert_int_equal(capture_next(capture, &record, &has_record), STATUS_SYSTEM);
    capture_close(&capture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
            cmocka_unit_test(reads_records_one_by_one_until_the_end),
            cmocka_unit_test(names_what_is_wrong_with_a_record_and_where_it_begins),
            cmocka_unit_test(says_when_a_file_cannot_be_opened_or_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
