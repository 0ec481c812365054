/* SPDX-License-Identifier: MIT */

/*
 * Command line and environment: every line is an argument, or, behind a blank, a variable. A refusal
 * has a text.
 */

#include <stdlib.h>
#include <string.h>

#include "admin/config_sources.h"
#include "admin/reference_flags.h"
#include "node/node.h"
#include "tests/support/require.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum {
    LINES_MAX = 32
};

struct lines {
    char *arguments[LINES_MAX + 1];
    char *variables[LINES_MAX + 1];
    int argument_count;
    int variable_count;
};

static void take_report(void *context, enum config_grade grade, const char *text)
{
    size_t *errors = context;
    REQUIRE(text[0] != '\0');
    *errors += grade == CONFIG_ERROR;
}

/* Files are for another target. */
static void split(struct lines *lines, char *text)
{
    char *rest = text;
    for (char *line; (line = strsep(&rest, "\n")) != NULL;) {
        if (strstr(line, "onfig") != NULL || strstr(line, "ONFIG") != NULL) {
            continue;
        }
        if (line[0] == ' ' && lines->variable_count < LINES_MAX) {
            lines->variables[lines->variable_count++] = line + 1;
        } else if (line[0] != ' ' && lines->argument_count < LINES_MAX) {
            lines->arguments[lines->argument_count++] = line;
        }
    }
}

static void load(struct lines *lines)
{
    const struct option_spec *const tables[] = {options_of_node, reference_flags_table, NULL};
    struct options *options = NULL;
    size_t errors = 0;
    struct config_sources sources = {.argc = lines->argument_count,
            .argv = lines->arguments,
            .environment = lines->variables};
    struct config_reporter reporter = {.line = take_report, .context = &errors};
    struct node_error error = {.text = ""};
    REQUIRE(options_create(&options, tables) == STATUS_OK);
    if (config_load(options, &sources, &reporter) != STATUS_OK) {
        REQUIRE(errors > 0);
    } else if (node_check_options(options, &error) != STATUS_OK) {
        REQUIRE(error.text[0] != '\0');
    }
    options_destroy(&options);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct lines lines = {.argument_count = 0};
    char *text = malloc(size + 1);
    REQUIRE(text != NULL);
    memcpy(text, data, size);
    text[size] = '\0';
    split(&lines, text);
    load(&lines);
    free(text);
    return 0;
}
