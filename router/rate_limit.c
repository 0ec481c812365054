/* SPDX-License-Identifier: MIT */
#include "router/rate_limit.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "base/clock.h"

enum {
    NAME_MAX_BYTES = 16,
    NUMBER_MAX = 1000000000,
    UNLISTED = RATE_SERVICES /* for all that are not named */
};

static const struct {
    const char *name;
    enum rate_service service;
} names[] = {
        {"storev3", RATE_STORE},
        {"store", RATE_STORE},
        {"lightpush", RATE_LIGHTPUSH},
        {"px", RATE_PEER_EXCHANGE},
        {"filter", RATE_FILTER},
};

static const struct {
    const char *name;
    uint64_t nanoseconds;
} units[] = {
        {"ms", NANOSECONDS_PER_MILLISECOND},
        {"s", NANOSECONDS_PER_SECOND},
        {"m", 60ULL * NANOSECONDS_PER_SECOND},
        {"h", 3600ULL * NANOSECONDS_PER_SECOND},
};

static struct rate_limit per(uint64_t volume, uint64_t seconds)
{
    return (struct rate_limit){.volume = volume, .period_ns = seconds * NANOSECONDS_PER_SECOND};
}

void rate_limits_default(struct rate_limits *out)
{
    *out = (struct rate_limits){.of = {[RATE_FILTER] = per(100, 1),
                                        [RATE_LIGHTPUSH] = per(5, 1),
                                        [RATE_PEER_EXCHANGE] = per(5, 1)}};
}

static void skip_spaces(const char **text)
{
    while (isspace((unsigned char)**text)) {
        (*text)++;
    }
}

static char lowered(char letter)
{
    return (char)(tolower)((unsigned char)letter); /* the function: the macro is a nest */
}

/* The letters and digits of a name or a unit, in lower case; "" when there are none or too many. */
static void read_word(char out[NAME_MAX_BYTES], const char **text)
{
    size_t length = strspn(*text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789");
    out[0] = '\0';
    if (length < NAME_MAX_BYTES) {
        for (size_t i = 0; i < length; i++) {
            out[i] = lowered((*text)[i]);
        }
        out[length] = '\0';
        *text += length;
    }
}

static bool read_number(uint64_t *out, const char **text)
{
    *out = 0;
    if (!isdigit((unsigned char)**text)) {
        return false;
    }
    for (; isdigit((unsigned char)**text); (*text)++) {
        *out = *out * 10 + (uint64_t)(**text - '0');
        if (*out > NUMBER_MAX) {
            return false;
        }
    }
    return true;
}

/* The place in names, UNNAMED when none stands there. */
enum {
    UNNAMED = sizeof(names) / sizeof(names[0]),
    UNKNOWN
};

static size_t read_protocol(const char **text)
{
    char name[NAME_MAX_BYTES];
    skip_spaces(text);
    if (isdigit((unsigned char)**text)) {
        return UNNAMED;
    }
    read_word(name, text);
    skip_spaces(text);
    if (**text != ':') {
        return UNKNOWN;
    }
    (*text)++;
    for (size_t i = 0; i < UNNAMED; i++) {
        if (strcmp(name, names[i].name) == 0) {
            return i;
        }
    }
    return UNKNOWN;
}

static bool read_period(uint64_t *out_ns, const char **text)
{
    char unit[NAME_MAX_BYTES];
    skip_spaces(text);
    if (!read_number(out_ns, text)) {
        return false;
    }
    skip_spaces(text);
    read_word(unit, text);
    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
        if (strcmp(unit, units[i].name) == 0) {
            *out_ns *= units[i].nanoseconds;
            return true;
        }
    }
    return false;
}

static bool read_kind(bool *is_shared, const char **text)
{
    char word[NAME_MAX_BYTES];
    skip_spaces(text);
    read_word(word, text);
    *is_shared = word[0] == '\0';
    return *is_shared || strcmp(word, "each") == 0;
}

static bool parse_one(size_t *name, struct rate_limit *out, const char *text)
{
    *name = read_protocol(&text);
    if (*name == UNKNOWN) {
        return false;
    }
    skip_spaces(&text);
    if (!read_number(&out->volume, &text)) {
        return false;
    }
    skip_spaces(&text);
    if (*text != '/') {
        return false;
    }
    text++;
    if (!read_period(&out->period_ns, &text) || !read_kind(&out->is_shared, &text)) {
        return false;
    }
    skip_spaces(&text);
    return *text == '\0';
}

enum status rate_limits_parse(
        struct rate_limits *out, const char *const texts[], size_t count, size_t *bad)
{
    struct rate_limit listed[RATE_SERVICES + 1] = {{0}};
    bool is_listed[RATE_SERVICES + 1] = {false};
    for (size_t i = 0; i < count; i++) {
        size_t name;
        struct rate_limit limit;
        if (!parse_one(&name, &limit, texts[i])) {
            *bad = i;
            return STATUS_BAD_ARGUMENT;
        }
        size_t service = name == UNNAMED ? UNLISTED : (size_t)names[name].service;
        bool is_general = name != UNNAMED && strcmp(names[name].name, "store") == 0;
        if (!is_general || !is_listed[service]) {
            listed[service] = limit;
            is_listed[service] = true;
        }
    }
    for (size_t i = 0; i < RATE_SERVICES; i++) {
        out->of[i] = is_listed[i] ? listed[i] : listed[UNLISTED];
    }
    if (!is_listed[RATE_FILTER]) {
        out->of[RATE_FILTER] = per(30, 60);
    }
    out->of[RATE_FILTER].is_shared = false; /* a subscriber's pings are its own, there too */
    return STATUS_OK;
}
