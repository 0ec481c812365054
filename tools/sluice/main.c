/* SPDX-License-Identifier: MIT */

/* The program `sluice`: one executable, a subcommand for each thing it does. */

#include <stdio.h>
#include <string.h>

#include "base/version.h"
#include "tools/sluice/commands.h"

const struct command command_table[] = {
        {"run", "be a node; also without a command", command_run},
        {"replay", "feed captured relay traffic through the router", command_replay},
        {"archive", "backup|verify|import: care of an archive's files", command_archive},
        {"query", "ask an archive for messages", command_query},
        {"history", "ask a node for stored messages", command_history},
        {"sync", "bring an archive together with that of a node", command_sync},
        {"publish", "have a node publish messages", command_publish},
        {"subscribe", "print messages as a node pushes them", command_subscribe},
        {"top", "show a node's live figures", command_top},
        {"key", "new|show: make a key file, or print the peer id of one", command_key},
        {"config", "check FILE: what is wrong with a configuration file", command_config},
        {"man", "print the manual page", command_man},
        {"ping", "measure the round trip to a libp2p peer", command_ping},
        {"serve-echo", "send back what peers send, for tests", command_serve_echo},
};

const size_t command_count = sizeof(command_table) / sizeof(command_table[0]);

static void print_help(FILE *out)
{
    fprintf(out, "usage: sluice COMMAND [OPTIONS]\n\n");
    for (size_t i = 0; i < command_count; i++) {
        fprintf(out, "  %-12s %s\n", command_table[i].name, command_table[i].help);
    }
    fprintf(out,
            "\nsluice COMMAND --help tells more. Options without a command are those of run.\n");
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        print_help(stderr);
        return 2;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "help") == 0) {
        print_help(stdout);
        return 0;
    }
    if (strcmp(argv[1], "--version") == 0) {
        printf("sluice %s\n", SLUICE_VERSION);
        return 0;
    }
    if (argv[1][0] == '-') {
        return command_run(argc - 1, argv + 1);
    }
    for (size_t i = 0; i < command_count; i++) {
        if (strcmp(argv[1], command_table[i].name) == 0) {
            return command_table[i].run(argc - 2, argv + 2);
        }
    }
    fprintf(stderr, "sluice: unknown command %s\n", argv[1]);
    print_help(stderr);
    return 2;
}
