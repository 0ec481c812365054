/* SPDX-License-Identifier: MIT */

/*
 * The frames of yamux: version, type, flags, stream id and length, 12 bytes, big endian.
 * Frames for streams that are finished or never were are skipped: the peer may not know it yet.
 */

#include "base/metrics.h"
#include "net/muxer/muxer_private.h"

enum {
    HEADER_BYTES = 12,
    VERSION = 0
};

enum frame_type {
    TYPE_DATA,
    TYPE_WINDOW_UPDATE,
    TYPE_PING,
    TYPE_GO_AWAY
};

enum frame_flag {
    FLAG_OPEN = 1,
    FLAG_ACKNOWLEDGE = 2,
    FLAG_CLOSE = 4,
    FLAG_RESET = 8
};

struct frame {
    uint8_t version;
    uint8_t type;
    uint16_t flags;
    uint32_t id;
    uint32_t length;
};

static uint32_t load_u32(const uint8_t *from)
{
    return (uint32_t)from[0] << 24 | (uint32_t)from[1] << 16 | (uint32_t)from[2] << 8 | from[3];
}

static void store_u32(uint8_t *to, uint32_t value)
{
    to[0] = (uint8_t)(value >> 24);
    to[1] = (uint8_t)(value >> 16);
    to[2] = (uint8_t)(value >> 8);
    to[3] = (uint8_t)value;
}

static struct frame parse_frame(const uint8_t *bytes)
{
    return (struct frame){
            .version = bytes[0],
            .type = bytes[1],
            .flags = (uint16_t)(bytes[2] << 8 | bytes[3]),
            .id = load_u32(bytes + 4),
            .length = load_u32(bytes + 8),
    };
}

static size_t write_frame(const struct frame *frame, uint8_t *out)
{
    out[0] = frame->version;
    out[1] = frame->type;
    out[2] = (uint8_t)(frame->flags >> 8);
    out[3] = (uint8_t)frame->flags;
    store_u32(out + 4, frame->id);
    store_u32(out + 8, frame->length);
    return HEADER_BYTES;
}

static void refuse_frame(struct muxer *muxer)
{
    muxer_fail(muxer, STATUS_BAD_FRAME, MUXER_GO_AWAY_PROTOCOL_ERROR);
}

static size_t missing_header(const uint8_t *bytes, size_t length)
{
    (void)bytes;
    return HEADER_BYTES - length;
}

static void take_ping(struct muxer *muxer, const struct frame *frame)
{
    if ((frame->flags & FLAG_OPEN) != 0) {
        muxer_answer(muxer, ANSWER_PING, frame->length);
    } else {
        muxer_take_ping_answer(muxer, frame->length);
    }
}

/* The dialler's ids are odd. */
static bool is_peers_id(const struct muxer *muxer, uint32_t id)
{
    return (id % 2 == 1) != muxer->is_initiator;
}

/* A body nobody wants: still no longer than any window that was ever granted. */
static void skip_frame(struct muxer *muxer, const struct frame *frame)
{
    if (frame->type == TYPE_DATA) {
        if (frame->length > muxer->options.window_max) {
            muxer_fail(muxer, STATUS_WINDOW_OVERRUN, MUXER_GO_AWAY_PROTOCOL_ERROR);
            return;
        }
        muxer_begin_body(muxer, NULL, frame->length, false);
    }
}

static void take_data(struct muxer_stream *stream, const struct frame *frame)
{
    struct muxer *muxer = stream->muxer;
    if (stream->remote_is_closed) {
        metrics_add(METRIC_MUXER_LATE_FRAMES, 1);
        skip_frame(muxer, frame);
        return;
    }
    if (frame->length > stream->receive_window) {
        muxer_fail(muxer, STATUS_WINDOW_OVERRUN, MUXER_GO_AWAY_PROTOCOL_ERROR);
        return;
    }
    stream->receive_window -= frame->length;
    muxer_stream_offer_credit(stream);
    muxer_begin_body(muxer, stream, frame->length, (frame->flags & FLAG_CLOSE) != 0);
}

static void take_stream_frame(struct muxer_stream *stream, const struct frame *frame)
{
    /* with or without the flag: the peer knows the stream */
    muxer_stream_take_acknowledgement(stream);
    if (frame->type == TYPE_DATA) {
        take_data(stream, frame);
        return;
    }
    muxer_stream_take_window(stream, frame->length);
    if ((frame->flags & FLAG_CLOSE) != 0) {
        muxer_stream_take_close(stream);
    }
}

