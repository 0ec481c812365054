/* SPDX-License-Identifier: MIT */

/* sluice config check: what `sluice run` would say about a configuration file. */

#include <stdio.h>
#include <string.h>

#include "node/node.h"
#include "tools/common/node_options.h"
#include "tools/sluice/commands.h"

static const char usage[] = "usage: sluice config check FILE\n";

static int check(const char *path)
{
    struct node_options loaded;
    int exit_status;
    if (!node_options_load_file(&loaded, path, &exit_status)) {
        return exit_status == 2 ? 1 : exit_status;
    }
    for (size_t i = 0; loaded.notes[i] != NULL; i++) {
        printf("note: %s\n", loaded.notes[i]);
    }
    struct node_error error = {.text = ""};
    bool is_good = node_check_options(loaded.options, &error) == STATUS_OK;
    if (is_good) {
        printf("%s: good\n", path);
    } else {
        fprintf(stderr, "%s: %s\n", path, error.text);
    }
    node_options_fini(&loaded);
    return is_good ? 0 : 1;
}

int command_config(int argc, char **argv)
{
    if (argc == 1 && strcmp(argv[0], "--help") == 0) {
        printf("%sReads the file as sluice run does, and says what is wrong with it, and what it "
               "passes over.\n",
                usage);
        return 0;
    }
    if (argc != 2 || strcmp(argv[0], "check") != 0) {
        fputs(usage, stderr);
        return 2;
    }
    return check(argv[1]);
}
