/* SPDX-License-Identifier: MIT */

/* flood: load for a router, and the proof that nothing of it was lost, doubled or torn. */

#include <stdio.h>

#include "tools/common/program_log.h"
#include "tools/flood/in_process.h"

enum {
    EXIT_FAILED = 1,
    EXIT_USAGE = 2
};

int main(int argc, char *argv[])
{
    const struct option_spec *const tables[] = {flood_in_process_options, options_of_node, NULL};
    struct options *options = NULL;
    struct options_error error;
    if (options_create(&options, tables) != STATUS_OK) {
        return EXIT_FAILED;
    }
    int exit_status = EXIT_USAGE;
    if (options_parse_arguments(options, argc - 1, argv + 1, &error) != STATUS_OK) {
        fprintf(stderr, "flood: %s\n", error.text);
    } else if (options_flag(options, "help")) {
        printf("usage: flood --in-process [OPTIONS]\n");
        options_print_help(options, stdout);
        exit_status = 0;
    } else if (options_positional_count(options) > 0) {
        fprintf(stderr, "flood: unexpected argument \"%s\"\n", options_positional(options, 0));
    } else if (!options_flag(options, "in-process")) {
        fprintf(stderr, "flood: --in-process is the only mode there is\n");
    } else if (program_log_start_on_request(options)) {
        exit_status = flood_in_process(options);
        program_log_stop();
    }
    options_destroy(&options);
    return exit_status;
}
