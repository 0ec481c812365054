/* SPDX-License-Identifier: MIT */

/* What is shown of a flood over the network while it runs and at its end. */

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "net/identity/multiaddr.h"
#include "tools/flood/common.h"
#include "tools/flood/network_state.h"

enum {
    TERMINAL_PERIOD_NS = 500 * NANOSECONDS_PER_MILLISECOND,
    LINE_PERIOD_NS = NANOSECONDS_PER_SECOND
};

/* Everything of the end, so that text and JSON say the same. */
struct outcome {
    struct checker_result sum; /* over all receivers */
    uint64_t expected;
    uint64_t lost;
    uint64_t asked;
    double lost_percent;
    double seconds; /* from the first message to the last arrival */
    double cpu_seconds;
    bool is_good;
};

static void add_node(struct network *network, pid_t pid)
{
    for (size_t i = 0; i < network->node_count; i++) {
        if (network->nodes[i].pid == pid) {
            return;
        }
    }
    if (pid > 0 && pid != getpid() && network->node_count < NETWORK_NODES_MAX) {
        network->nodes[network->node_count++].pid = pid;
    }
}

/* The port behind /tcp/ of an address of this machine; 0: none. */
static uint16_t local_port(const char *address)
{
    static const char *const here[] = {"/ip4/127.", "/ip6/::1/", "/dns4/localhost/"};
    const char *tcp = strstr(address, "/tcp/");
    for (size_t i = 0; tcp != NULL && i < sizeof(here) / sizeof(here[0]); i++) {
        if (strncmp(address, here[i], strlen(here[i])) == 0) {
            return (uint16_t)strtoul(tcp + strlen("/tcp/"), NULL, 10);
        }
    }
    return 0;
}

void network_find_nodes(struct network *network)
{
    static const char *const lists[] = {"peer", "receive-from"};
    const struct options *options = network->options;
    for (size_t i = 0; i < options_list_count(options, "pid"); i++) {
        add_node(network, (pid_t)strtol(options_list_item(options, "pid", i), NULL, 10));
    }
    if (network->node_count > 0) {
        return;
    }
    for (size_t l = 0; l < 2; l++) {
        for (size_t i = 0; i < options_list_count(options, lists[l]); i++) {
            uint16_t port = local_port(options_list_item(options, lists[l], i));
            add_node(network, port != 0 ? process_find_listener(port) : 0);
        }
    }
}

void network_read_nodes(struct network *network, bool begins)
{
    for (size_t i = 0; i < network->node_count; i++) {
        struct network_node *node = &network->nodes[i];
        struct process_reading reading;
        if (process_read(&reading, node->pid)) {
            node->last = reading;
            node->began = begins ? reading : node->began;
        }
    }
}

static double node_cpu_seconds(const struct network_node *node)
{
    return (double)(node->last.cpu_ns - node->began.cpu_ns) / 1e9;
}

static bool is_progress_due(struct network *network, uint64_t now_ns, bool is_last)
{
    bool is_terminal = isatty(STDERR_FILENO) != 0;
    bool is_wanted = is_terminal || options_flag(network->options, "progress");
    if (!is_wanted || network->phase < NETWORK_SENDING ||
            (!is_last && now_ns < network->next_progress_ns)) {
        return false;
    }
    network->next_progress_ns = now_ns + (is_terminal ? TERMINAL_PERIOD_NS : LINE_PERIOD_NS);
    return true;
}

static void print_nodes_now(const struct network *network)
{
    double seconds = (double)(clock_monotonic_ns() - network->began_ns) / 1e9;
    for (size_t i = 0; i < network->node_count; i++) {
        const struct network_node *node = &network->nodes[i];
        fprintf(stderr, ", node %d: cpu %.0f%% %.0f MB", (int)node->pid,
                node_cpu_seconds(node) / seconds * 100, (double)node->last.rss_bytes / 1e6);
    }
}

