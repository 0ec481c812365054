/* SPDX-License-Identifier: MIT */
#pragma once

/* One log line before it is written out: what it says, when, and who said it. */

#include <stddef.h>
#include <stdint.h>

#include "base/attributes.h"
#include "base/log.h"

enum {
    LOG_TEXT_MAX_BYTES = 1023,
    LOG_LINE_MAX_BYTES = 8192 /* of a formatted line, with room for a JSON escape of every byte */
};

struct log_record {
    int64_t time_ns; /* wall clock */
    uint32_t thread_id;
    enum log_level level;
    char thread_name[16];
    char module[32];
    char text[LOG_TEXT_MAX_BYTES + 1];
};

/* Fills in the time and the calling thread; what is too long is cut. */
void log_record_fill(
        struct log_record *out, enum log_level level, const char *module, const char *text);

enum log_format {
    LOG_FORMAT_TEXT,
    LOG_FORMAT_JSON
};

/* Case is ignored. False when the name is no format. */
MUST_USE bool log_format_from_name(enum log_format *out, const char *name);

/*
 * Writes the line with its newline and a final zero; returns the length without the zero. Fields are
 * named as the reference names them (lvl, ts, msg, topics, tid). What comes from outside cannot make a
 * second line: control characters are escaped.
 */
size_t log_record_format(
        char out[LOG_LINE_MAX_BYTES], const struct log_record *record, enum log_format format);
