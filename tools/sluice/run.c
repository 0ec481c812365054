/* SPDX-License-Identifier: MIT */

/* sluice run, also sluice without a command: the node itself, until it is told to stop. */

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "node/network.h"
#include "node/node.h"
#include "tools/common/node_options.h"
#include "tools/common/program_log.h"
#include "tools/sluice/commands.h"
#include "tools/sluice/service_manager.h"

enum {
    EXIT_FAILED = 1, /* of the world */
    EXIT_USAGE = 2   /* of the configuration */
};

static const char usage[] = "sluice [run] [OPTIONS]";

static void print_addresses(const struct network *network)
{
    char text[MULTIADDR_TEXT_SIZE];
    struct multiaddr address;
    for (size_t i = 0; network != NULL && network_address_at(network, i, &address); i++) {
        printf("LISTEN %s\n", multiaddr_print(text, &address));
    }
}

static void print_servers(const struct node *node, const struct options *options)
{
    const char *address = options_text(options, "metrics-server-address");
    bool is_ip6 = strchr(address, ':') != NULL;
    if (node_metrics_port(node) != 0) {
        printf("METRICS http://%s%s%s:%u/\n", is_ip6 ? "[" : "", address, is_ip6 ? "]" : "",
                node_metrics_port(node));
    }
    printf("READY\n");
    fflush(stdout);
}

static int complain(const struct node_error *error, enum status status)
{
    fprintf(stderr, "sluice: %s\n", error->text);
    return status == STATUS_BAD_ARGUMENT ? EXIT_USAGE : EXIT_FAILED;
}

/* SIGHUP: what was replaced behind our back is opened anew; connections stay. */
static void reload(struct node *node)
{
    struct network *network = node_network(node);
    program_log_reopen();
    enum status status = network == NULL ? STATUS_OK : network_reload_certificate(network);
    if (status == STATUS_OK) {
        log_write(LOG_NOTICE, "node", "log and certificate are opened anew");
    } else {
        log_write(LOG_WARN, "node", "the certificate cannot be read, the old one stays: %s",
                status_text(status));
    }
}

static int run_node(const struct options *options)
{
    struct node_hooks hooks = {.has_network = options_flag(options, "network")};
    struct node_error error = {.text = ""};
    struct node *node;
    sigset_t signals;
    int signal_number;
    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGHUP);
    /* Before the threads start, which inherit it. */
    pthread_sigmask(SIG_BLOCK, &signals, NULL);
    signal(SIGPIPE, SIG_IGN);
    enum status status = node_create(&node, options, &hooks, &error);
    if (status != STATUS_OK) {
        return complain(&error, status);
    }
    status = node_start(node, &error);
    if (status == STATUS_OK) {
        print_addresses(node_network(node));
        print_servers(node, options);
        service_manager_tell("READY=1");
        while (sigwait(&signals, &signal_number) != 0 || signal_number == SIGHUP) {
            reload(node);
        }
        service_manager_tell("STOPPING=1");
        node_stop(node);
    }
    node_destroy(&node);
    return status == STATUS_OK ? 0 : complain(&error, status);
}

int command_run(int argc, char **argv)
{
    struct node_options loaded;
    int exit_status;
    (void)argc;
    if (!node_options_load(&loaded, usage, NULL, argv, &exit_status)) {
        return exit_status;
    }
    /* Before there is a log, so that it is the only line. */
    struct node_error error = {.text = ""};
    enum status status = node_check_options(loaded.options, &error);
    if (status != STATUS_OK) {
        (void)complain(&error, status);
        exit_status = EXIT_USAGE;
    } else if (program_log_start(loaded.options)) {
        node_options_log_notes(&loaded);
        exit_status = run_node(loaded.options);
        program_log_stop();
    } else {
        exit_status = 2;
    }
    node_options_fini(&loaded);
    return exit_status;
}
