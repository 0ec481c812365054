/* SPDX-License-Identifier: MIT */
#pragma once

/* What the subcommands share: their options, and the log on standard error. */

#include <stdbool.h>

#include "base/options.h"

/*
 * Parses the arguments against specs (NULL-terminated table). NULL when there is nothing more to do,
 * after an error or --help; *exit_status is then set.
 */
struct options *command_parse(const char *usage, const struct option_spec *specs, int argc,
        char **argv, int *exit_status);

/* Writes log lines to standard error from now on. False when level is none. */
bool command_start_log(const char *level);
