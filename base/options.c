/* SPDX-License-Identifier: MIT */
#include "base/options.h"

#include <assert.h>
#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

const struct option_spec options_of_node[] = {
#define OPTION(name, type, fallback, min, max, group, help)                                        \
    {name, OPTION_##type, fallback, min, max, group, help},
#include "base/options.def"
        {NULL, OPTION_BOOL, NULL, 0, 0, NULL, NULL},
};

struct option_value {
    const struct option_spec *spec;
    bool is_set;
    bool flag;
    uint64_t number;
    char *text;
    char **items;
    size_t item_count;
};

struct options {
    size_t count;
    struct option_value *values;
    char **positionals;
    size_t positional_count;
};

static struct option_value *find_value(const struct options *options, const char *name)
{
    for (size_t i = 0; i < options->count; i++) {
        if (strcmp(options->values[i].spec->name, name) == 0) {
            return &options->values[i];
        }
    }
    return NULL;
}

struct unit {
    const char *suffix;
    uint64_t factor;
};

/* Parses digits with an optional fraction, then one of the suffixes; the last row has none. */
static enum status parse_with_unit(uint64_t *out, const char *text, const struct unit *units)
{
    char *end;
    if (!isdigit((unsigned char)text[0])) {
        return STATUS_BAD_ARGUMENT;
    }
    long double value = strtold(text, &end);
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

static enum status parse_number(uint64_t *out, const char *text)
{
    static const struct unit units[] = {{"", 1}, {NULL, 0}};
    return strchr(text, '.') != NULL ? STATUS_BAD_ARGUMENT : parse_with_unit(out, text, units);
}

static enum status parse_flag(bool *out, const char *text)
{
    if (strcasecmp(text, "true") == 0 || strcmp(text, "1") == 0) {
        *out = true;
    } else if (strcasecmp(text, "false") == 0 || strcmp(text, "0") == 0) {
        *out = false;
    } else {
        return STATUS_BAD_ARGUMENT;
    }
    return STATUS_OK;
}

static enum status replace_text(char **text, const char *with)
{
    char *copy = strdup(with);
    if (copy == NULL) {
        return STATUS_NO_MEMORY;
    }
    free(*text);
    *text = copy;
    return STATUS_OK;
}

static enum status append_text(char ***items, size_t *count, const char *text)
{
    char **grown = realloc(*items, (*count + 1) * sizeof(**items));
    if (grown == NULL) {
        return STATUS_NO_MEMORY;
    }
    *items = grown;
    grown[*count] = strdup(text);
    if (grown[*count] == NULL) {
        return STATUS_NO_MEMORY;
    }
    (*count)++;
    return STATUS_OK;
}

static void free_items(char **items, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        free(items[i]);
    }
    free(items);
}

static enum status check_range(const struct option_spec *spec, uint64_t number)
{
    return number < spec->min || number > spec->max ? STATUS_BAD_ARGUMENT : STATUS_OK;
}

static enum status assign(struct option_value *value, const char *text)
{
    uint64_t number = 0;
    enum status status = STATUS_OK;
    switch (value->spec->type) {
    case OPTION_BOOL:
        return parse_flag(&value->flag, text);
    case OPTION_NUMBER:
        status = parse_number(&number, text);
        break;
    case OPTION_BYTES:
        status = options_parse_bytes(&number, text);
        break;
    case OPTION_SECONDS:
        status = options_parse_duration(&number, text);
        break;
    case OPTION_TEXT:
        return replace_text(&value->text, text);
    case OPTION_LIST:
        return append_text(&value->items, &value->item_count, text);
    }
    if (status == STATUS_OK) {
        status = check_range(value->spec, number);
    }
    if (status == STATUS_OK) {
        value->number = number;
    }
    return status;
}

static size_t count_specs(const struct option_spec *const tables[])
{
    size_t count = 0;
    for (size_t t = 0; tables[t] != NULL; t++) {
        for (const struct option_spec *spec = tables[t]; spec->name != NULL; spec++) {
            count++;
        }
    }
    return count;
}

enum status options_create(struct options **out, const struct option_spec *const tables[])
{
    struct options *options = calloc(1, sizeof(*options));
    if (options == NULL) {
        return STATUS_NO_MEMORY;
    }
    options->values = calloc(count_specs(tables) + 1, sizeof(*options->values));
    if (options->values == NULL) {
        free(options);
        return STATUS_NO_MEMORY;
    }
    for (size_t t = 0; tables[t] != NULL; t++) {
        for (const struct option_spec *spec = tables[t]; spec->name != NULL; spec++) {
            assert(find_value(options, spec->name) == NULL);
            struct option_value *value = &options->values[options->count++];
            value->spec = spec;
            enum status status =
                    spec->type == OPTION_LIST ? STATUS_OK : assign(value, spec->fallback);
            assert(status != STATUS_BAD_ARGUMENT);
            if (status != STATUS_OK) {
                options_destroy(&options);
                return status;
            }
        }
    }
    *out = options;
    return STATUS_OK;
}

void options_destroy(struct options **options)
{
    if (*options == NULL) {
        return;
    }
    for (size_t i = 0; i < (*options)->count; i++) {
        free((*options)->values[i].text);
        free_items((*options)->values[i].items, (*options)->values[i].item_count);
    }
    free_items((*options)->positionals, (*options)->positional_count);
    free((*options)->values);
    free(*options);
    *options = NULL;
}

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

static void explain_unknown(
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

static void explain_value(
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

enum status options_set(
        struct options *options, const char *name, const char *text, struct options_error *error)
{
    struct option_value *value = find_value(options, name);
    if (value == NULL) {
        explain_unknown(options, name, error);
        return STATUS_NOT_FOUND;
    }
    enum status status = assign(value, text);
    if (status == STATUS_BAD_ARGUMENT) {
        explain_value(value->spec, text, error);
    } else if (status != STATUS_OK) {
        snprintf(error->text, sizeof(error->text), "--%s: %s", name, status_text(status));
    } else {
        value->is_set = true;
    }
    return status;
}

/* argument points behind the "--". *used tells whether next was taken as the value. */
static enum status parse_one(struct options *options, const char *argument, const char *next,
        bool *used, struct options_error *error)
{
    char name[128];
    const char *equals = strchr(argument, '=');
    size_t length = equals != NULL ? (size_t)(equals - argument) : strlen(argument);
    if (length >= sizeof(name)) {
        length = sizeof(name) - 1;
    }
    memcpy(name, argument, length);
    name[length] = '\0';
    *used = false;
    if (equals != NULL) {
        return options_set(options, name, equals + 1, error);
    }
    const struct option_value *value = find_value(options, name);
    if (value != NULL && value->spec->type == OPTION_BOOL) {
        return options_set(options, name, "true", error);
    }
    if (value != NULL && next == NULL) {
        snprintf(error->text, sizeof(error->text), "--%s needs a value", name);
        return STATUS_BAD_ARGUMENT;
    }
    *used = true;
    return options_set(options, name, next != NULL ? next : "", error);
}

enum status options_parse_arguments(
        struct options *options, int argc, char *const argv[], struct options_error *error)
{
    bool only_positionals = false;
    for (int i = 0; i < argc; i++) {
        enum status status;
        if (!only_positionals && strcmp(argv[i], "--") == 0) {
            only_positionals = true;
            continue;
        }
        if (only_positionals || strncmp(argv[i], "--", 2) != 0) {
            status = append_text(&options->positionals, &options->positional_count, argv[i]);
        } else {
            bool used = false;
            const char *next = i + 1 < argc ? argv[i + 1] : NULL;
            status = parse_one(options, argv[i] + 2, next, &used, error);
            i += used ? 1 : 0;
        }
        if (status != STATUS_OK) {
            return status;
        }
    }
    return STATUS_OK;
}

static const struct option_value *existing(
        const struct options *options, const char *name, enum option_type type)
{
    const struct option_value *value = find_value(options, name);
    assert(value != NULL);
    assert(value->spec->type == type);
    return value;
}

bool options_flag(const struct options *options, const char *name)
{
    return existing(options, name, OPTION_BOOL)->flag;
}

uint64_t options_number(const struct options *options, const char *name)
{
    const struct option_value *value = find_value(options, name);
    assert(value != NULL);
    assert(value->spec->type == OPTION_NUMBER || value->spec->type == OPTION_BYTES ||
            value->spec->type == OPTION_SECONDS);
    return value->number;
}

const char *options_text(const struct options *options, const char *name)
{
    return existing(options, name, OPTION_TEXT)->text;
}

size_t options_list_count(const struct options *options, const char *name)
{
    return existing(options, name, OPTION_LIST)->item_count;
}

const char *options_list_item(const struct options *options, const char *name, size_t i)
{
    const struct option_value *value = existing(options, name, OPTION_LIST);
    assert(i < value->item_count);
    return value->items[i];
}

bool options_is_set(const struct options *options, const char *name)
{
    const struct option_value *value = find_value(options, name);
    assert(value != NULL);
    return value->is_set;
}

size_t options_positional_count(const struct options *options)
{
    return options->positional_count;
}

const char *options_positional(const struct options *options, size_t i)
{
    assert(i < options->positional_count);
    return options->positionals[i];
}

static void print_option(const struct option_spec *spec, FILE *out)
{
    static const char *const placeholders[] = {"", "=N", "=SIZE", "=TIME", "=TEXT", "=TEXT..."};
    fprintf(out, "  --%s%s\n        %s", spec->name, placeholders[spec->type], spec->help);
    if (spec->max > 0) {
        fprintf(out, "; %" PRIu64 " to %" PRIu64 "%s", spec->min, spec->max,
                spec->type == OPTION_SECONDS ? " ms" : "");
    }
    if (spec->fallback[0] != '\0') {
        fprintf(out, " (default %s)", spec->fallback);
    }
    fputc('\n', out);
}

void options_print_help(const struct options *options, FILE *out)
{
    const char *group = NULL;
    for (size_t i = 0; i < options->count; i++) {
        const struct option_spec *spec = options->values[i].spec;
        if (group == NULL || strcmp(group, spec->group) != 0) {
            group = spec->group;
            fprintf(out, "\n%s\n", group);
        }
        print_option(spec, out);
    }
}
