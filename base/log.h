/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Lines for operators. The library never owns an output: programs set a sink, and without one
 * nothing is written.
 *
 * Thread: log_write on any thread; log_set_sink and log_set_level before threads start or later.
 */

#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/attributes.h"

enum log_level {
    LOG_TRACE,
    LOG_DEBUG,
    LOG_INFO,
    LOG_NOTICE,
    LOG_WARN,
    LOG_ERROR,
    LOG_FATAL
};

/* line is one complete line without newline; it is only valid during the call. */
typedef void log_sink(void *context, enum log_level level, const char *module, const char *line);

void log_set_sink(log_sink *sink, void *context);
void log_set_level(enum log_level level);
bool log_is_enabled(enum log_level level);
const char *log_level_name(enum log_level level);

/* Case is ignored. False when the name is no level. */
MUST_USE bool log_level_from_name(enum log_level *out, const char *name);

void log_write(enum log_level level, const char *module, const char *format, ...)
        __attribute__((format(printf, 3, 4)));

/*
 * At most one line a second for each place that calls it; the next line that does come says how
 * many were left out. limit is a static of the calling place, zero at first.
 */
struct log_limit {
    _Atomic uint64_t next_ns;
    _Atomic uint64_t suppressed;
};

void log_write_limited(struct log_limit *limit, enum log_level level, const char *module,
        const char *format, ...) __attribute__((format(printf, 4, 5)));
