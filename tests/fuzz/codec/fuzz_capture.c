/* SPDX-License-Identifier: MIT */

/* Capture files of any content: records are read until the end or the first fault, in bounds. */

#include "codec/capture.h"

#include "tests/support/require.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum {
    FRAME_MAX = 2000
};

static void read_records(struct capture *capture, size_t size)
{
    struct capture_record record;
    bool has_record = true;
    uint64_t count = 0;
    uint64_t offset = 0;
    enum status status = STATUS_OK;
    while (status == STATUS_OK && has_record) {
        status = capture_next(capture, &record, &has_record);
        REQUIRE(status == STATUS_OK || !has_record);
        if (has_record) {
            REQUIRE(record.frame_length <= FRAME_MAX);
            uint8_t *frame = malloc(record.frame_length + 1);
            REQUIRE(frame != NULL);
            count++;
            REQUIRE(capture_record_number(capture) == count);
            REQUIRE(count == 1 || capture_offset(capture) > offset);
            offset = capture_offset(capture);
            status = capture_read_frame(capture, frame);
            free(frame);
        }
    }
    REQUIRE(capture_offset(capture) <= size);
    REQUIRE(status == STATUS_OK || capture_next(capture, &record, &has_record) == status);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct capture *capture = NULL;
    if (size == 0) {
        return 0;
    }
    FILE *stream = fmemopen((void *)(uintptr_t)data, size, "rb");
    REQUIRE(stream != NULL);
    REQUIRE(capture_open_stream(&capture, stream, FRAME_MAX) == STATUS_OK);
    read_records(capture, size);
    capture_close(&capture);
    return 0;
}
