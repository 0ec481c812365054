/* SPDX-License-Identifier: MIT */
#include "admin/config_file.h"

#include <ctype.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "admin/config_file_private.h"

/* The keys so far, to find one that comes twice. */
struct parser {
    struct config_cursor cursor;
    const struct config_file_visitor *visitor;
    char key[CONFIG_KEY_MAX_BYTES + 1];
    char *keys[CONFIG_FILE_MAX_KEYS];
    size_t key_count;
};

struct config_position config_position_of(const struct config_cursor *cursor)
{
    return (struct config_position){
            .line = cursor->line, .column = (size_t)(cursor->at - cursor->line_begin) + 1};
}

enum status config_complain(struct config_cursor *cursor, enum status status, const char *text)
{
    cursor->error->position = config_position_of(cursor);
    snprintf(cursor->error->text, sizeof(cursor->error->text), "%s", text);
    return status;
}

void config_skip_blanks(struct config_cursor *cursor)
{
    while (config_peek(cursor) == ' ' || config_peek(cursor) == '\t') {
        cursor->at++;
    }
    if (config_peek(cursor) == '#') {
        while (cursor->at < cursor->end && *cursor->at != '\n') {
            cursor->at++;
        }
    }
    if (config_peek(cursor) == '\r' && cursor->end - cursor->at > 1 && cursor->at[1] == '\n') {
        cursor->at++;
    }
}

void config_next_line(struct config_cursor *cursor)
{
    cursor->at++;
    cursor->line++;
    cursor->line_begin = cursor->at;
}

static bool is_key_character(char character)
{
    return isalnum((unsigned char)character) || character == '-' || character == '_';
}

static enum status read_key(struct parser *parser)
{
    struct config_cursor *cursor = &parser->cursor;
    const char *begin = cursor->at;
    size_t length = 0;
    if (*begin == '[') {
        return config_complain(
                cursor, STATUS_BAD_FIELD, "tables are not read: options stand at the top level");
    }
    if (*begin == '"' || *begin == '\'') {
        enum status status = config_read_string(cursor);
        if (status != STATUS_OK) {
            return status;
        }
        begin = cursor->value;
        length = cursor->value_length;
    } else {
        while (is_key_character(config_peek(cursor))) {
            cursor->at++;
        }
        length = (size_t)(cursor->at - begin);
    }
    if (length == 0 || length > CONFIG_KEY_MAX_BYTES) {
        return config_complain(cursor, STATUS_BAD_FIELD, "the name of an option is expected here");
    }
    memcpy(parser->key, begin, length);
    parser->key[length] = '\0';
    return STATUS_OK;
}

static enum status remember_key(struct parser *parser)
{
    struct config_cursor *cursor = &parser->cursor;
    for (size_t i = 0; i < parser->key_count; i++) {
        if (strcmp(parser->keys[i], parser->key) == 0) {
            return config_complain(cursor, STATUS_ALREADY_EXISTS, "the option stands here twice");
        }
    }
    if (parser->key_count == CONFIG_FILE_MAX_KEYS) {
        return config_complain(cursor, STATUS_TOO_LARGE, "more than 1024 options");
    }
    char *copy = strdup(parser->key);
    if (copy == NULL) {
        return config_complain(cursor, STATUS_NO_MEMORY, "out of memory");
    }
    parser->keys[parser->key_count++] = copy;
    return STATUS_OK;
}

/* Blanks, comments and line ends. */
static void skip_space(struct config_cursor *cursor)
{
    config_skip_blanks(cursor);
    while (config_peek(cursor) == '\n') {
        config_next_line(cursor);
        config_skip_blanks(cursor);
    }
}

static enum status read_item(struct parser *parser)
{
    struct config_cursor *cursor = &parser->cursor;
    struct config_position position = config_position_of(cursor);
    if (config_peek(cursor) == '[') {
        return config_complain(cursor, STATUS_BAD_FIELD, "no array stands inside an array");
    }
    enum status status = config_read_scalar(cursor);
    if (status == STATUS_OK) {
        parser->visitor->value(
                parser->visitor->context, position, parser->key, cursor->value, true);
    }
    return status;
}

/* The cursor stands on the bracket. */
static enum status read_array(struct parser *parser)
{
    struct config_cursor *cursor = &parser->cursor;
    parser->visitor->array(parser->visitor->context, config_position_of(cursor), parser->key);
    cursor->at++;
    skip_space(cursor);
    while (config_peek(cursor) != ']') {
        enum status status = read_item(parser);
        if (status != STATUS_OK) {
            return status;
        }
        skip_space(cursor);
        if (config_peek(cursor) == ',') {
            cursor->at++;
            skip_space(cursor);
        } else if (config_peek(cursor) != ']') {
            return config_complain(cursor, STATUS_BAD_FIELD, "a comma or ] is expected here");
        }
    }
    cursor->at++;
    return STATUS_OK;
}

