/* SPDX-License-Identifier: MIT */

/* flood: load for a router, and the proof that nothing of it was lost, doubled or torn. */

#include <stdio.h>
#include <string.h>

#include "tools/common/program_log.h"
#include "tools/flood/common.h"
#include "tools/flood/in_process.h"
#include "tools/flood/network.h"

enum {
    EXIT_FAILED = 1,
    EXIT_USAGE = 2
};

static const struct option_spec log_options[] = {
        {"log-level", OPTION_TEXT, "WARN", 0, 0, "Logging", "least level that is written"},
        {"log-format", OPTION_TEXT, "TEXT", 0, 0, "Logging", "TEXT or JSON, one object a line"},
        {"log-file", OPTION_TEXT, "", 0, 0, "Logging", "where log lines go; standard error"},
        {NULL, OPTION_BOOL, NULL, 0, 0, NULL, NULL},
};

/* The node's options go with the mode that has a node. */
static const struct option_spec *const in_process_tables[] = {
        flood_options, flood_in_process_options, options_of_node, NULL};
static const struct option_spec *const network_tables[] = {
        flood_options, flood_network_options, log_options, NULL};

static bool wants_in_process(int argc, char *argv[])
{
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--in-process") == 0 || strcmp(argv[i], "--in-process=true") == 0) {
            return true;
        }
    }
    return false;
}

static int run(const struct options *options, bool is_in_process)
{
    if (!is_in_process && options_list_count(options, "peer") == 0) {
        fprintf(stderr, "flood: name a node with --peer=MULTIADDR, or use --in-process\n");
        return EXIT_USAGE;
    }
    if (!program_log_start_on_request(options)) {
        return EXIT_USAGE;
    }
    int exit_status = is_in_process ? flood_in_process(options) : flood_network(options);
    program_log_stop();
    return exit_status;
}

int main(int argc, char *argv[])
{
    bool is_in_process = wants_in_process(argc, argv);
    struct options *options = NULL;
    struct options_error error;
    if (options_create(&options, is_in_process ? in_process_tables : network_tables) != STATUS_OK) {
        return EXIT_FAILED;
    }
    int exit_status = EXIT_USAGE;
    if (options_parse_arguments(options, argc - 1, argv + 1, &error) != STATUS_OK) {
        fprintf(stderr, "flood: %s\n", error.text);
    } else if (options_flag(options, "help")) {
        printf("usage: flood --peer=MULTIADDR [OPTIONS]\n       flood --in-process [OPTIONS]\n");
        options_print_help(options, stdout);
        exit_status = 0;
    } else if (options_positional_count(options) > 0) {
        fprintf(stderr, "flood: unexpected argument \"%s\"\n", options_positional(options, 0));
    } else {
        exit_status = run(options, is_in_process);
    }
    options_destroy(&options);
    return exit_status;
}
