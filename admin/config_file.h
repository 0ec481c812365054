/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The configuration file: the part of TOML that a flat list of options needs. A key is an option's
 * name; a value is a string, an integer, a float, a boolean, or an array of those. Comments, literal
 * strings, escapes and arrays over several lines are as in TOML. Tables, dotted keys, dates and
 * multi-line strings are refused by name: options stand at the top level.
 *
 * Limits: CONFIG_FILE_MAX_BYTES, CONFIG_FILE_MAX_KEYS, CONFIG_VALUE_MAX_BYTES a value.
 * Thread: any; no state.
 */

#include <stdbool.h>
#include <stddef.h>

#include "base/attributes.h"
#include "base/span.h"
#include "base/status.h"

enum {
    CONFIG_FILE_MAX_BYTES = 1024 * 1024,
    CONFIG_FILE_MAX_KEYS = 1024,
    CONFIG_KEY_MAX_BYTES = 127,
    CONFIG_VALUE_MAX_BYTES = 8192
};

/* Where in the file, both from 1; columns count bytes. */
struct config_position {
    size_t line;
    size_t column;
};

struct config_file_error {
    struct config_position position;
    char text[192];
};

/*
 * What the reader of the file does with it. Key and text end with a NUL, hold no other, and are
 * valid during the call.
 *
 *   value   one value, or one item of an array: is_item tells
 *   array   an array begins; its items follow
 */
struct config_file_visitor {
    void (*value)(void *context, struct config_position at, const char *key, const char *text,
            bool is_item);
    void (*array)(void *context, struct config_position at, const char *key);
    void *context;
};

/*
 * Calls the visitor for every value in order, up to the first error. STATUS_BAD_FIELD: malformed or
 * not of the part that is read; STATUS_TOO_LARGE: a limit; STATUS_ALREADY_EXISTS: a key twice. The
 * error says where and why.
 */
MUST_USE enum status config_file_parse(struct span text, const struct config_file_visitor *visitor,
        struct config_file_error *error);

/* Reads the file and parses it. STATUS_NOT_FOUND or STATUS_SYSTEM: position.line is 0. */
MUST_USE enum status config_file_read(const char *path, const struct config_file_visitor *visitor,
        struct config_file_error *error);