void network_show_progress(struct network *network, bool is_last)
{
    uint64_t now = clock_monotonic_ns();
    if (!is_progress_due(network, now, is_last) || now == network->shown_ns) {
        return;
    }
    double span = (double)(now - network->shown_ns) / 1e9;
    network_read_nodes(network, false);
    fprintf(stderr,
            "%s%5.1f s: sent %" PRIu64 " (%.0f/s), arrived %" PRIu64
            " (%.0f/s, %.1f MB/s), in flight %" PRIu64 ", p50 %.2f p99 %.2f ms",
            isatty(STDERR_FILENO) != 0 ? "\r\033[K" : "", (double)(now - network->began_ns) / 1e9,
            network->published, (double)(network->published - network->shown_published) / span,
            network->delivered, (double)(network->delivered - network->shown_delivered) / span,
            (double)(network->delivered_bytes - network->shown_bytes) / span / 1e6,
            network_in_flight(network), (double)histogram_at(&network->recent_latency, 0.5) / 1e6,
            (double)histogram_at(&network->recent_latency, 0.99) / 1e6);
    print_nodes_now(network);
    fputs(isatty(STDERR_FILENO) != 0 && !is_last ? "" : "\n", stderr);
    network->shown_ns = now;
    network->shown_published = network->published;
    network->shown_delivered = network->delivered;
    network->shown_bytes = network->delivered_bytes;
    memset(&network->recent_latency, 0, sizeof(network->recent_latency));
}

static struct outcome outcome_of(const struct network *network)
{
    struct outcome outcome = {.expected = network->published * network->receiver_count};
    double max_loss = 0;
    for (size_t i = 0; i < network->receiver_count; i++) {
        struct checker_result result = checker_result(network->receivers[i].checker);
        outcome.sum.seen += result.seen;
        outcome.sum.doubled += result.doubled;
        outcome.sum.torn += result.torn;
        outcome.sum.strange += result.strange;
        outcome.asked += light_peer_asked(network->receivers[i].peer);
    }
    outcome.lost = outcome.expected - outcome.sum.seen;
    outcome.lost_percent =
            outcome.expected > 0 ? 100.0 * (double)outcome.lost / (double)outcome.expected : 0;
    uint64_t end = network->receiver_count > 0 ? network->last_delivery_ns : network->sent_ns;
    outcome.seconds = (double)(end - network->began_ns) / 1e9;
    outcome.cpu_seconds = (double)(network_process_cpu_ns() - network->cpu_began_ns) / 1e9;
    (void)flood_parse_percent(&max_loss, options_text(network->options, "max-loss"));
    outcome.is_good = outcome.lost_percent <= max_loss && outcome.sum.doubled == 0 &&
                      outcome.sum.torn == 0 && outcome.sum.strange == 0;
    return outcome;
}

static double per_second(uint64_t count, const struct outcome *outcome)
{
    return outcome->seconds > 0 ? (double)count / outcome->seconds : 0;
}

static double latency_us(const struct network *network, double share)
{
    return (double)histogram_at(&network->latency, share) / 1e3;
}

static void print_text(const struct network *network, const struct outcome *outcome)
{
    printf("%zu publishers, %zu receivers, %.3f s\n", network->publisher_count,
            network->receiver_count, outcome->seconds);
    printf("published  %12" PRIu64 "  %10.0f /s  %8.1f MB/s\n", network->published,
            per_second(network->published, outcome),
            per_second(network->published_bytes, outcome) / 1e6);
    printf("copies     %12" PRIu64 "\n", network->repeated);
    printf("arrived    %12" PRIu64 "  %10.0f /s  %8.1f MB/s\n", network->delivered,
            per_second(network->delivered, outcome),
            per_second(network->delivered_bytes, outcome) / 1e6);
    printf("lost       %12" PRIu64 "  %9.4f %%\n", outcome->lost, outcome->lost_percent);
    printf("doubled    %12" PRIu64 "\ntorn       %12" PRIu64 "\nstrange    %12" PRIu64
           "\nasked for  %12" PRIu64 "\n",
            outcome->sum.doubled, outcome->sum.torn, outcome->sum.strange, outcome->asked);
    printf("latency    p50 %.3f ms, p99 %.3f ms, p99.9 %.3f ms, max %.3f ms\n",
            latency_us(network, 0.5) / 1e3, latency_us(network, 0.99) / 1e3,
            latency_us(network, 0.999) / 1e3, (double)network->latency.max / 1e6);
    for (size_t i = 0; i < network->node_count; i++) {
        const struct network_node *node = &network->nodes[i];
        double cpu = node_cpu_seconds(node);
        printf("node %-6d CPU %.2f s (%.0f %%, %.1f us a message), resident %.1f MB, peak %.1f MB, "
               "%" PRIu64 " threads\n",
                (int)node->pid, cpu, cpu / outcome->seconds * 100,
                cpu * 1e6 / (double)(network->published > 0 ? network->published : 1),
                (double)node->last.rss_bytes / 1e6, (double)node->last.peak_rss_bytes / 1e6,
                node->last.threads);
    }
    printf("flood      CPU %.2f s\n", outcome->cpu_seconds);
    printf("flood: %s\n", outcome->is_good ? "good" : "FAILED");
}

