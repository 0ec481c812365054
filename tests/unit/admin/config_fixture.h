/* SPDX-License-Identifier: MIT */
#pragma once

/* Options of a node with the flags of the reference, and what is reported about them. */

#include <stdio.h>
#include <string.h>

#include "admin/config_report.h"
#include "admin/reference_flags.h"
#include "base/options.h"
#include "tests/support/cmocka.h"

struct reports {
    char notes[8192];
    char errors[8192];
    size_t note_count;
    size_t error_count;
};

static inline void take_report(void *context, enum config_grade grade, const char *text)
{
    struct reports *reports = context;
    char *out = grade == CONFIG_ERROR ? reports->errors : reports->notes;
    size_t length = strlen(out);
    snprintf(out + length, sizeof(reports->notes) - length, "%s\n", text);
    reports->error_count += grade == CONFIG_ERROR;
    reports->note_count += grade == CONFIG_NOTE;
}

static inline struct config_reporter reporter_of(struct reports *reports)
{
    memset(reports, 0, sizeof(*reports));
    return (struct config_reporter){.line = take_report, .context = reports};
}

/* more: a table for what the node's does not have; NULL: none. */
static inline struct options *made_options(const struct option_spec *more)
{
    const struct option_spec *tables[] = {options_of_node, reference_flags_table, more, NULL};
    struct options *options = NULL;
    assert_int_equal(options_create(&options, tables), STATUS_OK);
    return options;
}