static void take_session_frame(struct muxer *muxer, const struct frame *frame)
{
    if (frame->type == TYPE_PING) {
        take_ping(muxer, frame);
    } else {
        muxer_take_go_away(muxer, frame->length);
    }
}

static void take_frame(struct muxer *muxer, const struct frame *frame)
{
    struct muxer_stream *stream = stream_table_find(&muxer->streams, frame->id);
    if ((frame->flags & FLAG_OPEN) != 0) {
        if (stream != NULL || !is_peers_id(muxer, frame->id)) {
            refuse_frame(muxer);
            return;
        }
        stream = muxer_stream_take_inbound(muxer, frame->id);
    } else if (stream == NULL) {
        metrics_add(METRIC_MUXER_LATE_FRAMES, 1);
    }
    if (stream != NULL && (frame->flags & FLAG_RESET) != 0) {
        muxer_stream_take_reset(stream);
        stream = NULL;
    }
    if (stream == NULL) {
        skip_frame(muxer, frame);
    } else {
        take_stream_frame(stream, frame);
    }
}

static void take_header(struct muxer *muxer, const uint8_t *bytes, size_t length)
{
    (void)length;
    const struct frame frame = parse_frame(bytes);
    bool is_session = frame.type == TYPE_PING || frame.type == TYPE_GO_AWAY;
    if (frame.version != VERSION || frame.type > TYPE_GO_AWAY || (frame.id == 0 && !is_session)) {
        refuse_frame(muxer);
    } else if (is_session) {
        take_session_frame(muxer, &frame);
    } else {
        take_frame(muxer, &frame);
    }
}

static size_t write_data_header(const struct muxer_stream *stream, size_t length, uint8_t *out)
{
    const struct frame frame = {
            .type = TYPE_DATA, .id = (uint32_t)stream->key, .length = (uint32_t)length};
    return write_frame(&frame, out);
}

static size_t write_close(const struct muxer_stream *stream, uint8_t *out)
{
    const struct frame frame = {
            .type = TYPE_WINDOW_UPDATE, .flags = FLAG_CLOSE, .id = (uint32_t)stream->key};
    return write_frame(&frame, out);
}

/* The window counts as granted from the moment the frame is written. */
static size_t write_control(struct muxer_stream *stream, uint8_t *out)
{
    bool has_news = stream->open_unsent || stream->accept_unsent || !stream->remote_is_closed;
    if (!has_news) {
        return 0;
    }
    struct frame frame = {.type = TYPE_WINDOW_UPDATE, .id = (uint32_t)stream->key};
    if (stream->open_unsent) {
        frame.flags = FLAG_OPEN;
    } else if (stream->accept_unsent) {
        frame.flags = FLAG_ACKNOWLEDGE;
    }
    stream->open_unsent = false;
    stream->accept_unsent = false;
    if (!stream->remote_is_closed) {
        frame.length = (uint32_t)stream->credit;
        stream->receive_window += stream->credit;
        stream->credit = 0;
    }
    return write_frame(&frame, out);
}

static size_t write_answer(const struct muxer_answer *answer, uint8_t *out)
{
    struct frame frame = {0};
    switch (answer->kind) {
    case ANSWER_RESET:
        frame.type = TYPE_WINDOW_UPDATE;
        frame.flags = FLAG_RESET;
        frame.id = (uint32_t)answer->value;
        return write_frame(&frame, out);
    case ANSWER_PING:
        frame.flags = FLAG_ACKNOWLEDGE;
        break;
    case ANSWER_PING_REQUEST:
        frame.flags = FLAG_OPEN;
        break;
    case ANSWER_GO_AWAY:
        frame.type = TYPE_GO_AWAY;
        frame.length = (uint32_t)answer->value;
        return write_frame(&frame, out);
    }
    frame.type = TYPE_PING;
    frame.length = (uint32_t)answer->value;
    return write_frame(&frame, out);
}

const struct muxer_protocol yamux_protocol = {
        .id = "/yamux/1.0.0",
        .has_windows = true,
        .missing_header = missing_header,
        .take_header = take_header,
        .write_data_header = write_data_header,
        .write_close = write_close,
        .write_control = write_control,
        .write_answer = write_answer,
};
