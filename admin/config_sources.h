/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Options from everywhere: the command line prevails over the environment, that over the
 * configuration file, that over the preset, that over the defaults; whichever prevails, every source
 * is checked whole, and every fault of it is reported.
 *
 * The variable of --tcp-port is SLUICE_TCP_PORT, else WAKUNODE2_TCP_PORT as the reference has it; it
 * holds what would stand behind the flag. For a list it holds one item, or several as an array:
 * ["a", "b"]. Variables with such a prefix that are no option get a note: whoever runs containers
 * puts some there of its own.
 */

#include "admin/config_report.h"
#include "base/attributes.h"
#include "base/options.h"
#include "base/status.h"

struct config_sources {
    int argc; /* arguments without the program's name */
    char *const *argv;
    char *const *environment; /* "NAME=value", NULL behind the last; NULL: none */
    const char *file;         /* NULL: what --config-file says */
};

/*
 * options has the tables of the node and of reference_flags. Afterwards presets are applied and the
 * reference's flags judged. Any status but STATUS_OK: errors were reported.
 */
MUST_USE enum status config_load(struct options *options, const struct config_sources *sources,
        const struct config_reporter *reporter);
