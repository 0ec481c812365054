/* SPDX-License-Identifier: MIT */
#include "admin/config_sources.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "admin/config_file.h"
#include "admin/config_limits.h"
#include "admin/config_preset.h"
#include "admin/reference_flags.h"

enum {
    NAME_MAX_BYTES = 128
};

/* The weaker first: lists and scalars alike take the last. */
static const char *const prefixes[] = {"WAKUNODE2_", "SLUICE_"};

enum {
    PREFIX_COUNT = sizeof(prefixes) / sizeof(prefixes[0])
};

/* One source while it is read. */
struct reading {
    struct options *options;
    const struct config_reporter *reporter;
    enum option_source source;
    const char *origin; /* the file's path or the variable's name */
    enum status status; /* the first that went wrong */
    bool is_refused;    /* the array that is being read belongs to no list */
};

static void fail(struct reading *reading, enum status status)
{
    if (reading->status == STATUS_OK) {
        reading->status = status;
    }
}

static void fail_at(
        struct reading *reading, struct config_position at, enum status status, const char *text)
{
    config_report(reading->reporter, CONFIG_ERROR, "%s:%zu:%zu: %s", reading->origin, at.line,
            at.column, text);
    fail(reading, status);
}

static void take_file_value(
        void *context, struct config_position at, const char *key, const char *text, bool is_item)
{
    struct reading *reading = context;
    struct options_error error;
    if (is_item && reading->is_refused) {
        return;
    }
    if (strcmp(key, "config-file") == 0) {
        fail_at(reading, at, STATUS_BAD_ARGUMENT, "a configuration file names no other");
        return;
    }
    enum status status = options_set_from(reading->options, reading->source, key, text, &error);
    if (status != STATUS_OK) {
        fail_at(reading, at, status, error.text);
    }
}

static void take_file_array(void *context, struct config_position at, const char *key)
{
    struct reading *reading = context;
    struct options_error error;
    const struct option_spec *spec = options_find_spec(reading->options, key);
    reading->is_refused = spec == NULL || spec->type != OPTION_LIST;
    if (spec == NULL) {
        enum status status = options_set_from(reading->options, reading->source, key, "", &error);
        fail_at(reading, at, status, error.text);
    } else if (reading->is_refused) {
        fail_at(reading, at, STATUS_BAD_ARGUMENT, "the option takes one value, not an array");
    } else {
        options_empty_list(reading->options, reading->source, key);
    }
}

static enum status load_file(
        struct options *options, const char *path, const struct config_reporter *reporter)
{
    struct reading reading = {
            .options = options, .reporter = reporter, .source = OPTION_FROM_FILE, .origin = path};
    struct config_file_visitor visitor = {
            .value = take_file_value, .array = take_file_array, .context = &reading};
    struct config_file_error error;
    enum status status = config_file_read(path, &visitor, &error);
    if (status == STATUS_OK) {
        return reading.status;
    }
    if (error.position.line > 0) {
        fail_at(&reading, error.position, status, error.text);
    } else {
        config_report(reporter, CONFIG_ERROR, "--config-file=%s: %s", path, error.text);
    }
    return status;
}

/* "TCP_PORT" -> "tcp-port". False when it is too long to be an option. */
static bool option_name(char out[NAME_MAX_BYTES], const char *variable, size_t length)
{
    if (length >= NAME_MAX_BYTES) {
        return false;
    }
    for (size_t i = 0; i < length; i++) {
        char character = variable[i];
        bool is_upper = character >= 'A' && character <= 'Z';
        out[i] = (char)(character == '_' ? '-' : is_upper ? character + ('a' - 'A') : character);
    }
    out[length] = '\0';
    return true;
}

static void take_variable_item(
        void *context, struct config_position at, const char *key, const char *text, bool is_item)
{
    struct reading *reading = context;
    struct options_error error;
    (void)at;
    (void)is_item;
    enum status status = options_set_from(reading->options, reading->source, key, text, &error);
    if (status != STATUS_OK) {
        config_report(reading->reporter, CONFIG_ERROR, "%s: %s", reading->origin, error.text);
        fail(reading, status);
    }
}

