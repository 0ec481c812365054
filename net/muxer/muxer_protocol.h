/* SPDX-License-Identifier: MIT */
#pragma once

/* What yamux and mplex do differently: the bytes of their frames. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "net/muxer/answer_queue.h"

enum {
    MUXER_HEADER_MAX = 16, /* bytes of a frame header of either protocol */
    MUXER_FRAMES_MAX = 64, /* frame headers in one output */
    MUXER_OUTPUT_MIN = 32, /* bytes: a smaller room is not worth a frame */
    YAMUX_INITIAL_WINDOW = 262144,
    MPLEX_MESSAGE_MAX = 1 << 20
};

struct muxer;
struct muxer_stream;

/*
 * What the two protocols do differently. Writers return the bytes written, at most
 * MUXER_HEADER_MAX; write_control 0 when there is no news any more.
 */
struct muxer_protocol {
    const char *id;
    bool has_windows;

    /* Bytes of the header still missing, at least; 0 = complete. */
    size_t (*missing_header)(const uint8_t *bytes, size_t length);
    void (*take_header)(struct muxer *muxer, const uint8_t *bytes, size_t length);

    size_t (*write_data_header)(const struct muxer_stream *stream, size_t length, uint8_t *out);
    size_t (*write_close)(const struct muxer_stream *stream, uint8_t *out);
    size_t (*write_control)(struct muxer_stream *stream, uint8_t *out);
    size_t (*write_answer)(const struct muxer_answer *answer, uint8_t *out);
};

extern const struct muxer_protocol yamux_protocol;
extern const struct muxer_protocol mplex_protocol;
