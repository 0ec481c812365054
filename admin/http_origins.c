/* SPDX-License-Identifier: MIT */
#include "admin/http_origins.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum {
    PATTERNS_MAX = 64,
    PATTERN_SIZE = 256
};

struct http_origins {
    size_t count;
    char patterns[PATTERNS_MAX][PATTERN_SIZE];
};

static enum status add_pattern(struct http_origins *origins, const char *text, size_t length)
{
    if (length == 0) {
        return STATUS_OK;
    }
    if (origins->count == PATTERNS_MAX || length >= PATTERN_SIZE) {
        return STATUS_LIMIT_REACHED;
    }
    memcpy(origins->patterns[origins->count++], text, length);
    return STATUS_OK;
}

static enum status add_item(struct http_origins *origins, const char *item)
{
    enum status status = STATUS_OK;
    while (status == STATUS_OK && *item != '\0') {
        size_t length = strcspn(item, ",");
        status = add_pattern(origins, item, length);
        item += length + (item[length] == ',' ? 1 : 0);
    }
    return status;
}

enum status http_origins_create(struct http_origins **out, const char *const *items, size_t count)
{
    struct http_origins *origins = calloc(1, sizeof(*origins));
    enum status status = origins == NULL ? STATUS_NO_MEMORY : STATUS_OK;
    for (size_t i = 0; status == STATUS_OK && i < count; i++) {
        status = add_item(origins, items[i]);
    }
    if (status != STATUS_OK) {
        free(origins);
        return status;
    }
    *out = origins;
    return STATUS_OK;
}

void http_origins_destroy(struct http_origins **origins)
{
    free(*origins);
    *origins = NULL;
}

bool http_origins_is_empty(const struct http_origins *origins)
{
    return origins->count == 0;
}

bool http_origins_has_all(const struct http_origins *origins)
{
    for (size_t i = 0; i < origins->count; i++) {
        if (strcmp(origins->patterns[i], "*") == 0) {
            return true;
        }
    }
    return false;
}

/* Places of the pattern that the text read so far may have led to: all at once, so time is bounded. */
struct places {
    bool at[PATTERN_SIZE];
};

/* What a wildcard may skip without a character of the text. */
static void skip_wildcards(struct places *places, const char *pattern)
{
    for (size_t i = 0; pattern[i] != '\0'; i++) {
        if (places->at[i] && (pattern[i] == '*' || pattern[i] == '?')) {
            places->at[i + 1] = true;
        }
    }
}

static bool is_same(char a, char b)
{
    return strncasecmp(&a, &b, 1) == 0;
}

static bool step(struct places *to, const struct places *from, const char *pattern, char c)
{
    bool any = false;
    memset(to, 0, sizeof(*to));
    for (size_t i = 0; pattern[i] != '\0'; i++) {
        if (from->at[i] && pattern[i] == '*') {
            to->at[i] = any = true;
        } else if (from->at[i] && (pattern[i] == '?' || is_same(pattern[i], c))) {
            to->at[i + 1] = any = true;
        }
    }
    return any;
}

static bool is_match(const char *pattern, const char *text)
{
    struct places places[2] = {{.at = {true}}};
    size_t now = 0;
    skip_wildcards(&places[0], pattern);
    for (; *text != '\0'; text++) {
        if (!step(&places[1 - now], &places[now], pattern, *text)) {
            return false;
        }
        now = 1 - now;
        skip_wildcards(&places[now], pattern);
    }
    return places[now].at[strlen(pattern)];
}

static const char *behind_scheme(const char *origin)
{
    static const char *const schemes[] = {"http://", "https://"};
    for (size_t i = 0; i < sizeof(schemes) / sizeof(schemes[0]); i++) {
        size_t length = strlen(schemes[i]);
        if (strncasecmp(origin, schemes[i], length) == 0) {
            return origin + length;
        }
    }
    return NULL;
}

bool http_origins_match(const struct http_origins *origins, const char *origin)
{
    const char *host = behind_scheme(origin);
    for (size_t i = 0; i < origins->count; i++) {
        const char *pattern = origins->patterns[i];
        if (strcmp(pattern, "*") == 0) {
            return true;
        }
        bool has_scheme = behind_scheme(pattern) != NULL;
        const char *text = has_scheme ? origin : host;
        if (text != NULL && is_match(pattern, text)) {
            return true;
        }
    }
    return false;
}
