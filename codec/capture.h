/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * A file of captured relay traffic, read record by record. A record is the time of receipt (8 bytes,
 * big endian, nanoseconds since 1970), the peer's number (4 bytes, big endian), and a frame as on
 * the wire: its length as a varint and that many bytes of RPC.
 *
 * The bytes of a frame go from the stream's buffer straight to where the caller wants them.
 *
 * Thread: one at a time.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/attributes.h"
#include "base/status.h"

enum {
    CAPTURE_FRAME_MAX_DEFAULT = 150 * 1024 + 64 * 1024 /* what a node accepts by default */
};

struct capture;

struct capture_record {
    int64_t received_ns; /* nanoseconds since 1970 */
    uint32_t peer;
    size_t frame_length; /* without the length prefix */
};

/* STATUS_SYSTEM (see errno) when the file cannot be opened. A frame may have frame_max bytes. */
MUST_USE enum status capture_open(struct capture **out, const char *path, size_t frame_max);

/* Reads from stream, which it closes at the end; on failure stream still belongs to the caller. */
MUST_USE enum status capture_open_stream(
        struct capture **out, FILE *CONSUMED stream, size_t frame_max);
void capture_close(struct capture **capture);

/*
 * The head of the next record. *has_record is false, and the status ok, at the end of the file
 * behind a whole record. STATUS_TRUNCATED: the file ends inside a record; STATUS_TOO_LARGE: the
 * frame is longer than frame_max; STATUS_BAD_VARINT; STATUS_SYSTEM. After a failure it fails again.
 */
MUST_USE enum status capture_next(
        struct capture *capture, struct capture_record *out, bool *has_record);

/* The frame of the record that capture_next found, once; out has room for frame_length bytes. */
MUST_USE enum status capture_read_frame(struct capture *capture, uint8_t *out);

/* Where the record begins that was read last or that failed: what a message to the user names. */
uint64_t capture_offset(const struct capture *capture);
uint64_t capture_record_number(const struct capture *capture); /* from 1 */
