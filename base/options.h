/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Settings by name, from tables of specifications: the node's (base/options.def) and those that a
 * program adds. Every value has a documented default and, where it is a number, a range.
 *
 * Thread: one thread, before the others start; after that it may be read from any.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/attributes.h"
#include "base/status.h"

enum option_type {
    OPTION_BOOL,
    OPTION_NUMBER,
    OPTION_BYTES,
    OPTION_SECONDS, /* read with options_number, in milliseconds */
    OPTION_TEXT,
    OPTION_LIST
};

struct option_spec {
    const char *name; /* NULL ends a table */
    enum option_type type;
    const char *fallback;
    uint64_t min;
    uint64_t max;
    const char *group;
    const char *help;
};

/*
 * Where a value came from. A later one of this list prevails over an earlier one, in whatever order
 * they are set; of one source the last prevails. A list has the items of one source only.
 */
enum option_source {
    OPTION_FROM_DEFAULT,
    OPTION_FROM_PRESET,
    OPTION_FROM_FILE,
    OPTION_FROM_ENVIRONMENT,
    OPTION_FROM_ARGUMENT
};

/* The node's own table. */
extern const struct option_spec options_of_node[];

/* Why a setting was refused, in one line for the operator. */
struct options_error {
    char text[256];
};

struct options;

/* tables: NULL-terminated list of tables, which must outlive the options. */
MUST_USE enum status options_create(struct options **out, const struct option_spec *const tables[]);
void options_destroy(struct options **options);

/*
 * STATUS_NOT_FOUND for an unknown name (the error names the nearest), STATUS_BAD_ARGUMENT. A value
 * that does not prevail is checked and then passed over.
 */
MUST_USE enum status options_set_from(struct options *options, enum option_source source,
        const char *name, const char *text, struct options_error *error);

/* A list without items, which is a value too. The list exists. */
void options_empty_list(struct options *options, enum option_source source, const char *name);

/* As an argument of the command line. */
MUST_USE enum status options_set(
        struct options *options, const char *name, const char *text, struct options_error *error);

/*
 * Takes --name=value, --name:value, --name value and, for BOOL, the bare --name. What does not start with "--" is
 * collected as a positional argument; "--" ends the options.
 */
MUST_USE enum status options_parse_arguments(
        struct options *options, int argc, char *const argv[], struct options_error *error);

/* The caller names an option that exists and has that type; anything else is a bug (assert). */
bool options_flag(const struct options *options, const char *name);
uint64_t options_number(const struct options *options, const char *name);
const char *BORROWED options_text(const struct options *options, const char *name);
size_t options_list_count(const struct options *options, const char *name);
const char *BORROWED options_list_item(const struct options *options, const char *name, size_t i);

/* True when the value was set by somebody, false when it is the default. */
bool options_is_set(const struct options *options, const char *name);
enum option_source options_source(const struct options *options, const char *name);

/* NULL when there is no such option. Borrowed from the table. */
const struct option_spec *BORROWED options_find_spec(
        const struct options *options, const char *name);
size_t options_count(const struct options *options);
const struct option_spec *BORROWED options_spec_at(const struct options *options, size_t i);

size_t options_positional_count(const struct options *options);
const char *BORROWED options_positional(const struct options *options, size_t i);

/* All options, grouped, with default and range. */
void options_print_help(const struct options *options, FILE *out);

/* "150KiB", "1500 B" or "153600" -> bytes. STATUS_BAD_ARGUMENT when it is no size or does not fit. */
MUST_USE enum status options_parse_bytes(uint64_t *out, const char *text);

/* "1.5h", "300s", "250ms", "300" -> milliseconds. */
MUST_USE enum status options_parse_duration(uint64_t *out_ms, const char *text);
