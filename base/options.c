/* SPDX-License-Identifier: MIT */
#include "base/options_private.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

const struct option_spec options_of_node[] = {
#define OPTION(name, type, fallback, min, max, group, help)                                        \
    {name, OPTION_##type, fallback, min, max, group, help},
#include "base/options.def"
        {NULL, OPTION_BOOL, NULL, 0, 0, NULL, NULL},
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
        return options_parse_flag(&value->flag, text);
    case OPTION_NUMBER:
        status = options_parse_number(&number, text);
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

static enum status add_table(struct options *options, const struct option_spec *table)
{
    enum status status = STATUS_OK;
    for (const struct option_spec *spec = table; status == STATUS_OK && spec->name != NULL;
            spec++) {
        bool is_new = find_value(options, spec->name) == NULL;
        assert(is_new);
        struct option_value *value = &options->values[options->count++];
        value->spec = spec;
        status = spec->type == OPTION_LIST ? STATUS_OK : assign(value, spec->fallback);
        assert(status != STATUS_BAD_ARGUMENT);
    }
    return status;
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
    enum status status = STATUS_OK;
    for (size_t t = 0; status == STATUS_OK && tables[t] != NULL; t++) {
        status = add_table(options, tables[t]);
    }
    if (status != STATUS_OK) {
        options_destroy(&options);
        return status;
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

static void clear_items(struct option_value *value)
{
    free_items(value->items, value->item_count);
    value->items = NULL;
    value->item_count = 0;
}

/* Whether a value from that source counts. What a list had from a weaker source goes. */
static bool prevails(struct option_value *value, enum option_source source)
{
    if (source < value->source) {
        return false;
    }
    if (source > value->source) {
        clear_items(value);
    }
    return true;
}

enum status options_set_from(struct options *options, enum option_source source, const char *name,
        const char *text, struct options_error *error)
{
    struct option_value *value = find_value(options, name);
    if (value == NULL) {
        options_explain_unknown(options, name, error);
        return STATUS_NOT_FOUND;
    }
    /* A value that does not count must be right all the same, or a file breaks when a flag goes. */
    struct option_value unused = {.spec = value->spec};
    bool counts = prevails(value, source);
    enum status status = assign(counts ? value : &unused, text);
    free(unused.text);
    clear_items(&unused);
    if (status == STATUS_BAD_ARGUMENT) {
        options_explain_value(value->spec, text, error);
    } else if (status != STATUS_OK) {
        snprintf(error->text, sizeof(error->text), "--%s: %s", name, status_text(status));
    } else if (counts) {
        value->source = source;
    }
    return status;
}

enum status options_set(
        struct options *options, const char *name, const char *text, struct options_error *error)
{
    return options_set_from(options, OPTION_FROM_ARGUMENT, name, text, error);
}

void options_empty_list(struct options *options, enum option_source source, const char *name)
{
    struct option_value *value = find_value(options, name);
    assert(value != NULL);
    assert(value->spec->type == OPTION_LIST);
    if (prevails(value, source)) {
        clear_items(value);
        value->source = source;
    }
}

/* argument points behind the "--". *used tells whether next was taken as the value. */
static enum status parse_one(struct options *options, const char *argument, const char *next,
        bool *used, struct options_error *error)
{
    char name[128];
    size_t length = strcspn(argument, "=:");
    const char *value_text = argument[length] != '\0' ? argument + length + 1 : NULL;
    if (length >= sizeof(name)) {
        length = sizeof(name) - 1;
    }
    memcpy(name, argument, length);
    name[length] = '\0';
    *used = false;
    if (value_text != NULL) {
        return options_set(options, name, value_text, error);
    }
    const struct option_value *value = find_value(options, name);
    if (value == NULL || value->spec->type == OPTION_BOOL) {
        return options_set(options, name, "true", error);
    }
    if (next == NULL) {
        snprintf(error->text, sizeof(error->text), "--%s needs a value", name);
        return STATUS_BAD_ARGUMENT;
    }
    *used = true;
    return options_set(options, name, next, error);
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

enum option_source options_source(const struct options *options, const char *name)
{
    const struct option_value *value = find_value(options, name);
    assert(value != NULL);
    return value->source;
}

bool options_is_set(const struct options *options, const char *name)
{
    return options_source(options, name) != OPTION_FROM_DEFAULT;
}

const struct option_spec *options_find_spec(const struct options *options, const char *name)
{
    const struct option_value *value = find_value(options, name);
    return value != NULL ? value->spec : NULL;
}

size_t options_count(const struct options *options)
{
    return options->count;
}

const struct option_spec *options_spec_at(const struct options *options, size_t i)
{
    assert(i < options->count);
    return options->values[i].spec;
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
