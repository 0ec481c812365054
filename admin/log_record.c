/* SPDX-License-Identifier: MIT */
#include "admin/log_record.h"

#include <assert.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "codec/utf8.h"

static_assert(LOG_LINE_MAX_BYTES > 6 * (LOG_TEXT_MAX_BYTES + 32) + 256,
        "an escape takes six characters at most");

/* The thread's number does not change, its name is read again: workers set theirs when they begin. */
static uint32_t thread_id(void)
{
    static _Thread_local uint32_t known;
    if (known == 0) {
        known = (uint32_t)gettid();
    }
    return known;
}

void log_record_fill(
        struct log_record *out, enum log_level level, const char *module, const char *text)
{
    out->time_ns = clock_wall_ns();
    out->thread_id = thread_id();
    out->level = level;
    if (pthread_getname_np(pthread_self(), out->thread_name, sizeof(out->thread_name)) != 0) {
        out->thread_name[0] = '\0';
    }
    snprintf(out->module, sizeof(out->module), "%s", module);
    snprintf(out->text, sizeof(out->text), "%s", text);
}

bool log_format_from_name(enum log_format *out, const char *name)
{
    bool is_json = strcasecmp(name, "json") == 0;
    *out = is_json ? LOG_FORMAT_JSON : LOG_FORMAT_TEXT;
    return is_json || strcasecmp(name, "text") == 0;
}

static size_t append(char *out, size_t at, const char *format, ...)
        __attribute__((format(printf, 3, 4)));

static size_t append(char *out, size_t at, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(out + at, LOG_LINE_MAX_BYTES - at, format, arguments);
    va_end(arguments);
    assert(length >= 0 && at + (size_t)length < LOG_LINE_MAX_BYTES);
    return at + (size_t)length;
}

/* In both formats a line is valid UTF-8 without control characters, whatever a peer sent. */
static size_t append_escaped(char *out, size_t at, const char *text, enum log_format format)
{
    bool is_utf8 = utf8_is_valid(span_of_text(text));
    for (; *text != '\0'; text++) {
        unsigned char byte = (unsigned char)*text;
        bool is_quoted = format == LOG_FORMAT_JSON && (byte == '"' || byte == '\\');
        if (byte < ' ' || byte == 0x7F) {
            at = append(out, at, "\\u%04x", byte);
        } else if (byte >= 0x80 && !is_utf8) {
            at = append(out, at, "%s", "?");
        } else {
            at = append(out, at, is_quoted ? "\\%c" : "%c", byte);
        }
    }
    return at;
}

static size_t append_time(char *out, size_t at, int64_t time_ns)
{
    time_t seconds = (time_t)(time_ns / (int64_t)NANOSECONDS_PER_SECOND);
    int64_t rest_ns = time_ns % (int64_t)NANOSECONDS_PER_SECOND;
    struct tm parts;
    char text[64];
    if (rest_ns < 0) {
        rest_ns += (int64_t)NANOSECONDS_PER_SECOND;
        seconds--;
    }
    if (gmtime_r(&seconds, &parts) == NULL ||
            strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S", &parts) == 0) {
        return append(out, at, "%lld", (long long)time_ns);
    }
    return append(
            out, at, "%s.%03d+00:00", text, (int)(rest_ns / (int64_t)NANOSECONDS_PER_MILLISECOND));
}

size_t log_record_format(
        char out[LOG_LINE_MAX_BYTES], const struct log_record *record, enum log_format format)
{
    static const char *const levels[] = {"TRC", "DBG", "INF", "NTC", "WRN", "ERR", "FAT"};
    const char *level = levels[record->level];
    bool is_json = format == LOG_FORMAT_JSON;
    size_t at = append(out, 0, is_json ? "{\"lvl\":\"%s\",\"ts\":\"" : "%s ", level);
    at = append_time(out, at, record->time_ns);
    at = append(out, at, "%s", is_json ? "\",\"msg\":\"" : " ");
    at = append_escaped(out, at, record->text, format);
    at = append(out, at, "%s", is_json ? "\",\"topics\":\"" : " topics=\"");
    at = append_escaped(out, at, record->module, format);
    at = append(out, at,
            is_json ? "\",\"tid\":%u,\"thread\":\"" : "\" tid=%u thread=", record->thread_id);
    at = append_escaped(out, at, record->thread_name, format);
    return append(out, at, "%s", is_json ? "\"}\n" : "\n");
}
