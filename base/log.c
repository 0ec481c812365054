/* SPDX-License-Identifier: MIT */
#include "base/log.h"

#include <stdatomic.h>
#include <stdio.h>
#include <strings.h>

#include "base/clock.h"

enum {
    LINE_MAX_BYTES = 1024
};

static const char *const level_names[] = {
        "TRACE", "DEBUG", "INFO", "NOTICE", "WARN", "ERROR", "FATAL"};

/* SINK: release store of sink -> acquire load of sink; the caller's context is seen with it. */
static _Atomic(log_sink *) current_sink;
static void *_Atomic current_context;
static atomic_int current_level = LOG_INFO;

void log_set_sink(log_sink *sink, void *context)
{
    /* relaxed: made visible by the store of the sink */
    atomic_store_explicit(&current_context, context, memory_order_relaxed);
    atomic_store_explicit(&current_sink, sink, memory_order_release); /* SINK */
}

void log_set_level(enum log_level level)
{
    /* relaxed: a level orders nothing */
    atomic_store_explicit(&current_level, (int)level, memory_order_relaxed);
}

bool log_is_enabled(enum log_level level)
{
    /* relaxed: a level orders nothing */
    return (int)level >= atomic_load_explicit(&current_level, memory_order_relaxed);
}

const char *log_level_name(enum log_level level)
{
    return level_names[level];
}

bool log_level_from_name(enum log_level *out, const char *name)
{
    for (int i = LOG_TRACE; i <= LOG_FATAL; i++) {
        if (strcasecmp(name, level_names[i]) == 0) {
            *out = (enum log_level)i;
            return true;
        }
    }
    return false;
}

static void write_arguments(
        enum log_level level, const char *module, const char *format, va_list arguments)
{
    log_sink *sink = atomic_load_explicit(&current_sink, memory_order_acquire); /* SINK */
    if (sink == NULL || !log_is_enabled(level)) {
        return;
    }
    char line[LINE_MAX_BYTES];
    vsnprintf(line, sizeof(line), format, arguments);
    /* relaxed: ordered by the acquire load of the sink */
    sink(atomic_load_explicit(&current_context, memory_order_relaxed), level, module, line);
}

void log_write(enum log_level level, const char *module, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    write_arguments(level, module, format, arguments);
    va_end(arguments);
}

void log_write_limited(
        struct log_limit *limit, enum log_level level, const char *module, const char *format, ...)
{
    uint64_t now = clock_monotonic_ns();
    /* relaxed throughout: the limit guards nothing but itself */
    uint64_t next = atomic_load_explicit(&limit->next_ns, memory_order_relaxed);
    if (now < next ||
            !atomic_compare_exchange_strong_explicit(&limit->next_ns, &next,
                    now + NANOSECONDS_PER_SECOND, memory_order_relaxed, memory_order_relaxed)) {
        atomic_fetch_add_explicit(&limit->suppressed, 1, memory_order_relaxed);
        return;
    }
    va_list arguments;
    va_start(arguments, format);
    write_arguments(level, module, format, arguments);
    va_end(arguments);
    uint64_t left_out = atomic_exchange_explicit(&limit->suppressed, 0, memory_order_relaxed);
    if (left_out > 0) {
        log_write(level, module, "%llu more lines like this one were left out",
                (unsigned long long)left_out);
    }
}
