/* SPDX-License-Identifier: MIT */

/*
 * What a delivery costs the nodes: a star of one publisher, one router and many receivers, and a full
 * mesh in which every message arrives several times. One line a row, the median of the rounds.
 */

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/options.h"
#include "bench/fanout/fanout.h"

enum {
    EXIT_FAILED = 1,
    EXIT_USAGE = 2,
    ROUNDS_MAX = 25,
    MESH_NODES = 8,
    SMALL_BYTES = 1000,
    LARGE_BYTES = 50000
};

static const struct option_spec specs[] = {
        {"rounds", OPTION_NUMBER, "3", 1, ROUNDS_MAX, "Benchmark", "runs of each row"},
        {"deliveries", OPTION_NUMBER, "100000", 100, 100000000, "Benchmark",
                "of payloads of 1 kB in a run; of larger ones a tenth"},
        {"receivers", OPTION_NUMBER, "50", 1, 500, "Benchmark", "most receivers of the star"},
        {"pin", OPTION_TEXT, "none", 0, 0, "Benchmark", "as the router's --pin"},
        {"json", OPTION_BOOL, "false", 0, 0, "Benchmark", "one JSON object a line"},
        {"help", OPTION_BOOL, "false", 0, 0, "Benchmark", "print this help"},
        {NULL, OPTION_BOOL, NULL, 0, 0, NULL, NULL},
};

typedef enum status run_shape(struct fanout_result *out, const struct fanout_plan *plan);

static int compare_rates(const void *a, const void *b)
{
    const struct fanout_result *x = a;
    const struct fanout_result *y = b;
    double rate_x = (double)x->deliveries / x->seconds;
    double rate_y = (double)y->deliveries / y->seconds;
    return (rate_x > rate_y) - (rate_x < rate_y);
}

static void print_row(const char *shape, const struct fanout_plan *plan,
        const struct fanout_result *result, bool is_json)
{
    double deliveries = (double)result->deliveries;
    const char *format =
            is_json ? "{\"bench\":\"fanout\",\"shape\":\"%s\",\"receivers\":%zu,\"payload_bytes\":%"
                      "zu,"
                      "\"messages_per_second\":%.1f,\"deliveries_per_second\":%.1f,"
                      "\"mb_per_second\":%.2f,\"cpu_us_per_delivery\":%.3f,"
                      "\"sha256_per_delivery\":%.4f,\"decodes_per_delivery\":%.4f,"
                      "\"arrivals_per_delivery\":%.3f}\n"
                    : "%-5s %4zu %8zu %10.0f %12.0f %10.1f %10.2f %10.3f %10.3f %10.3f\n";
    printf(format, shape, plan->receivers, plan->payload_bytes,
            (double)plan->messages / result->seconds, deliveries / result->seconds,
            result->bytes / result->seconds / 1e6, result->cpu_seconds * 1e6 / deliveries,
            (double)result->sha256_passes / deliveries, (double)result->decodes / deliveries,
            (double)result->arrivals / deliveries);
    fflush(stdout);
}

static bool run_row(
        const struct options *options, const char *shape, run_shape *run, struct fanout_plan plan)
{
    struct fanout_result results[ROUNDS_MAX];
    size_t rounds = (size_t)options_number(options, "rounds");
    for (size_t i = 0; i < rounds; i++) {
        enum status status = run(&results[i], &plan);
        if (status != STATUS_OK) {
            fprintf(stderr, "bench_fanout: %s, %zu receivers: %s\n", shape, plan.receivers,
                    status_text(status));
            return false;
        }
    }
    qsort(results, rounds, sizeof(results[0]), compare_rates);
    print_row(shape, &plan, &results[rounds / 2], options_flag(options, "json"));
    return true;
}

static struct fanout_plan plan_of(const struct options *options, size_t receivers, size_t payload)
{
    uint64_t deliveries = options_number(options, "deliveries") / (payload > SMALL_BYTES ? 10 : 1);
    uint64_t messages = deliveries / receivers;
    return (struct fanout_plan){.payload_bytes = payload,
            .receivers = receivers,
            .messages = messages > 0 ? messages : 1,
            .pin = options_text(options, "pin")};
}

/* A star of each size, then the mesh. */
static bool run_payload(const struct options *options, size_t payload)
{
    static const size_t counts[] = {1, 2, 5, 10, 20, 50, 100, 200, 500};
    size_t most = (size_t)options_number(options, "receivers");
    bool good = true;
    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]) && counts[i] <= most; i++) {
        struct fanout_plan plan = plan_of(options, counts[i], payload);
        good = run_row(options, "star", fanout_star, plan) && good;
    }
    struct fanout_plan plan = plan_of(options, MESH_NODES - 1, payload);
    return run_row(options, "mesh", fanout_mesh, plan) && good;
}

static bool run_all(const struct options *options)
{
    if (!options_flag(options, "json")) {
        printf("%-5s %4s %8s %10s %12s %10s %10s %10s %10s %10s\n", "shape", "to", "payload",
                "msg/s", "deliveries/s", "MB/s", "CPU us", "SHA-256", "decodes", "arrivals");
    }
    bool small = run_payload(options, SMALL_BYTES);
    return run_payload(options, LARGE_BYTES) && small;
}

int main(int argc, char *argv[])
{
    const struct option_spec *const tables[] = {specs, NULL};
    struct options *options = NULL;
    struct options_error error;
    int exit_status = EXIT_USAGE;
    signal(SIGPIPE, SIG_IGN);
    if (options_create(&options, tables) != STATUS_OK) {
        return EXIT_FAILED;
    }
    if (options_parse_arguments(options, argc - 1, argv + 1, &error) != STATUS_OK) {
        fprintf(stderr, "bench_fanout: %s\n", error.text);
    } else if (options_flag(options, "help")) {
        printf("usage: bench_fanout [OPTIONS]\n");
        options_print_help(options, stdout);
        exit_status = 0;
    } else {
        exit_status = run_all(options) ? 0 : EXIT_FAILED;
    }
    options_destroy(&options);
    return exit_status;
}
