/* SPDX-License-Identifier: MIT */

/* What an operator reads about options: why one was refused, and --help. */

#include <inttypes.h>
#include <string.h>

#include "base/options_private.h"

/* Levenshtein distance, names longer than the table count as far away. */
static size_t distance(const char *a, const char *b)
{
    enum {
        LONGEST = 63
    };
    size_t la = strlen(a);
    size_t lb = strlen(b);
    if (la > LONGEST || lb > LONGEST) {
        return SIZE_MAX;
    }
    size_t row[LONGEST + 1];
    for (size_t j = 0; j <= lb; j++) {
        row[j] = j;
    }
    for (size_t i = 1; i <= la; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= lb; j++) {
            size_t above = row[j];
            size_t best = diagonal + (a[i - 1] != b[j - 1]);
            best = above + 1 < best ? above + 1 : best;
            row[j] = row[j - 1] + 1 < best ? row[j - 1] + 1 : best;
            diagonal = above;
        }
    }
    return row[lb];
}

void options_explain_unknown(
        const struct options *options, const char *name, struct options_error *error)
{
    size_t nearest = SIZE_MAX;
    const char *candidate = NULL;
    for (size_t i = 0; i < options->count; i++) {
        size_t d = distance(name, options->values[i].spec->name);
        if (d < nearest) {
            nearest = d;
            candidate = options->values[i].spec->name;
        }
    }
    if (candidate == NULL) {
        snprintf(error->text, sizeof(error->text), "unknown option --%.80s", name);
        return;
    }
    snprintf(error->text, sizeof(error->text), "unknown option --%.80s; the nearest is --%s", name,
            candidate);
}

void options_explain_value(
        const struct option_spec *spec, const char *text, struct options_error *error)
{
    static const char *const expected[] = {"true or false", "a number",
            "a size such as 150KiB or 64MiB", "a time such as 250ms, 30s or 5m", "text", "text"};
    if (spec->max > 0) {
        bool is_time = spec->type == OPTION_SECONDS;
        snprintf(error->text, sizeof(error->text),
                "--%s=%.60s: expected %s from %" PRIu64 " to %" PRIu64 "%s", spec->name, text,
                expected[spec->type], spec->min, spec->max, is_time ? " ms" : "");
    } else {
        snprintf(error->text, sizeof(error->text), "--%s=%.60s: expected %s", spec->name, text,
                expected[spec->type]);
    }
}

enum {
    HELP_COLUMN = 8,
    HELP_WIDTH = 92
};

/* How much of text goes on one line: up to the last blank that fits, or else to the first. */
static size_t line_length(const char *text)
{
    size_t length = strlen(text);
    size_t width = HELP_WIDTH - HELP_COLUMN;
    if (length <= width) {
        return length;
    }
    length = width;
    while (length > 0 && text[length] != ' ') {
        length--;
    }
    return length > 0 ? length : strcspn(text, " ");
}

static void print_wrapped(const char *text, FILE *out)
{
    while (*text != '\0') {
        size_t length = line_length(text);
        fprintf(out, "%*s%.*s\n", HELP_COLUMN, "", (int)length, text);
        text += length;
        text += strspn(text, " ");
    }
}

static void print_option(const struct option_spec *spec, FILE *out)
{
    static const char *const placeholders[] = {
            "[=true|false]", "=N", "=SIZE", "=TIME", "=TEXT", "=TEXT (several times)"};
    char text[1024];
    int used = snprintf(text, sizeof(text), "%s", spec->help);
    size_t at = used < 0 ? 0 : (size_t)used < sizeof(text) ? (size_t)used : sizeof(text) - 1;
    if (spec->max > 0) {
        used = snprintf(text + at, sizeof(text) - at, "; %" PRIu64 " to %" PRIu64 "%s", spec->min,
                spec->max, spec->type == OPTION_SECONDS ? " ms" : "");
        at += used < 0 ? 0 : (size_t)used;
        at = at < sizeof(text) ? at : sizeof(text) - 1;
    }
    if (spec->fallback[0] != '\0') {
        snprintf(text + at, sizeof(text) - at, " (default %s)", spec->fallback);
    }
    fprintf(out, "  --%s%s\n", spec->name, placeholders[spec->type]);
    print_wrapped(text, out);
}

static bool is_first_of_group(const struct options *options, size_t i)
{
    for (size_t before = 0; before < i; before++) {
        if (strcmp(options->values[before].spec->group, options->values[i].spec->group) == 0) {
            return false;
        }
    }
    return true;
}

static void print_group(const struct options *options, const char *group, FILE *out)
{
    fprintf(out, "\n%s\n", group);
    for (size_t i = 0; i < options->count; i++) {
        if (strcmp(options->values[i].spec->group, group) == 0) {
            print_option(options->values[i].spec, out);
        }
    }
}

void options_print_help(const struct options *options, FILE *out)
{
    for (size_t i = 0; i < options->count; i++) {
        if (is_first_of_group(options, i)) {
            print_group(options, options->values[i].spec->group, out);
        }
    }
}
