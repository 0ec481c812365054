/* SPDX-License-Identifier: MIT */
#include "tools/common/node_options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "admin/config_limits.h"
#include "admin/config_sources.h"
#include "admin/reference_flags.h"
#include "base/log.h"

enum {
    NOTES_MAX = sizeof(((struct node_options *)0)->notes) / sizeof(char *) - 1,
    EXIT_FAILED = 1,
    EXIT_USAGE = 2
};

static void keep_note(struct node_options *loaded, const char *text)
{
    size_t i = 0;
    while (i < NOTES_MAX && loaded->notes[i] != NULL) {
        i++;
    }
    if (i < NOTES_MAX) {
        loaded->notes[i] = strdup(text);
    }
}

static void take_line(void *context, enum config_grade grade, const char *text)
{
    if (grade == CONFIG_ERROR) {
        fprintf(stderr, "%s\n", text);
    } else {
        keep_note(context, text);
    }
}

static bool wants_help(char *const arguments[])
{
    for (size_t i = 0; arguments[i] != NULL; i++) {
        if (strcmp(arguments[i], "--help") == 0) {
            return true;
        }
    }
    return false;
}

static void print_help(const struct options *options, const char *usage)
{
    printf("usage: %s\n", usage);
    options_print_help(options, stdout);
    printf("\nEvery option may also stand in the file of --config-file (TOML, the same names) and "
           "in\n"
           "the environment: SLUICE_TCP_PORT or WAKUNODE2_TCP_PORT for --tcp-port. The command "
           "line\n"
           "prevails over the environment, that over the file.\n");
}

static bool make(struct node_options *out, const struct option_spec *more, int *exit_status)
{
    const struct option_spec *const tables[] = {options_of_node, reference_flags_table, more, NULL};
    *exit_status = EXIT_FAILED;
    memset(out, 0, sizeof(*out));
    enum status status = options_create(&out->options, tables);
    if (status != STATUS_OK) {
        fprintf(stderr, "options: %s\n", status_text(status));
    }
    return status == STATUS_OK;
}

static bool load(struct node_options *out, const struct config_sources *sources, int *exit_status)
{
    struct config_reporter reporter = {.line = take_line, .context = out};
    if (config_load(out->options, sources, &reporter) != STATUS_OK) {
        node_options_fini(out);
        *exit_status = EXIT_USAGE;
        return false;
    }
    config_memory_check(out->options, config_machine_bytes(), &reporter);
    *exit_status = 0;
    return true;
}

bool node_options_load(struct node_options *out, const char *usage, const struct option_spec *more,
        char *const arguments[], int *exit_status)
{
    struct config_sources sources = {.argv = arguments, .environment = environ};
    while (arguments[sources.argc] != NULL) {
        sources.argc++;
    }
    if (!make(out, more, exit_status)) {
        return false;
    }
    if (wants_help(arguments)) {
        print_help(out->options, usage);
        node_options_fini(out);
        *exit_status = 0;
        return false;
    }
    return load(out, &sources, exit_status);
}

bool node_options_load_file(struct node_options *out, const char *path, int *exit_status)
{
    struct config_sources sources = {.file = path};
    return make(out, NULL, exit_status) && load(out, &sources, exit_status);
}

void node_options_log_notes(const struct node_options *loaded)
{
    for (size_t i = 0; loaded->notes[i] != NULL; i++) {
        log_write(LOG_NOTICE, "config", "%s", loaded->notes[i]);
    }
}

void node_options_fini(struct node_options *loaded)
{
    for (size_t i = 0; loaded->notes[i] != NULL; i++) {
        free(loaded->notes[i]);
        loaded->notes[i] = NULL;
    }
    options_destroy(&loaded->options);
}
