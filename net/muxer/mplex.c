/* SPDX-License-Identifier: MIT */

/*
 * The frames of mplex: two variable-length integers (id * 8 + flag, length) and the body. There are
 * no windows. Ids count on each side on its own, so the flag also says who opened the stream.
 */

#include <assert.h>

#include "base/metrics.h"
#include "net/muxer/muxer_private.h"

enum {
    VARINT_MAX = 9, /* bytes of a header */
    LENGTH_MAX = 4, /* bytes of a length: one more than MPLEX_MESSAGE_MAX takes */
    FLAG_BITS = 3,
    FLAG_MASK = 7
};

/* Receiver and initiator tell what the sender of the frame is to the stream. */
enum frame_flag {
    FLAG_NEW_STREAM,
    FLAG_MESSAGE_RECEIVER,
    FLAG_MESSAGE_INITIATOR,
    FLAG_CLOSE_RECEIVER,
    FLAG_CLOSE_INITIATOR,
    FLAG_RESET_RECEIVER,
    FLAG_RESET_INITIATOR
};

/* Length of the varint at bytes; 0 when it does not end before length. */
static size_t varint_length(const uint8_t *bytes, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        if (bytes[i] < 0x80) {
            return i + 1;
        }
    }
    return 0;
}

static uint64_t load_varint(const uint8_t *bytes, size_t length)
{
    uint64_t value = 0;
    for (size_t i = 0; i < length; i++) {
        value |= (uint64_t)(bytes[i] & 0x7f) << (7 * i);
    }
    return value;
}

static size_t store_varint(uint8_t *out, uint64_t value)
{
    size_t n = 0;
    while (value >= 0x80) {
        out[n++] = (uint8_t)(value | 0x80);
        value >>= 7;
    }
    out[n++] = (uint8_t)value;
    return n;
}

/* An integer that is too long counts as complete: take_header refuses it. */
static size_t missing_header(const uint8_t *bytes, size_t length)
{
    size_t first = varint_length(bytes, length);
    if (first == 0 && length < VARINT_MAX) {
        return 2;
    }
    if (first == 0 || first > VARINT_MAX) {
        return 0;
    }
    size_t second = varint_length(bytes + first, length - first);
    return second > 0 || length - first >= LENGTH_MAX ? 0 : 1;
}

static void refuse_frame(struct muxer *muxer)
{
    muxer_fail(muxer, STATUS_BAD_FRAME, MUXER_GO_AWAY_PROTOCOL_ERROR);
}

static void take_message(struct muxer *muxer, struct muxer_stream *stream, size_t length)
{
    if (stream == NULL || stream->remote_is_closed) {
        metrics_add(METRIC_MUXER_LATE_FRAMES, 1);
        stream = NULL;
    }
    muxer_begin_body(muxer, stream, length, false);
}

/* What is not a message has a body as well (the name of a new stream): it is skipped. */
static void take_event(
        struct muxer *muxer, struct muxer_stream *stream, enum frame_flag flag, size_t length)
{
    muxer_begin_body(muxer, NULL, length, false);
    if (stream == NULL) {
        metrics_add(METRIC_MUXER_LATE_FRAMES, 1);
    } else if (flag == FLAG_CLOSE_RECEIVER || flag == FLAG_CLOSE_INITIATOR) {
        muxer_stream_take_close(stream);
    } else {
        muxer_stream_take_reset(stream);
    }
}

static void take_frame(struct muxer *muxer, uint64_t header, size_t length)
{
    enum frame_flag flag = (enum frame_flag)(header & FLAG_MASK);
    bool is_from_receiver = flag % 2 == 1;
    uint64_t key = (header >> FLAG_BITS) * 2 + (is_from_receiver ? 1 : 0);
    struct muxer_stream *stream = stream_table_find(&muxer->streams, key);

    switch (flag) {
    case FLAG_NEW_STREAM:
        if (stream != NULL) {
            refuse_frame(muxer);
            return;
        }
        muxer_begin_body(muxer, NULL, length, false);
        (void)muxer_stream_take_inbound(muxer, key);
        break;
    case FLAG_MESSAGE_RECEIVER:
    case FLAG_MESSAGE_INITIATOR:
        take_message(muxer, stream, length);
        break;
    case FLAG_CLOSE_RECEIVER:
    case FLAG_CLOSE_INITIATOR:
    case FLAG_RESET_RECEIVER:
    case FLAG_RESET_INITIATOR:
        take_event(muxer, stream, flag, length);
        break;
    }
}

static void take_header(struct muxer *muxer, const uint8_t *bytes, size_t length)
{
    size_t first = varint_length(bytes, length);
    size_t second = first == 0 ? 0 : varint_length(bytes + first, length - first);
    if (first == 0 || first > VARINT_MAX || second == 0) {
        refuse_frame(muxer);
        return;
    }
    uint64_t header = load_varint(bytes, first);
    uint64_t body = load_varint(bytes + first, second);
    if ((header & FLAG_MASK) > FLAG_RESET_INITIATOR || body > MPLEX_MESSAGE_MAX) {
        refuse_frame(muxer);
        return;
    }
    take_frame(muxer, header, (size_t)body);
}

/* key holds who opened the stream, which is what the flags come in pairs for. */
static size_t write_frame(uint64_t key, enum frame_flag as_receiver, size_t length, uint8_t *out)
{
    unsigned flag = (unsigned)as_receiver + (unsigned)(key % 2);
    size_t n = store_varint(out, (key / 2) << FLAG_BITS | flag);
    return n + store_varint(out + n, length);
}

static size_t write_data_header(const struct muxer_stream *stream, size_t length, uint8_t *out)
{
    return write_frame(stream->key, FLAG_MESSAGE_RECEIVER, length, out);
}

static size_t write_close(const struct muxer_stream *stream, uint8_t *out)
{
    return write_frame(stream->key, FLAG_CLOSE_RECEIVER, 0, out);
}

/* Only opening needs a frame; the stream's name is empty. */
static size_t write_control(struct muxer_stream *stream, uint8_t *out)
{
    stream->open_unsent = false;
    size_t n = store_varint(out, (stream->key / 2) << FLAG_BITS | FLAG_NEW_STREAM);
    return n + store_varint(out + n, 0);
}

static size_t write_answer(const struct muxer_answer *answer, uint8_t *out)
{
    assert(answer->kind == ANSWER_RESET);
    return write_frame(answer->value, FLAG_RESET_RECEIVER, 0, out);
}

const struct muxer_protocol mplex_protocol = {
        .id = "/mplex/6.7.0",
        .has_windows = false,
        .missing_header = missing_header,
        .take_header = take_header,
        .write_data_header = write_data_header,
        .write_close = write_close,
        .write_control = write_control,
        .write_answer = write_answer,
};
