/* SPDX-License-Identifier: MIT */

/* Single values of a configuration file: strings with their escapes, numbers, booleans. */

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "admin/config_file_private.h"
#include "base/hex.h"

enum {
    SCALAR_MAX = 64, /* of a number or boolean */
    SURROGATES_BEGIN = 0xD800,
    SURROGATES_END = 0xE000,
    CODE_POINT_MAX = 0x10FFFF
};

static enum status append(struct config_cursor *cursor, char character)
{
    if (cursor->value_length == CONFIG_VALUE_MAX_BYTES) {
        return config_complain(cursor, STATUS_TOO_LARGE, "the value is longer than 8192 bytes");
    }
    cursor->value[cursor->value_length++] = character;
    cursor->value[cursor->value_length] = '\0';
    return STATUS_OK;
}

/* As UTF-8. */
static enum status append_code_point(struct config_cursor *cursor, uint32_t point)
{
    char bytes[4];
    size_t count = point < 0x80 ? 1 : point < 0x800 ? 2 : point < 0x10000 ? 3 : 4;
    static const uint8_t leads[] = {0, 0x00, 0xC0, 0xE0, 0xF0};
    for (size_t i = count - 1; i > 0; i--) {
        bytes[i] = (char)(0x80 | (point & 0x3F));
        point >>= 6;
    }
    bytes[0] = (char)(leads[count] | point);
    enum status status = STATUS_OK;
    for (size_t i = 0; status == STATUS_OK && i < count; i++) {
        status = append(cursor, bytes[i]);
    }
    return status;
}

/* \uXXXX or \UXXXXXXXX; the cursor stands on the u. */
static enum status read_code_point(struct config_cursor *cursor)
{
    size_t digits = *cursor->at == 'u' ? 4 : 8;
    uint32_t point = 0;
    cursor->at++;
    for (size_t i = 0; i < digits; i++) {
        int value = hex_digit(config_peek(cursor));
        if (value < 0) {
            return config_complain(
                    cursor, STATUS_BAD_FIELD, "\\u takes 4 and \\U 8 hexadecimal digits");
        }
        point = point << 4 | (uint32_t)value;
        cursor->at++;
    }
    if (point == 0 || point > CODE_POINT_MAX ||
            (point >= SURROGATES_BEGIN && point < SURROGATES_END)) {
        return config_complain(cursor, STATUS_BAD_FIELD, "no such character");
    }
    return append_code_point(cursor, point);
}

/* The cursor stands behind the backslash. */
static enum status read_escape(struct config_cursor *cursor)
{
    static const char letters[] = "btnfr\"\\";
    static const char meanings[] = "\b\t\n\f\r\"\\";
    char letter = config_peek(cursor);
    if (letter == 'u' || letter == 'U') {
        return read_code_point(cursor);
    }
    const char *found = letter != '\0' ? strchr(letters, letter) : NULL;
    if (found == NULL) {
        return config_complain(cursor, STATUS_BAD_FIELD, "unknown escape in a string");
    }
    cursor->at++;
    return append(cursor, meanings[found - letters]);
}

enum status config_read_string(struct config_cursor *cursor)
{
    char quote = *cursor->at++;
    enum status status = STATUS_OK;
    if (config_peek(cursor) == quote && cursor->end - cursor->at > 1 && cursor->at[1] == quote) {
        return config_complain(cursor, STATUS_BAD_FIELD, "strings over several lines are not read");
    }
    cursor->value_length = 0;
    cursor->value[0] = '\0';
    while (status == STATUS_OK && config_peek(cursor) != quote) {
        char character = config_peek(cursor);
        if (character == '\0' || character == '\n' || character == '\r') {
            return config_complain(cursor, STATUS_BAD_FIELD, "the string does not end");
        }
        cursor->at++;
        if (character == '\\' && quote == '"') {
            status = read_escape(cursor);
        } else {
            status = append(cursor, character);
        }
    }
    if (status == STATUS_OK) {
        cursor->at++;
    }
    return status;
}

static bool is_one_of(const char *allowed, char character)
{
    return character != '\0' && strchr(allowed, character) != NULL;
}

/* Digits with single underscores between them, which are left out. */
static bool copy_digits(char *out, size_t *length, const char **at, const char *allowed)
{
    size_t before = *length;
    while (is_one_of(allowed, **at)) {
        out[(*length)++] = *(*at)++;
        if (**at == '_' && is_one_of(allowed, (*at)[1])) {
            (*at)++;
        }
    }
    return *length > before;
}

/* 0x..., 0o..., 0b...: written out in decimal. */
static bool read_with_base(char out[SCALAR_MAX], const char *token)
{
    static const struct {
        const char *prefix;
        const char *digits;
        int base;
    } bases[] = {{"0x", "0123456789abcdefABCDEF", 16}, {"0o", "01234567", 8}, {"0b", "01", 2}};
    char digits[SCALAR_MAX] = "";
    for (size_t i = 0; i < sizeof(bases) / sizeof(bases[0]); i++) {
        const char *at = token + 2;
        size_t length = 0;
        if (strncmp(token, bases[i].prefix, 2) != 0) {
            continue;
        }
        if (!copy_digits(digits, &length, &at, bases[i].digits) || *at != '\0' || length > 63) {
            return false;
        }
        digits[length] = '\0';
        if (strlen(digits) > (bases[i].base == 16 ? 16U : bases[i].base == 8 ? 21U : 63U)) {
            return false;
        }
        snprintf(out, SCALAR_MAX, "%llu", strtoull(digits, NULL, bases[i].base));
        return true;
    }
    return false;
}

static bool read_decimal(char out[SCALAR_MAX], const char *token)
{
    static const char decimal[] = "0123456789";
    size_t length = 0;
    const char *at = token;
    if (*at == '+' || *at == '-') {
        if (*at == '-') {
            out[length++] = '-';
        }
        at++;
    }
    if (*at == '0' && isdigit((unsigned char)at[1])) {
        return false;
    }
    if (!copy_digits(out, &length, &at, decimal)) {
        return false;
    }
    if (*at == '.') {
        out[length++] = *at++;
        if (!copy_digits(out, &length, &at, decimal)) {
            return false;
        }
    }
    out[length] = '\0';
    return *at == '\0';
}

enum status config_read_scalar(struct config_cursor *cursor)
{
    char token[SCALAR_MAX];
    char text[SCALAR_MAX];
    size_t length = 0;
    if (config_peek(cursor) == '"' || config_peek(cursor) == '\'') {
        return config_read_string(cursor);
    }
    const char *begin = cursor->at;
    while (cursor->at < cursor->end && strchr(" \t\r\n,]#", *cursor->at) == NULL) {
        cursor->at++;
    }
    length = (size_t)(cursor->at - begin);
    cursor->at = begin;
    if (length == 0 || length >= sizeof(token) - 1) {
        return config_complain(cursor, STATUS_BAD_FIELD, "a value is expected here");
    }
    memcpy(token, begin, length);
    token[length] = '\0';
    if (strcmp(token, "true") == 0 || strcmp(token, "false") == 0) {
        memcpy(text, token, length + 1);
    } else if (!read_with_base(text, token) && !read_decimal(text, token)) {
        return config_complain(cursor, STATUS_BAD_FIELD,
                "neither a number nor true or false; text stands in \"quotes\"");
    }
    cursor->at = begin + length;
    cursor->value_length = (size_t)snprintf(cursor->value, sizeof(cursor->value), "%s", text);
    return STATUS_OK;
}
