/* SPDX-License-Identifier: MIT */
#pragma once

/* The inside of struct options, for base/options*.c only. */

#include <stdbool.h>

#include "base/options.h"

struct option_value {
    const struct option_spec *spec;
    enum option_source source;
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

/* base/options_text.c: values from texts. STATUS_BAD_ARGUMENT. */
MUST_USE enum status options_parse_number(uint64_t *out, const char *text);
MUST_USE enum status options_parse_flag(bool *out, const char *text);

/* base/options_explain.c: one line for the operator. */
void options_explain_unknown(
        const struct options *options, const char *name, struct options_error *error);
void options_explain_value(
        const struct option_spec *spec, const char *text, struct options_error *error);
