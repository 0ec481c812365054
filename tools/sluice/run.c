/* SPDX-License-Identifier: MIT */

/* sluice run, also sluice without a command: the node itself, until it is told to stop. */

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "node/network.h"
#include "node/node.h"
#include "tools/common/node_options.h"
#include "tools/sluice/command_options.h"
#include "tools/sluice/commands.h"

static const char usage[] = "sluice [run] [OPTIONS]";

static void print_addresses(const struct network *network)
{
    char text[MULTIADDR_TEXT_SIZE];
    struct multiaddr address;
    for (size_t i = 0; network_address_at(network, i, &address); i++) {
        printf("LISTEN %s\n", multiaddr_print(text, &address));
    }
    printf("READY\n");
    fflush(stdout);
}

static int complain(const struct node_error *error)
{
    fprintf(stderr, "sluice: %s\n", error->text);
    return 1;
}

static int run_node(const struct options *options)
{
    struct node_hooks hooks = {.has_network = true};
    struct node_error error = {.text = ""};
    struct node *node;
    sigset_t signals;
    int signal_number;
    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGINT);
    /* Before the threads start, which inherit it. */
    pthread_sigmask(SIG_BLOCK, &signals, NULL);
    signal(SIGPIPE, SIG_IGN);
    if (node_create(&node, options, &hooks, &error) != STATUS_OK) {
        return complain(&error);
    }
    enum status status = node_start(node, &error);
    if (status == STATUS_OK) {
        print_addresses(node_network(node));
        sigwait(&signals, &signal_number);
        node_stop(node);
    }
    node_destroy(&node);
    return status == STATUS_OK ? 0 : complain(&error);
}

int command_run(int argc, char **argv)
{
    struct node_options loaded;
    int exit_status;
    (void)argc;
    if (!node_options_load(&loaded, usage, NULL, argv, &exit_status)) {
        return exit_status;
    }
    if (options_positional_count(loaded.options) > 0) {
        fprintf(stderr, "sluice: unexpected argument %s\nusage: %s\n",
                options_positional(loaded.options, 0), usage);
        exit_status = 2;
    } else if (!command_start_log(options_text(loaded.options, "log-level"))) {
        exit_status = 2;
    } else {
        node_options_log_notes(&loaded);
        exit_status = run_node(loaded.options);
    }
    node_options_fini(&loaded);
    return exit_status;
}
