/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <time.h>

#include "base/clock.h"
#include "base/options.h"
#include "bench/fanout/fanout.h"
#include "net/identity/multiaddr.h"
#include "node/network.h"

static enum status set_options(
        struct options *options, const struct fanout_plan *plan, const char *const addresses[])
{
    char degree[24];
    const char *const settings[][2] = {
            {"archive", "none"},
            {"pin", plan->pin},
            {"tcp-port", "0"},
            {"listen-address", "127.0.0.1"},
            {"ip-colocation-limit", "0"},
            {"max-connections", "1000"},
            {"cluster-id", "66"},
            {"pubsub-topic", FANOUT_TOPIC},
            {"mesh-degree", degree},
    };
    struct options_error error;
    /* A star has all receivers in the mesh; the full mesh is that of the network's own degree. */
    snprintf(degree, sizeof(degree), "%zu", addresses == NULL ? plan->receivers + 5 : 6);
    for (size_t i = 0; i < sizeof(settings) / sizeof(settings[0]); i++) {
        if (options_set(options, settings[i][0], settings[i][1], &error) != STATUS_OK) {
            fprintf(stderr, "bench_fanout: %s\n", error.text);
            return STATUS_BAD_ARGUMENT;
        }
    }
    for (size_t i = 0; addresses != NULL && addresses[i] != NULL; i++) {
        if (options_set(options, "staticnode", addresses[i], &error) != STATUS_OK) {
            fprintf(stderr, "bench_fanout: %s\n", error.text);
            return STATUS_BAD_ARGUMENT;
        }
    }
    return STATUS_OK;
}

enum status fanout_start_node(struct fanout_node *out, const struct fanout_plan *plan,
        const struct node_hooks *hooks, const char *const addresses[])
{
    const struct option_spec *const tables[] = {options_of_node, NULL};
    struct node_error error = {.text = ""};
    struct multiaddr address;
    enum status status = options_create(&out->options, tables);
    if (status == STATUS_OK) {
        status = set_options(out->options, plan, addresses);
    }
    if (status == STATUS_OK) {
        status = node_create(&out->node, out->options, hooks, &error);
    }
    if (status == STATUS_OK) {
        status = node_start(out->node, &error);
    }
    if (status == STATUS_OK && !network_address_at(node_network(out->node), 0, &address)) {
        status = STATUS_NOT_FOUND;
    }
    if (status != STATUS_OK) {
        fprintf(stderr, "bench_fanout: node: %s %s\n", status_text(status), error.text);
        return status;
    }
    multiaddr_print(out->address, &address);
    return STATUS_OK;
}

void fanout_stop_node(struct fanout_node *node)
{
    if (node->node != NULL) {
        node_stop(node->node);
    }
    node_destroy(&node->node);
    options_destroy(&node->options);
}

uint64_t fanout_process_cpu_ns(void)
{
    struct timespec cpu;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &cpu);
    return (uint64_t)cpu.tv_sec * NANOSECONDS_PER_SECOND + (uint64_t)cpu.tv_nsec;
}

void fanout_read_counts(uint64_t out[METRIC_COUNT], const struct node *node)
{
    for (size_t i = 0; i < METRIC_COUNT; i++) {
        out[i] = metrics_sum(node_metrics(node), (enum metric)i);
    }
}

void fanout_add_counts(
        struct fanout_result *out, const struct node *node, const uint64_t before[METRIC_COUNT])
{
    uint64_t now[METRIC_COUNT];
    fanout_read_counts(now, node);
    out->sha256_passes += now[METRIC_MESSAGE_HASHES] - before[METRIC_MESSAGE_HASHES] +
                          now[METRIC_ID_HASHES] - before[METRIC_ID_HASHES];
    out->arrivals += now[LEDGER_INTAKE_RECEIVED] - before[LEDGER_INTAKE_RECEIVED];
    out->decodes += now[METRIC_DECODES] - before[METRIC_DECODES];
}
