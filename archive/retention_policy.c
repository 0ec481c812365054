/* SPDX-License-Identifier: MIT */
#include "archive/retention_policy.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum {
    TEXT_MAX = 256,
    SEGMENT_PART = 16 /* of a size bound */
};

static const uint64_t default_segment_bytes = 64 << 20;
static const uint64_t max_age_s = 100ULL * 365 * 86400; /* so that it counts in nanoseconds */

struct parser {
    char text[TEXT_MAX]; /* without blanks */
    struct retention_policy *out;
    char *why;
    size_t why_size;
};

static enum status refuse(const struct parser *parser, const char *what, const char *part)
{
    snprintf(parser->why, parser->why_size, "\"%s\": %s", part, what);
    return STATUS_BAD_ARGUMENT;
}

static enum status copy_without_blanks(struct parser *parser, const char *text)
{
    if (strlen(text) >= sizeof(parser->text)) {
        return refuse(parser, "too long", "retention policy");
    }
    size_t length = 0;
    for (; *text != '\0'; text++) {
        if (*text != ' ' && *text != '\t') {
            parser->text[length++] = *text;
        }
    }
    parser->text[length] = '\0';
    return STATUS_OK;
}

/* Digits only; false when there are none, others, or too many. */
static bool parse_whole(uint64_t *out, const char *text, uint64_t max)
{
    *out = 0;
    size_t length = strspn(text, "0123456789");
    if (length == 0 || length > 19 || text[length] != '\0') {
        return false;
    }
    *out = strtoull(text, NULL, 10);
    return *out <= max;
}

/* 0 when it is no unit. */
static double unit_of(const char *text)
{
    static const struct {
        const char *name;
        double bytes;
    } units[] = {{"kb", 1024.0}, {"mb", 1048576.0}, {"gb", 1073741824.0}, {"tb", 1099511627776.0}};
    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
        if (strcasecmp(text, units[i].name) == 0) {
            return units[i].bytes;
        }
    }
    return 0;
}

static enum status parse_size(struct parser *parser, const char *part, const char *value)
{
    size_t digits = strspn(value, "0123456789");
    size_t length = digits;
    if (value[digits] == '.') {
        size_t decimals = strspn(value + digits + 1, "0123456789");
        length += decimals + 1;
        digits += decimals;
    }
    double unit = unit_of(value + length);
    if (digits == 0 || digits > 15 || value[length - 1] == '.') {
        return refuse(parser, "a size is a number with a unit, such as size:30GB", part);
    }
    if (unit == 0) {
        return refuse(parser, "a size needs one of the units KB, MB, GB, TB", part);
    }
    double bytes = strtod(value, NULL) * unit;
    if (bytes < RETENTION_MIN_BYTES || bytes > 1e18) {
        return refuse(parser, "a size is from 1MB on", part);
    }
    parser->out->max_bytes = (uint64_t)bytes;
    return STATUS_OK;
}

static enum status parse_number(
        struct parser *parser, const char *part, const char *value, uint64_t max, uint64_t *out)
{
    if (!parse_whole(out, value, max)) {
        return refuse(parser, "a whole number is needed, or it is too large", part);
    }
    return *out == 0 ? refuse(parser, "0 would keep nothing", part) : STATUS_OK;
}

static enum status parse_part(struct parser *parser, char *part)
{
    struct retention_policy *out = parser->out;
    const struct {
        const char *kind;
        uint64_t *place;
    } kinds[] = {
            {"time:", &out->max_age_s}, {"capacity:", &out->max_count}, {"size:", &out->max_bytes}};
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        size_t length = strlen(kinds[i].kind);
        if (strncasecmp(part, kinds[i].kind, length) != 0) {
            continue;
        }
        if (*kinds[i].place != 0) {
            return refuse(parser, "that kind is there twice", part);
        }
        if (i == 2) {
            return parse_size(parser, part, part + length);
        }
        uint64_t max = i == 0 ? max_age_s : INT64_MAX;
        return parse_number(parser, part, part + length, max, kinds[i].place);
    }
    if (strcasecmp(part, "none") == 0) {
        return refuse(parser, "none stands alone", part);
    }
    return refuse(parser, "neither time:SECONDS nor capacity:COUNT nor size:N(MB|GB)", part);
}

enum status retention_policy_parse(
        struct retention_policy *out, const char *text, char *why, size_t why_size)
{
    struct parser parser = {.out = out, .why = why, .why_size = why_size};
    *out = (struct retention_policy){0};
    enum status status = copy_without_blanks(&parser, text);
    if (status != STATUS_OK || strcasecmp(parser.text, "none") == 0) {
        return status;
    }
    char *rest = NULL;
    for (char *part = strtok_r(parser.text, ";", &rest); part != NULL && status == STATUS_OK;
            part = strtok_r(NULL, ";", &rest)) {
        status = parse_part(&parser, part);
    }
    return status;
}

bool retention_policy_keeps_all(const struct retention_policy *policy)
{
    return policy->max_age_s == 0 && policy->max_count == 0 && policy->max_bytes == 0;
}

uint64_t retention_policy_segment_bytes(const struct retention_policy *policy)
{
    uint64_t part = policy->max_bytes / SEGMENT_PART;
    return part == 0 || part > default_segment_bytes ? default_segment_bytes : part;
}
