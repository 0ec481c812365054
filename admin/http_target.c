/* SPDX-License-Identifier: MIT */
#include "admin/http_target.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/hex.h"

/* The byte that two digits say; below 0 when they do not, or it is NUL. */
static int decode_byte(const char *digits)
{
    int high = hex_digit(digits[0]);
    int low = high < 0 ? -1 : hex_digit(digits[1]);
    int byte = low < 0 ? -1 : high * 16 + low;
    return byte > 0 ? byte : -1;
}

/* In place: what is decoded is never longer. */
static enum status decode(char *text, bool plus_is_space)
{
    char *to = text;
    const char *from = text;
    while (*from != '\0') {
        int byte = *from == '+' && plus_is_space ? ' ' : (unsigned char)*from;
        from++;
        if (byte == '%') {
            byte = decode_byte(from);
            from += 2;
        }
        if (byte < 0) {
            return STATUS_BAD_FIELD;
        }
        *to++ = (char)byte;
    }
    *to = '\0';
    return STATUS_OK;
}

static enum status split_path(struct http_target *target, char *path)
{
    size_t length = strlen(path);
    if (path[0] != '/') {
        return STATUS_BAD_ADDRESS;
    }
    if (length > 1 && path[length - 1] == '/') {
        path[length - 1] = '\0';
    }
    char *next = path + 1;
    while (next != NULL && *path != '\0') {
        char *segment = strsep(&next, "/");
        if (target->segment_count == HTTP_SEGMENTS_MAX) {
            return STATUS_LIMIT_REACHED;
        }
        enum status status = decode(segment, false);
        if (status != STATUS_OK) {
            return status;
        }
        target->segments[target->segment_count++] = segment;
    }
    return STATUS_OK;
}

static enum status add_parameter(struct http_target *target, char *pair)
{
    char *value = pair;
    char *name = strsep(&value, "=");
    if (target->parameter_count == HTTP_PARAMETERS_MAX) {
        return STATUS_LIMIT_REACHED;
    }
    enum status status = decode(name, true);
    if (status == STATUS_OK && value != NULL) {
        status = decode(value, true);
    }
    target->parameters[target->parameter_count++] =
            (struct http_parameter){.name = name, .value = value != NULL ? value : ""};
    return status;
}

static enum status split_query(struct http_target *target, char *query)
{
    enum status status = STATUS_OK;
    while (status == STATUS_OK && query != NULL) {
        char *pair = strsep(&query, "&");
        if (pair[0] != '\0') {
            status = add_parameter(target, pair);
        }
    }
    return status;
}

/* Of a target with scheme and host, as proxies are sent it, the path; the target when there is none. */
static char *behind_host(char *target)
{
    static const char scheme[] = "http://";
    size_t length = sizeof(scheme) - 1;
    if (strncasecmp(target, scheme, length) != 0) {
        return target;
    }
    length += strcspn(target + length, "/?");
    return target[length] == '/' ? target + length : target;
}

/* Takes the values of later parameters of the same name into this one's, in *room; moves it behind. */
static void join_later(struct http_target *target, size_t i, char **room)
{
    struct http_parameter *first = &target->parameters[i];
    char *to = *room;
    for (size_t j = i + 1; first->name != NULL && j < target->parameter_count; j++) {
        struct http_parameter *next = &target->parameters[j];
        if (next->name != NULL && strcmp(next->name, first->name) == 0) {
            to = to == *room ? stpcpy(to, first->value) : to;
            to = stpcpy(stpcpy(to, ","), next->value);
            next->name = NULL;
        }
    }
    if (to != *room) {
        first->value = *room;
        *room = to + 1;
    }
}

/*
 * Values of one name become one, with commas between them, as the reference takes them. There is room
 * for it behind the text.
 */
static void join_values(struct http_target *target, char *room)
{
    for (size_t i = 0; i < target->parameter_count; i++) {
        join_later(target, i, &room);
    }
}

enum status http_target_parse(struct http_target *out, const char *raw)
{
    size_t size = strlen(raw) + 1;
    memset(out, 0, sizeof(*out));
    out->text = malloc(2 * size);
    if (out->text == NULL) {
        return STATUS_NO_MEMORY;
    }
    memcpy(out->text, raw, size);
    char *query = behind_host(out->text);
    char *path = strsep(&query, "?");
    enum status status = split_path(out, path);
    if (status == STATUS_OK) {
        status = split_query(out, query);
    }
    if (status == STATUS_OK) {
        join_values(out, out->text + size);
    }
    if (status != STATUS_OK) {
        http_target_fini(out);
    }
    return status;
}

void http_target_fini(struct http_target *target)
{
    free(target->text);
    memset(target, 0, sizeof(*target));
}

const char *http_target_find(const struct http_target *target, const char *name)
{
    for (size_t i = 0; i < target->parameter_count; i++) {
        const char *there = target->parameters[i].name; /* NULL: joined to another one */
        if (there != NULL && strcmp(there, name) == 0) {
            return target->parameters[i].value;
        }
    }
    return NULL;
}

bool http_target_matches(const struct http_target *target, const char *pattern)
{
    size_t i = 0;
    while (*pattern == '/') {
        const char *part = pattern + 1;
        size_t length = strcspn(part, "/");
        const char *segment = i < target->segment_count ? target->segments[i] : NULL;
        if (length == 1 && part[0] == '*') {
            return true;
        }
        if (segment == NULL) {
            return length == 0 && i == 0; /* the root */
        }
        bool fits = part[0] == '{' ? segment[0] != '\0'
                                   : strncmp(segment, part, length) == 0 && segment[length] == '\0';
        if (!fits) {
            return false;
        }
        pattern = part + length;
        i++;
    }
    return i == target->segment_count;
}
