/* SPDX-License-Identifier: MIT */
#pragma once

/* Where the parser of configuration files stands, for its own files only. */

#include "admin/config_file.h"

struct config_cursor {
    const char *at;
    const char *end;
    const char *line_begin;
    size_t line;
    struct config_file_error *error;
    char value[CONFIG_VALUE_MAX_BYTES + 1];
    size_t value_length;
};

/* '\0' at the end: a NUL inside the text is refused before. */
static inline char config_peek(const struct config_cursor *cursor)
{
    return cursor->at < cursor->end ? *cursor->at : '\0';
}

struct config_position config_position_of(const struct config_cursor *cursor);

/* Fills the error with the cursor's position and returns status. */
enum status config_complain(struct config_cursor *cursor, enum status status, const char *text);

/* Blanks and a comment, to the end of the line at most. */
void config_skip_blanks(struct config_cursor *cursor);

/* Over a line's end. The cursor stands on one. */
void config_next_line(struct config_cursor *cursor);

/*
 * A string, number or boolean as text into cursor->value. The cursor stands on its first character;
 * afterwards behind its last.
 */
MUST_USE enum status config_read_scalar(struct config_cursor *cursor);

/* The same for a string, which the cursor stands on. */
MUST_USE enum status config_read_string(struct config_cursor *cursor);
