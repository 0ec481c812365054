/* SPDX-License-Identifier: MIT */

/* sluice serve-echo: a libp2p node that sends back what it gets, for tests and measurements. */

#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "net/protocols/echo.h"
#include "tools/sluice/command_options.h"
#include "tools/sluice/commands.h"
#include "tools/sluice/key_options.h"
#include "tools/sluice/net_host.h"

static const char usage[] = "serve-echo [OPTIONS]";

static const struct option_spec specs[] = {
        {"listen", OPTION_LIST, "", 0, 0, "Net",
                "multiaddr to listen on; /ip4/127.0.0.1/tcp/0 when none is given"},
        {"io-threads", OPTION_NUMBER, "1", 1, NET_HOST_THREADS_MAX, "Net",
                "threads that own connections"},
        {"muxers", OPTION_TEXT, "yamux,mplex", 0, 0, "Net",
                "what is offered, best first: yamux, mplex, or both with a comma"},
        {"max-connections", OPTION_NUMBER, "150", 1, 1000000, "Net", "open connections"},
        {"ip-colocation-limit", OPTION_NUMBER, "0", 0, 1000000, "Net",
                "connections from one IPv4 address or IPv6 /64; 0: no limit"},
        {"upgrade-timeout", OPTION_SECONDS, "10s", 100, 600000, "Net",
                "time for the handshakes of a connection"},
        {"certificate", OPTION_TEXT, "", 0, 0, "Net", "PEM file, for /wss"},
        {"certificate-key", OPTION_TEXT, "", 0, 0, "Net", "PEM file, for /wss"},
        KEY_OPTIONS,
        {"log-level", OPTION_TEXT, "WARN", 0, 0, "Logging", "least level that is written"},
        {NULL, OPTION_BOOL, NULL, 0, 0, NULL, NULL},
};

static int complain(const char *what, enum status status)
{
    fprintf(stderr, "sluice serve-echo: %s: %s\n", what, status_text(status));
    return 1;
}

static bool parse_muxers(enum muxer_kind out[2], size_t *count, const char *text)
{
    static const char *const known[] = {"yamux", "mplex", "yamux,mplex", "mplex,yamux"};
    static const enum muxer_kind kinds[][2] = {{MUXER_YAMUX, MUXER_YAMUX},
            {MUXER_MPLEX, MUXER_MPLEX}, {MUXER_YAMUX, MUXER_MPLEX}, {MUXER_MPLEX, MUXER_YAMUX}};
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        if (strcmp(known[i], text) == 0) {
            memcpy(out, kinds[i], sizeof(kinds[i]));
            *count = i < 2 ? 1 : 2;
            return true;
        }
    }
    return false;
}

static enum status listen_on_all(struct net_host *host, const struct options *options)
{
    size_t count = options_list_count(options, "listen");
    if (count == 0) {
        return net_host_listen(host, "/ip4/127.0.0.1/tcp/0");
    }
    for (size_t i = 0; i < count; i++) {
        enum status status = net_host_listen(host, options_list_item(options, "listen", i));
        if (status != STATUS_OK) {
            return status;
        }
    }
    return STATUS_OK;
}

static void print_addresses(const struct net_host *host)
{
    const struct net_switch *net_switch = net_host_switch(host);
    const struct multiaddr *address;
    for (size_t i = 0; (address = switch_listen_address(net_switch, i)) != NULL; i++) {
        char text[MULTIADDR_TEXT_SIZE];
        struct multiaddr whole = *address;
        if (multiaddr_set_peer(&whole, identity_peer_id(switch_identity(net_switch))) ==
                STATUS_OK) {
            printf("LISTEN %s\n", multiaddr_print(text, &whole));
        }
    }
    printf("READY\n");
    fflush(stdout);
}

static int serve(struct net_host *host, const struct options *options)
{
    sigset_t signals;
    int signal_number;
    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGINT);
    /* Before the threads start, which inherit it. */
    pthread_sigmask(SIG_BLOCK, &signals, NULL);
    signal(SIGPIPE, SIG_IGN);
    enum status status = echo_register(net_host_switch(host));
    if (status == STATUS_OK) {
        status = listen_on_all(host, options);
    }
    if (status != STATUS_OK) {
        return complain("listen", status);
    }
    status = net_host_start(host);
    if (status != STATUS_OK) {
        return complain("threads", status);
    }
    print_addresses(host);
    sigwait(&signals, &signal_number);
    return 0;
}

static enum status make_tls(struct tls_context **out, const struct options *options)
{
    *out = NULL;
    if (!options_is_set(options, "certificate")) {
        return STATUS_OK;
    }
    return tls_context_create_server(
            out, options_text(options, "certificate"), options_text(options, "certificate-key"));
}

static int run_with_identity(const struct options *options, const struct identity *identity)
{
    enum muxer_kind muxers[2];
    struct net_host_options host_options = {.identity = identity,
            .io_threads = (unsigned)options_number(options, "io-threads"),
            .limits = {.muxers = muxers,
                    .connections_max = options_number(options, "max-connections"),
                    .group_max = options_number(options, "ip-colocation-limit"),
                    .upgrade_timeout_ms = options_number(options, "upgrade-timeout")}};
    if (!parse_muxers(muxers, &host_options.limits.muxer_count, options_text(options, "muxers"))) {
        fprintf(stderr, "sluice serve-echo: no muxers %s\n", options_text(options, "muxers"));
        return 2;
    }
    struct tls_context *tls;
    struct net_host *host;
    enum status status = make_tls(&tls, options);
    if (status != STATUS_OK) {
        return complain("certificate", status);
    }
    host_options.limits.tls_server = tls;
    status = net_host_create(&host, &host_options);
    int result = status == STATUS_OK ? serve(host, options) : complain("start", status);
    if (status == STATUS_OK) {
        net_host_destroy(&host);
    }
    tls_context_destroy(&tls);
    return result;
}

static int run_command(const struct options *options)
{
    struct identity *identity;
    if (!command_start_log(options_text(options, "log-level"))) {
        return 2;
    }
    enum status status = identity_from_options(&identity, options);
    if (status != STATUS_OK) {
        return complain("key", status);
    }
    int result = run_with_identity(options, identity);
    identity_destroy(&identity);
    return result;
}

int command_serve_echo(int argc, char **argv)
{
    int exit_status;
    struct options *options = command_parse(usage, specs, argc, argv, &exit_status);
    if (options == NULL) {
        return exit_status;
    }
    exit_status = run_command(options);
    options_destroy(&options);
    return exit_status;
}
