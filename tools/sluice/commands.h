/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The subcommands of the program `sluice`; the table is in main.c. Each gets the arguments behind its
 * name and returns the exit status: 0, 1 when it failed, 2 when it was called wrongly; one line on
 * standard error says why.
 */

#include <stddef.h>

struct command {
    const char *name;
    const char *help;
    int (*run)(int argc, char **argv);
};

extern const struct command command_table[];
extern const size_t command_count;

int command_run(int argc, char **argv);
int command_replay(int argc, char **argv);
int command_archive(int argc, char **argv);
int command_query(int argc, char **argv);
int command_history(int argc, char **argv);
int command_sync(int argc, char **argv);
int command_publish(int argc, char **argv);
int command_subscribe(int argc, char **argv);
int command_config(int argc, char **argv);
int command_man(int argc, char **argv);
int command_top(int argc, char **argv);
int command_key(int argc, char **argv);
int command_ping(int argc, char **argv);
int command_serve_echo(int argc, char **argv);
