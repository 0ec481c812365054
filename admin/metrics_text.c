/* SPDX-License-Identifier: MIT */
#include "admin/metrics_text.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    FIRST_CAPACITY = 64 * 1024
};

void metrics_text_begin(struct metrics_text *text, struct metrics_seen *seen)
{
    *text = (struct metrics_text){.seen = seen};
}

static bool make_room(struct metrics_text *text, size_t length)
{
    size_t capacity = text->capacity == 0 ? FIRST_CAPACITY : text->capacity;
    while (capacity - text->length <= length) {
        capacity *= 2;
    }
    if (capacity != text->capacity) {
        char *grown = realloc(text->bytes, capacity);
        if (grown == NULL) {
            text->has_failed = true;
            return false;
        }
        text->bytes = grown;
        text->capacity = capacity;
    }
    return true;
}

static void write_text(struct metrics_text *text, const char *format, ...)
        __attribute__((format(printf, 2, 3)));

static void write_text(struct metrics_text *text, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(NULL, 0, format, arguments);
    va_end(arguments);
    if (text->has_failed || length < 0 || !make_room(text, (size_t)length + 1)) {
        return;
    }
    va_start(arguments, format);
    vsnprintf(text->bytes + text->length, (size_t)length + 1, format, arguments);
    va_end(arguments);
    text->length += (size_t)length;
}

void metrics_text_family(
        struct metrics_text *text, const char *name, const char *type, const char *help)
{
    text->is_left_out = false;
    if (text->rename != NULL) {
        text->is_left_out = !text->rename(text->name, name);
    } else {
        snprintf(text->name, sizeof(text->name), "%s", name);
    }
    text->type = type;
    text->help = help;
    text->has_header = false;
}

/* FNV-1a; two series with one key would only show a zero too early. */
static uint64_t hash_text(uint64_t hash, const char *text)
{
    for (; *text != '\0'; text++) {
        hash = (hash ^ (uint8_t)*text) * 1099511628211ULL;
    }
    return hash;
}

static bool is_shown(struct metrics_text *text, const struct metrics_series *series, bool is_zero)
{
    struct metrics_seen *seen = text->seen;
    if (text->is_left_out) {
        return false;
    }
    if (series->is_always_there || seen == NULL) {
        return true;
    }
    uint64_t key = hash_text(14695981039346656037ULL, text->name);
    key = hash_text(key ^ 1, series->suffix);
    key = hash_text(key ^ 2, series->labels) | 1;
    size_t place = key % METRICS_SEEN_MAX;
    while (seen->keys[place] != 0 && seen->keys[place] != key) {
        place = (place + 1) % METRICS_SEEN_MAX;
    }
    if (seen->keys[place] == key) {
        return true;
    }
    if (is_zero) {
        return false;
    }
    if (seen->count < METRICS_SEEN_MAX / 2) { /* so that a search ends soon */
        seen->keys[place] = key;
        seen->count++;
    }
    return true;
}

static void begin_series(struct metrics_text *text, const struct metrics_series *series)
{
    if (!text->has_header) {
        write_text(text, "# HELP %s %s\n# TYPE %s %s\n", text->name, text->help, text->name,
                text->type);
        text->has_header = true;
    }
    write_text(text, series->labels[0] == '\0' ? "%s%s" : "%s%s{%s}", text->name, series->suffix,
            series->labels);
}

void metrics_text_count(
        struct metrics_text *text, const struct metrics_series *series, uint64_t value)
{
    if (is_shown(text, series, value == 0)) {
        begin_series(text, series);
        write_text(text, " %" PRIu64 "\n", value);
    }
}

void metrics_text_number(
        struct metrics_text *text, const struct metrics_series *series, double value)
{
    if (is_shown(text, series, value == 0)) {
        begin_series(text, series);
        write_text(text, " %.10g\n", value);
    }
}

char *metrics_text_end(struct metrics_text *text, size_t *length)
{
    write_text(text, "%s", "");
    if (text->has_failed) {
        free(text->bytes);
        text->bytes = NULL;
    }
    *length = text->length;
    return text->bytes;
}

const char *metrics_label_value(char out[METRICS_LABEL_VALUE_MAX], const char *value)
{
    size_t length = 0;
    for (; *value != '\0' && length + 2 < METRICS_LABEL_VALUE_MAX; value++) {
        if (*value == '\\' || *value == '"' || *value == '\n') {
            out[length++] = '\\';
        }
        out[length++] = *value;
        if (*value == '\n') {
            out[length - 1] = 'n';
        }
    }
    out[length] = '\0';
    return out;
}
