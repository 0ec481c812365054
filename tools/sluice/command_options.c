/* SPDX-License-Identifier: MIT */
#include "tools/sluice/command_options.h"

#include <stdio.h>
#include <string.h>

#include "base/log.h"

static bool wants_help(int argc, char **argv)
{
    for (int i = 0; i < argc; i++) {
        if (strcmp(argv[i], "--help") == 0) {
            return true;
        }
    }
    return false;
}

struct options *command_parse(
        const char *usage, const struct option_spec *specs, int argc, char **argv, int *exit_status)
{
    const struct option_spec *const tables[] = {specs, NULL};
    struct options *options;
    struct options_error error = {""};
    *exit_status = 1;
    enum status status = options_create(&options, tables);
    if (status != STATUS_OK) {
        fprintf(stderr, "sluice: %s\n", status_text(status));
        return NULL;
    }
    if (wants_help(argc, argv)) {
        printf("usage: sluice %s\n", usage);
        options_print_help(options, stdout);
        options_destroy(&options);
        *exit_status = 0;
        return NULL;
    }
    if (options_parse_arguments(options, argc, argv, &error) != STATUS_OK) {
        fprintf(stderr, "sluice: %s\nusage: sluice %s\n", error.text, usage);
        options_destroy(&options);
        *exit_status = 2;
        return NULL;
    }
    *exit_status = 0;
    return options;
}

static void write_line(void *context, enum log_level level, const char *module, const char *line)
{
    (void)context;
    fprintf(stderr, "%s %s: %s\n", log_level_name(level), module, line);
}

bool command_start_log(const char *level)
{
    enum log_level parsed;
    if (!log_level_from_name(&parsed, level)) {
        fprintf(stderr, "sluice: no log level %s\n", level);
        return false;
    }
    log_set_level(parsed);
    log_set_sink(write_line, NULL);
    return true;
}
