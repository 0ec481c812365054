/* SPDX-License-Identifier: MIT */

/*
 * sluice sync MULTIADDR: brings an archive together with that of a node, once, and says what it took.
 * It is a node that does nothing but this; the archive must not be in use by another one.
 */

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/metrics.h"
#include "node/network.h"
#include "node/node.h"
#include "tools/common/node_options.h"
#include "tools/common/program_log.h"
#include "tools/sluice/commands.h"

static const char usage[] = "sluice sync MULTIADDR [OPTIONS]";

enum {
    ATTEMPTS_MAX = 3,
    QUIET_MS = 10 * 1000, /* without a message, and what is still to come does not come */
    SLICE_MS = 20
};

static const struct option_spec specs[] = {
        {"timeout", OPTION_SECONDS, "60s", 100, 86400000, "Sync",
                "time to connect and to find out what each side lacks"},
        {"json", OPTION_BOOL, "false", 0, 0, "Sync", "print one JSON object"},
        {NULL, OPTION_BOOL, NULL, 0, 0, NULL, NULL},
};

/* In front of the caller's own, which prevail. */
static const char *const settings[] = {"--store=true", "--store-sync=true",
        "--store-sync-interval=24h", "--relay=false", "--lightpush=false", "--filter=false",
        "--tcp-port=0", "--listen-address=127.0.0.1", "--log-level=WARN"};

enum {
    SETTINGS = sizeof(settings) / sizeof(settings[0])
};

struct outcome {
    uint64_t payloads; /* theirs */
    uint64_t bytes;    /* of payloads, both directions */
    uint64_t they_lack;
    uint64_t sent;
    uint64_t unsent;
    uint64_t we_lack;
    uint64_t received;
};

static uint64_t counted(const struct node *node, enum metric metric)
{
    return metrics_sum(node_metrics(node), metric);
}

static struct outcome read_outcome(const struct node *node)
{
    return (struct outcome){.payloads = counted(node, METRIC_SYNC_ROUNDS),
            .bytes = counted(node, METRIC_SYNC_BYTES_IN) + counted(node, METRIC_SYNC_BYTES_OUT),
            .they_lack = counted(node, METRIC_SYNC_THEY_LACK),
            .sent = counted(node, METRIC_SYNC_MESSAGES_OUT),
            .unsent = counted(node, METRIC_SYNC_UNSENT_NOT_STORED) +
                      counted(node, METRIC_SYNC_UNSENT_TOO_LARGE) +
                      counted(node, METRIC_SYNC_UNSENT_PEER_GONE),
            .we_lack = counted(node, METRIC_SYNC_WE_LACK),
            .received = counted(node, METRIC_SYNC_MESSAGES_IN)};
}

static uint64_t failures_of(const struct node *node)
{
    return counted(node, METRIC_SYNC_SESSIONS_FAILED) + counted(node, METRIC_SYNC_SESSIONS_BUSY) +
           counted(node, METRIC_SYNC_SESSIONS_LIMIT) +
           counted(node, METRIC_SYNC_SESSIONS_MALFORMED);
}

static void rest(void)
{
    struct timespec slice = {.tv_nsec = (long)SLICE_MS * NANOSECONDS_PER_MILLISECOND};
    nanosleep(&slice, NULL);
}

/* False: none has come to its end. */
static bool wait_session(const struct node *node, uint64_t timeout_ms)
{
    uint64_t end_ns = clock_monotonic_ns() + timeout_ms * NANOSECONDS_PER_MILLISECOND;
    while (counted(node, METRIC_SYNC_SESSIONS_ENDED) == 0) {
        if (clock_monotonic_ns() >= end_ns || failures_of(node) >= ATTEMPTS_MAX) {
            return false;
        }
        rest();
    }
    return true;
}

static bool is_complete(const struct outcome *outcome)
{
    return outcome->sent + outcome->unsent >= outcome->they_lack &&
           outcome->received >= outcome->we_lack;
}

