/* SPDX-License-Identifier: MIT */
#pragma once

/* The subcommands of the program `sluice`; main.c has their table. */

/* Arguments behind the name of the subcommand; returns the exit status. */
int command_key(int argc, char **argv);
int command_ping(int argc, char **argv);
int command_serve_echo(int argc, char **argv);