static json_t *latency_json(const struct network *network)
{
    return json_pack("{s:f, s:f, s:f, s:f, s:f}", "min", (double)network->latency.min / 1e3, "p50",
            latency_us(network, 0.5), "p99", latency_us(network, 0.99), "p99.9",
            latency_us(network, 0.999), "max", (double)network->latency.max / 1e3);
}

static json_t *node_json(
        const struct network *network, const struct network_node *node, double seconds)
{
    double cpu = node_cpu_seconds(node);
    double messages = (double)(network->published > 0 ? network->published : 1);
    return json_pack("{s:I, s:f, s:f, s:f, s:f, s:f, s:I}", "pid", (json_int_t)node->pid,
            "cpu_seconds", cpu, "cpu_percent", seconds > 0 ? cpu / seconds * 100 : 0,
            "cpu_us_per_message", cpu * 1e6 / messages, "rss_mb",
            (double)node->last.rss_bytes / 1e6, "peak_rss_mb",
            (double)node->last.peak_rss_bytes / 1e6, "threads", (json_int_t)node->last.threads);
}

static json_t *nodes_json(const struct network *network, const struct outcome *outcome)
{
    json_t *nodes = json_array();
    for (size_t i = 0; i < network->node_count; i++) {
        json_array_append_new(nodes, node_json(network, &network->nodes[i], outcome->seconds));
    }
    return nodes;
}

static json_t *counts_json(const struct network *network, const struct outcome *outcome)
{
    return json_pack("{s:b, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:f, s:I, s:I, s:I, s:I}", "ok",
            outcome->is_good, "publishers", (json_int_t)network->publisher_count, "receivers",
            (json_int_t)network->receiver_count, "published", (json_int_t)network->published,
            "copies", (json_int_t)network->repeated, "delivered", (json_int_t)network->delivered,
            "expected", (json_int_t)outcome->expected, "lost", (json_int_t)outcome->lost,
            "lost_percent", outcome->lost_percent, "doubled", (json_int_t)outcome->sum.doubled,
            "torn", (json_int_t)outcome->sum.torn, "strange", (json_int_t)outcome->sum.strange,
            "asked", (json_int_t)outcome->asked);
}

static void print_json(const struct network *network, const struct outcome *outcome)
{
    json_t *result = counts_json(network, outcome);
    json_t *rates = json_pack("{s:f, s:f, s:f, s:f, s:f, s:o, s:o}", "seconds", outcome->seconds,
            "published_per_second", per_second(network->published, outcome), "delivered_per_second",
            per_second(network->delivered, outcome), "mb_per_second",
            per_second(network->delivered_bytes, outcome) / 1e6, "flood_cpu_seconds",
            outcome->cpu_seconds, "latency_us", latency_json(network), "nodes",
            nodes_json(network, outcome));
    json_object_update(result, rates);
    json_dumpf(result, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(9));
    printf("\n");
    json_decref(rates);
    json_decref(result);
}

bool network_report(struct network *network)
{
    struct outcome outcome = outcome_of(network);
    if (options_flag(network->options, "json")) {
        print_json(network, &outcome);
    } else {
        print_text(network, &outcome);
    }
    fflush(stdout);
    return outcome.is_good;
}