/* Until everything has come and gone, and is archived, or nothing moves any more. */
static struct outcome wait_transfers(const struct node *node)
{
    struct outcome outcome = read_outcome(node);
    uint64_t moved_ns = clock_monotonic_ns();
    while (!is_complete(&outcome) || node_held(node, LEDGER_STAGE_ARCHIVE) > 0) {
        struct outcome now = read_outcome(node);
        if (memcmp(&now, &outcome, sizeof(now)) != 0) {
            moved_ns = clock_monotonic_ns();
            outcome = now;
        } else if (clock_monotonic_ns() - moved_ns >
                   (uint64_t)QUIET_MS * NANOSECONDS_PER_MILLISECOND) {
            break;
        }
        rest();
    }
    return outcome;
}

static int print_outcome(const struct outcome *outcome, bool is_json)
{
    static const char *const forms[] = {"payloads %" PRIu64 ", %" PRIu64 " bytes; sent %" PRIu64
                                        " of %" PRIu64 " messages, received %" PRIu64 " of %" PRIu64
                                        "\n",
            "{\"payloads\":%" PRIu64 ",\"bytes\":%" PRIu64 ",\"sent\":%" PRIu64
            ",\"they_lacked\":%" PRIu64 ",\"received\":%" PRIu64 ",\"we_lacked\":%" PRIu64 "}\n"};
    if (is_json) {
        printf(forms[1], outcome->payloads, outcome->bytes, outcome->sent, outcome->they_lack,
                outcome->received, outcome->we_lack);
    } else {
        printf(forms[0], outcome->payloads, outcome->bytes, outcome->sent, outcome->they_lack,
                outcome->received, outcome->we_lack);
    }
    bool is_whole = outcome->sent >= outcome->they_lack && outcome->received >= outcome->we_lack;
    return is_whole ? 0 : 1;
}

static int sync_once(const struct options *options)
{
    struct node_hooks hooks = {.has_network = true};
    struct node_error error = {.text = ""};
    struct node *node = NULL;
    int result = 1;
    enum status status = node_create(&node, options, &hooks, &error);
    if (status == STATUS_OK) {
        status = node_start(node, &error);
    }
    if (status != STATUS_OK) {
        fprintf(stderr, "sluice sync: %s\n", error.text);
        node_destroy(&node);
        return 1;
    }
    if (wait_session(node, options_number(options, "timeout"))) {
        struct outcome outcome = wait_transfers(node);
        result = print_outcome(&outcome, options_flag(options, "json"));
    } else {
        fprintf(stderr, "sluice sync: no session with the node came to its end\n");
    }
    node_stop(node);
    node_destroy(&node);
    return result;
}

static int run_sync(char **arguments)
{
    struct node_options loaded;
    int exit_status;
    if (!node_options_load(&loaded, usage, specs, arguments, &exit_status)) {
        return exit_status;
    }
    signal(SIGPIPE, SIG_IGN);
    exit_status = 2;
    if (program_log_start(loaded.options)) {
        exit_status = sync_once(loaded.options);
        program_log_stop();
    }
    node_options_fini(&loaded);
    return exit_status;
}

int command_sync(int argc, char **argv)
{
    bool wants_help = argc > 0 && strcmp(argv[0], "--help") == 0;
    if (argc < 1 || (argv[0][0] == '-' && !wants_help)) {
        fprintf(stderr, "usage: %s\n", usage);
        return 2;
    }
    char **arguments = calloc((size_t)argc + SETTINGS + 2, sizeof(*arguments));
    char node[1024];
    size_t count = 0;
    if (arguments == NULL) {
        return 1;
    }
    for (size_t i = 0; i < SETTINGS; i++) {
        arguments[count++] = (char *)(uintptr_t)settings[i];
    }
    snprintf(node, sizeof(node), wants_help ? "%s" : "--storenode=%s", argv[0]);
    arguments[count++] = node;
    for (int i = 1; i < argc; i++) {
        arguments[count++] = argv[i];
    }
    int exit_status = run_sync(arguments);
    free(arguments);
    return exit_status;
}
