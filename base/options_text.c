/* SPDX-License-Identifier: MIT */

/* Numbers, sizes, times and flags from text. */

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/options_private.h"

struct unit {
    const char *suffix;
    uint64_t factor;
};

/* Digits with an optional fraction, blanks, then one of the suffixes; the last row has none. */
static enum status parse_with_unit(uint64_t *out, const char *text, const struct unit *units)
{
    size_t length = strspn(text, "0123456789.");
    const char *end = text + length + strspn(text + length, " ");
    if (!isdigit((unsigned char)text[0])) {
        return STATUS_BAD_ARGUMENT;
    }
    char *digits_end;
    long double value = strtold(text, &digits_end);
    if (digits_end != text + length) {
        return STATUS_BAD_ARGUMENT;
    }
    const struct unit *unit = units;
    while (unit->suffix != NULL && strcasecmp(end, unit->suffix) != 0) {
        unit++;
    }
    if (unit->suffix == NULL) {
        return STATUS_BAD_ARGUMENT;
    }
    value *= (long double)unit->factor;
    if (!(value >= 0) || value >= 18446744073709551615.0L) {
        return STATUS_BAD_ARGUMENT;
    }
    *out = (uint64_t)value;
    return STATUS_OK;
}

enum status options_parse_bytes(uint64_t *out, const char *text)
{
    static const struct unit units[] = {{"", 1}, {"B", 1}, {"KiB", 1ULL << 10}, {"MiB", 1ULL << 20},
            {"GiB", 1ULL << 30}, {"TiB", 1ULL << 40}, {"KB", 1000}, {"k", 1000}, {"MB", 1000000},
            {"GB", 1000000000}, {"TB", 1000000000000}, {NULL, 0}};
    return parse_with_unit(out, text, units);
}

enum status options_parse_duration(uint64_t *out_ms, const char *text)
{
    static const struct unit units[] = {
            {"", 1000}, {"ms", 1}, {"s", 1000}, {"m", 60000}, {"h", 3600000}, {NULL, 0}};
    return parse_with_unit(out_ms, text, units);
}

enum status options_parse_number(uint64_t *out, const char *text)
{
    static const struct unit units[] = {{"", 1}, {NULL, 0}};
    return strchr(text, '.') != NULL ? STATUS_BAD_ARGUMENT : parse_with_unit(out, text, units);
}

/* Nothing at all is true: it is what a bare flag says. */
enum status options_parse_flag(bool *out, const char *text)
{
    static const char *const yes[] = {"", "true", "1", "yes", "y", "on"};
    static const char *const no[] = {"false", "0", "no", "n", "off"};
    for (size_t i = 0; i < sizeof(yes) / sizeof(yes[0]); i++) {
        if (strcasecmp(text, yes[i]) == 0) {
            *out = true;
            return STATUS_OK;
        }
    }
    for (size_t i = 0; i < sizeof(no) / sizeof(no[0]); i++) {
        if (strcasecmp(text, no[i]) == 0) {
            *out = false;
            return STATUS_OK;
        }
    }
    return STATUS_BAD_ARGUMENT;
}