static enum status read_value(struct parser *parser)
{
    struct config_cursor *cursor = &parser->cursor;
    struct config_position position = config_position_of(cursor);
    if (config_peek(cursor) == '[') {
        return read_array(parser);
    }
    if (config_peek(cursor) == '{') {
        return config_complain(
                cursor, STATUS_BAD_FIELD, "tables are not read: options stand at the top level");
    }
    enum status status = config_read_scalar(cursor);
    if (status == STATUS_OK) {
        parser->visitor->value(
                parser->visitor->context, position, parser->key, cursor->value, false);
    }
    return status;
}

/* key = value, to the end of the line. */
static enum status read_assignment(struct parser *parser)
{
    struct config_cursor *cursor = &parser->cursor;
    enum status status = read_key(parser);
    if (status == STATUS_OK) {
        status = remember_key(parser);
    }
    if (status != STATUS_OK) {
        return status;
    }
    config_skip_blanks(cursor);
    if (config_peek(cursor) == '.') {
        return config_complain(cursor, STATUS_BAD_FIELD, "dotted names are not read");
    }
    if (config_peek(cursor) != '=') {
        return config_complain(cursor, STATUS_BAD_FIELD, "= is expected here");
    }
    cursor->at++;
    config_skip_blanks(cursor);
    status = read_value(parser);
    if (status != STATUS_OK) {
        return status;
    }
    config_skip_blanks(cursor);
    if (cursor->at < cursor->end && *cursor->at != '\n') {
        return config_complain(cursor, STATUS_BAD_FIELD, "the line should end here");
    }
    return STATUS_OK;
}

/* TOML knows no control character but tab and the line's end. */
static enum status check_characters(struct config_cursor *cursor)
{
    for (; cursor->at < cursor->end; cursor->at++) {
        unsigned char character = (unsigned char)*cursor->at;
        bool is_line_end =
                character == '\r' && cursor->end - cursor->at > 1 && cursor->at[1] == '\n';
        if (character == '\n') {
            cursor->line++;
            cursor->line_begin = cursor->at + 1;
        } else if ((character < ' ' && character != '\t' && !is_line_end) || character == 0x7F) {
            return config_complain(cursor, STATUS_BAD_FIELD, "a control character");
        }
    }
    return STATUS_OK;
}

static void rewind_to(struct config_cursor *cursor, const char *begin)
{
    cursor->at = begin;
    cursor->line_begin = begin;
    cursor->line = 1;
}

static enum status parse(struct parser *parser, const char *begin)
{
    struct config_cursor *cursor = &parser->cursor;
    static const char mark[] = "\xEF\xBB\xBF";
    rewind_to(cursor, begin);
    enum status status = check_characters(cursor);
    rewind_to(cursor, begin);
    if (cursor->end - begin >= 3 && memcmp(begin, mark, 3) == 0) {
        cursor->at += 3;
    }
    while (status == STATUS_OK) {
        skip_space(cursor);
        if (cursor->at == cursor->end) {
            return STATUS_OK;
        }
        status = read_assignment(parser);
    }
    return status;
}

enum status config_file_parse(struct span text, const struct config_file_visitor *visitor,
        struct config_file_error *error)
{
    *error = (struct config_file_error){.position = {.line = 0}};
    if (text.length > CONFIG_FILE_MAX_BYTES) {
        snprintf(error->text, sizeof(error->text), "larger than 1 MiB");
        return STATUS_TOO_LARGE;
    }
    struct parser *parser = calloc(1, sizeof(*parser));
    if (parser == NULL) {
        snprintf(error->text, sizeof(error->text), "out of memory");
        return STATUS_NO_MEMORY;
    }
    const char *begin = text.length > 0 ? (const char *)text.bytes : "";
    parser->visitor = visitor;
    parser->cursor.error = error;
    parser->cursor.end = begin + text.length;
    enum status status = parse(parser, begin);
    for (size_t i = 0; i < parser->key_count; i++) {
        free(parser->keys[i]);
    }
    free(parser);
    return status;
}

/* One byte more than is allowed, so that a file that is too large is seen. */
static enum status load(FILE *file, uint8_t **out, size_t *length)
{
    uint8_t *bytes = malloc(CONFIG_FILE_MAX_BYTES + 1);
    if (bytes == NULL) {
        return STATUS_NO_MEMORY;
    }
    *length = fread(bytes, 1, CONFIG_FILE_MAX_BYTES + 1, file);
    if (ferror(file) != 0) {
        free(bytes);
        return STATUS_SYSTEM;
    }
    *out = bytes;
    return STATUS_OK;
}

enum status config_file_read(const char *path, const struct config_file_visitor *visitor,
        struct config_file_error *error)
{
    *error = (struct config_file_error){.position = {.line = 0}};
    FILE *file = fopen(path, "re");
    if (file == NULL) {
        enum status status = errno == ENOENT ? STATUS_NOT_FOUND : STATUS_SYSTEM;
        snprintf(error->text, sizeof(error->text), "%s", strerror(errno));
        return status;
    }
    uint8_t *bytes = NULL;
    size_t length = 0;
    enum status status = load(file, &bytes, &length);
    if (status != STATUS_OK) {
        snprintf(error->text, sizeof(error->text), "cannot be read: %s", status_text(status));
    }
    (void)fclose(file);
    if (status == STATUS_OK) {
        status = config_file_parse(span_of(bytes, length), visitor, error);
    }
    free(bytes);
    return status;
}
