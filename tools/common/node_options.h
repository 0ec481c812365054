/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The options of a program that runs a node: the node's table, the reference's flags, and what the
 * program adds, from the command line, the environment and a configuration file.
 */

#include <stdbool.h>

#include "base/options.h"

struct node_options {
    struct options *options;
    char *notes[64]; /* for the log, once there is one; NULL behind the last */
};

/*
 * usage: the line behind "usage: "; more: the program's own table, or NULL. Handles --help and writes
 * every fault to standard error. False when there is nothing more to do: *exit_status says how it
 * ends. Arguments are those behind the name of the program or command.
 */
MUST_USE bool node_options_load(struct node_options *out, const char *usage,
        const struct option_spec *more, char *const arguments[], int *exit_status);

/* The same for a file alone, as if it were given with --config-file and nothing else were set. */
MUST_USE bool node_options_load_file(struct node_options *out, const char *path, int *exit_status);

/* One log line a note, level NOTICE. */
void node_options_log_notes(const struct node_options *loaded);
void node_options_fini(struct node_options *loaded);
