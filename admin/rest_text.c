/* SPDX-License-Identifier: MIT */
#include "admin/rest_text.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hex.h"
#include "codec/base64.h"
#include "codec/utf8.h"

void rest_text_fini(struct rest_text *text)
{
    free(text->bytes);
    memset(text, 0, sizeof(*text));
}

/* Room for so many more and a NUL; NULL when there is none. */
static char *reserve(struct rest_text *text, size_t more)
{
    enum {
        ROOM_MIN = 256
    };
    size_t room = text->room > 0 ? text->room : ROOM_MIN;
    while (room < text->length + more + 1) {
        room *= 2;
    }
    if (text->has_failed) {
        return NULL;
    }
    if (room != text->room) {
        char *bytes = realloc(text->bytes, room);
        if (bytes == NULL) {
            text->has_failed = true;
            return NULL;
        }
        text->bytes = bytes;
        text->room = room;
    }
    return text->bytes + text->length;
}

void rest_text_add_span(struct rest_text *text, struct span raw)
{
    char *to = reserve(text, raw.length);
    if (to != NULL && raw.length > 0) {
        memcpy(to, raw.bytes, raw.length);
        text->length += raw.length;
    }
}

void rest_text_add(struct rest_text *text, const char *raw)
{
    rest_text_add_span(text, span_of_text(raw));
}

static size_t escape(char *out, unsigned char byte, bool is_utf8)
{
    static const char plain[] = "\b\f\n\r\t\"\\";
    static const char letters[] = "bfnrt\"\\";
    const char *known = byte != 0 ? strchr(plain, byte) : NULL;
    if (known != NULL) {
        out[0] = '\\';
        out[1] = letters[known - plain];
        return 2;
    }
    if (byte < ' ') {
        return (size_t)sprintf(out, "\\u%04x", byte);
    }
    out[0] = (char)(byte >= 0x80 && !is_utf8 ? '?' : byte);
    return 1;
}

void rest_text_add_string(struct rest_text *text, struct span string)
{
    enum {
        ESCAPE_MAX = 6
    };
    bool is_utf8 = utf8_is_valid(string);
    rest_text_add(text, "\"");
    for (size_t i = 0; i < string.length; i++) {
        char *to = reserve(text, ESCAPE_MAX);
        if (to == NULL) {
            return;
        }
        text->length += escape(to, string.bytes[i], is_utf8);
    }
    rest_text_add(text, "\"");
}

void rest_text_add_base64(struct rest_text *text, struct span bytes)
{
    rest_text_add(text, "\"");
    char *to = reserve(text, base64_size(bytes.length));
    if (to != NULL) {
        text->length += base64_encode(to, bytes);
    }
    rest_text_add(text, "\"");
}

void rest_text_add_hex(struct rest_text *text, struct span bytes)
{
    rest_text_add(text, "\"0x");
    char *to = reserve(text, 2 * bytes.length);
    if (to != NULL) {
        hex_encode(to, bytes);
        text->length += 2 * bytes.length;
    }
    rest_text_add(text, "\"");
}

void rest_text_add_number(struct rest_text *text, int64_t number)
{
    char digits[32];
    snprintf(digits, sizeof(digits), "%" PRId64, number);
    rest_text_add(text, digits);
}

void rest_text_add_bool(struct rest_text *text, bool value)
{
    rest_text_add(text, value ? "true" : "false");
}

char *rest_text_take(struct rest_text *text, size_t *length)
{
    char *end = reserve(text, 0);
    if (end == NULL) {
        rest_text_fini(text);
        return NULL;
    }
    *end = '\0';
    char *bytes = text->bytes;
    *length = text->length;
    memset(text, 0, sizeof(*text));
    return bytes;
}