static void ignore_array(void *context, struct config_position at, const char *key)
{
    (void)context;
    (void)at;
    (void)key;
}

/* An array in a variable is read as that line of a file would be. */
static void take_variable_array(struct reading *reading, const char *name, const char *text)
{
    struct config_file_visitor visitor = {
            .value = take_variable_item, .array = ignore_array, .context = reading};
    struct config_file_error error;
    size_t size = strlen(name) + strlen(text) + 2;
    char *line = malloc(size);
    if (line == NULL) {
        config_report(reading->reporter, CONFIG_ERROR, "%s: out of memory", reading->origin);
        fail(reading, STATUS_NO_MEMORY);
        return;
    }
    snprintf(line, size, "%s=%s", name, text);
    enum status status = config_file_parse(span_of_text(line), &visitor, &error);
    free(line);
    if (status != STATUS_OK) {
        config_report(reading->reporter, CONFIG_ERROR, "%s: %s", reading->origin, error.text);
        fail(reading, status);
    }
}

/* variable is "NAME=value" with the prefix cut off, origin its whole name. */
static void take_variable(struct reading *reading, const char *variable)
{
    char name[NAME_MAX_BYTES];
    size_t length = strcspn(variable, "=");
    const char *text = variable[length] == '=' ? variable + length + 1 : "";
    const struct option_spec *spec =
            option_name(name, variable, length) ? options_find_spec(reading->options, name) : NULL;
    if (spec == NULL) {
        config_report(reading->reporter, CONFIG_NOTE,
                "the environment's %s is passed over: there is no such option", reading->origin);
        return;
    }
    if (spec->type == OPTION_LIST) {
        options_empty_list(reading->options, reading->source, name);
    }
    if (spec->type == OPTION_LIST && text[0] == '[') {
        take_variable_array(reading, name, text);
    } else {
        take_variable_item(reading, (struct config_position){0}, name, text, true);
    }
}

static void take_variables(struct reading *reading, char *const *environment, const char *prefix)
{
    size_t prefix_length = strlen(prefix);
    for (char *const *variable = environment; *variable != NULL; variable++) {
        char origin[NAME_MAX_BYTES + 16];
        if (strncmp(*variable, prefix, prefix_length) != 0) {
            continue;
        }
        snprintf(origin, sizeof(origin), "%.*s", (int)strcspn(*variable, "="), *variable);
        reading->origin = origin;
        take_variable(reading, *variable + prefix_length);
    }
}

static enum status load_environment(
        struct options *options, char *const *environment, const struct config_reporter *reporter)
{
    struct reading reading = {
            .options = options, .reporter = reporter, .source = OPTION_FROM_ENVIRONMENT};
    for (size_t i = 0; i < PREFIX_COUNT; i++) {
        take_variables(&reading, environment, prefixes[i]);
    }
    return reading.status;
}

static enum status load_arguments(struct options *options, const struct config_sources *sources,
        const struct config_reporter *reporter)
{
    struct options_error error;
    enum status status = options_parse_arguments(options, sources->argc, sources->argv, &error);
    if (status != STATUS_OK) {
        config_report(reporter, CONFIG_ERROR, "%s", error.text);
        return status;
    }
    if (options_positional_count(options) > 0) {
        config_report(reporter, CONFIG_ERROR, "%.120s is no option: options are --name=value",
                options_positional(options, 0));
        return STATUS_BAD_ARGUMENT;
    }
    return STATUS_OK;
}

static enum status first_of(enum status first, enum status second)
{
    return first != STATUS_OK ? first : second;
}

enum status config_load(struct options *options, const struct config_sources *sources,
        const struct config_reporter *reporter)
{
    enum status status = load_arguments(options, sources, reporter);
    if (sources->environment != NULL) {
        status = first_of(status, load_environment(options, sources->environment, reporter));
    }
    const char *file = sources->file != NULL ? sources->file : options_text(options, "config-file");
    if (file[0] != '\0') {
        status = first_of(status, load_file(options, file, reporter));
    }
    status = first_of(status, config_preset_apply(options, reporter));
    config_limits_check(options, reporter);
    return first_of(status, reference_flags_check(options, reporter));
}
