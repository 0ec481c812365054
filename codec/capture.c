/* SPDX-License-Identifier: MIT */
#include "codec/capture.h"

#include <assert.h>

#include "base/memory.h"
#include "codec/varint.h"

enum {
    TIME_BYTES = 8,
    PEER_BYTES = 4,
    HEAD_BYTES = TIME_BYTES + PEER_BYTES,
    BUFFER_BYTES = 256 * 1024
};

struct capture {
    FILE *stream;
    size_t frame_max;
    size_t frame_left; /* bytes of the current frame that are not read yet */
    uint64_t offset;   /* of the current record */
    uint64_t position;
    uint64_t record_number;
    enum status failure;
};

enum status capture_open_stream(struct capture **out, FILE *stream, size_t frame_max)
{
    struct capture *capture = memory_allocate_zeroed(sizeof(*capture));
    if (capture == NULL) {
        return STATUS_NO_MEMORY;
    }
    capture->stream = stream;
    capture->frame_max = frame_max;
    *out = capture;
    return STATUS_OK;
}

enum status capture_open(struct capture **out, const char *path, size_t frame_max)
{
    FILE *stream = fopen(path, "rb");
    if (stream == NULL) {
        return STATUS_SYSTEM;
    }
    setvbuf(stream, NULL, _IOFBF, BUFFER_BYTES);
    enum status status = capture_open_stream(out, stream, frame_max);
    if (status != STATUS_OK) {
        fclose(stream);
    }
    return status;
}

void capture_close(struct capture **capture)
{
    if (*capture == NULL) {
        return;
    }
    fclose((*capture)->stream);
    memory_free(*capture);
    *capture = NULL;
}

static size_t read_some(struct capture *capture, uint8_t *out, size_t length)
{
    size_t got = fread(out, 1, length, capture->stream);
    capture->position += got;
    return got;
}

static enum status fail(struct capture *capture, enum status status)
{
    capture->failure = status;
    return status;
}

static enum status fail_short(struct capture *capture)
{
    return fail(capture, ferror(capture->stream) != 0 ? STATUS_SYSTEM : STATUS_TRUNCATED);
}

/* Byte by byte, since it is not known how many there are. */
static enum status read_frame_length(struct capture *capture, size_t *out)
{
    uint8_t bytes[VARINT_MAX_BYTES];
    size_t count = 0;
    enum status status;
    do {
        if (read_some(capture, &bytes[count], 1) == 0) {
            return fail_short(capture);
        }
        count++;
        struct span rest = span_of(bytes, count);
        status = varint_read_length(out, &rest, capture->frame_max);
    } while (status == STATUS_TRUNCATED);
    return status == STATUS_OK ? STATUS_OK : fail(capture, status);
}

static uint64_t read_big_endian(const uint8_t *bytes, size_t count)
{
    uint64_t value = 0;
    for (size_t i = 0; i < count; i++) {
        value = value << 8 | bytes[i];
    }
    return value;
}

enum status capture_next(struct capture *capture, struct capture_record *out, bool *has_record)
{
    uint8_t head[HEAD_BYTES];
    *has_record = false;
    if (capture->failure != STATUS_OK) {
        return capture->failure;
    }
    assert(capture->frame_left == 0);
    capture->offset = capture->position;
    capture->record_number++;
    size_t got = read_some(capture, head, sizeof(head));
    if (got == 0 && ferror(capture->stream) == 0) {
        capture->record_number--;
        return STATUS_OK;
    }
    if (got < sizeof(head)) {
        return fail_short(capture);
    }
    enum status status = read_frame_length(capture, &out->frame_length);
    if (status != STATUS_OK) {
        return status;
    }
    out->received_ns = (int64_t)read_big_endian(head, TIME_BYTES);
    out->peer = (uint32_t)read_big_endian(head + TIME_BYTES, PEER_BYTES);
    capture->frame_left = out->frame_length;
    *has_record = true;
    return STATUS_OK;
}

enum status capture_read_frame(struct capture *capture, uint8_t *out)
{
    size_t length = capture->frame_left;
    if (capture->failure != STATUS_OK) {
        return capture->failure;
    }
    capture->frame_left = 0;
    return read_some(capture, out, length) == length ? STATUS_OK : fail_short(capture);
}

uint64_t capture_offset(const struct capture *capture)
{
    return capture->offset;
}

uint64_t capture_record_number(const struct capture *capture)
{
    return capture->record_number;
}
