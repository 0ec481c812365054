/* SPDX-License-Identifier: MIT */

/*
 * bench_requests PROTOCOL COUNT AT_ONCE [RATE_LIMIT]: a node that serves, and one client on one
 * connection that makes COUNT requests of PROTOCOL (lightpush, filter, store, metadata, ping, or mixed:
 * all in turn, every tenth broken off half-way), AT_ONCE of them at a time. RATE_LIMIT is that of the
 * node, 0/1s when it is not given. Prints the answers by status code and what a request cost the node's
 * process. Ends with 1 when one was not answered, or when the node has kept streams or memory.
 */

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/metrics.h"
#include "bench/requests/requests.h"
#include "node/network.h"
#include "node/node.h"

/* That the second half of the requests may add. Sanitizers keep what was freed, and find leaks. */
enum {
    KEPT_BYTES_MAX = (SLUICE_BENCH_IS_SANITIZED ? 1024 : 16) * 1024 * 1024
};

static void die(const char *what)
{
    fprintf(stderr, "bench_requests: %s\n", what);
    exit(1);
}

static void set(struct options *options, const char *name, const char *value)
{
    struct options_error error;
    if (options_set(options, name, value, &error) != STATUS_OK) {
        die(error.text);
    }
}

static void make_node(struct node **out, struct options *options)
{
    struct node_error error;
    struct node_hooks hooks = {.has_network = true};
    if (node_create(out, options, &hooks, &error) != STATUS_OK ||
            node_start(*out, &error) != STATUS_OK ||
            node_subscribe_topic(*out, NULL, span_of_text(REQUESTS_PUBSUB)) != STATUS_OK) {
        die(error.text);
    }
}

static struct node *start_node(const char *rate_limit)
{
    static const struct option_spec *const tables[] = {options_of_node, NULL};
    static const char *const settings[][2] = {{"listen-address", "127.0.0.1"}, {"tcp-port", "0"},
            {"cluster-id", "16"}, {"shard", "0"}, {"archive", "memory"}, {"store", "true"},
            {"ip-colocation-limit", "0"}};
    struct options *options;
    struct node *node;
    if (options_create(&options, tables) != STATUS_OK) {
        die("options");
    }
    for (size_t i = 0; i < sizeof(settings) / sizeof(settings[0]); i++) {
        set(options, settings[i][0], settings[i][1]);
    }
    set(options, "rate-limit", rate_limit);
    make_node(&node, options);
    options_destroy(&options);
    return node;
}

static double used_us(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1e6 +
           (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

static size_t resident_bytes(void)
{
    unsigned long size;
    unsigned long resident = 0;
    FILE *file = fopen("/proc/self/statm", "re");
    if (file == NULL || fscanf(file, "%lu %lu", &size, &resident) != 2) {
        die("statm");
    }
    fclose(file);
    return (size_t)resident * (size_t)sysconf(_SC_PAGESIZE);
}

static void wait_for(const struct requests_shared *shared, size_t done)
{
    struct timespec slice = {.tv_nsec = 5 * (long)NANOSECONDS_PER_MILLISECOND};
    while (atomic_load(&shared->done) < done && !atomic_load(&shared->has_failed)) {
        nanosleep(&slice, NULL);
    }
}

static void tell_address(struct node *node, int descriptor)
{
    struct multiaddr address;
    char text[MULTIADDR_TEXT_SIZE];
    if (!network_address_at(node_network(node), 0, &address)) {
        die("no address");
    }
    multiaddr_print(text, &address);
    if (write(descriptor, text, strlen(text)) < 0) {
        die("pipe");
    }
    close(descriptor);
}

static void print_codes(const struct requests_shared *shared)
{
    for (size_t code = 0; code < REQUESTS_CODES; code++) {
        if (atomic_load(&shared->codes[code]) > 0) {
            printf("  %3zu: %zu\n", code, atomic_load(&shared->codes[code]));
        }
    }
    printf("  broken off: %zu\n", atomic_load(&shared->broken_off));
}

static bool report(struct node *node, const struct requests_shared *shared, size_t count)
{
    uint64_t timed_out = metrics_sum(node_metrics(node), METRIC_NET_STREAMS_TIMED_OUT);
    uint64_t refused = metrics_sum(node_metrics(node), METRIC_MUXER_STREAMS_REFUSED);
    print_codes(shared);
    printf("most under way %zu; streams timed out %llu, refused %llu; connections lost %zu\n",
            atomic_load(&shared->most_under_way), (unsigned long long)timed_out,
            (unsigned long long)refused, atomic_load(&shared->lost));
    return !atomic_load(&shared->has_failed) && atomic_load(&shared->done) == count &&
           atomic_load(&shared->lost) == 0 && timed_out == 0;
}

static bool run(struct node *node, struct requests_shared *shared, size_t count)
{
    wait_for(shared, count / 10); /* what is made once is there */
    size_t first = atomic_load(&shared->done);
    double begun_us = used_us();
    uint64_t begun_ns = clock_monotonic_ns();
    wait_for(shared, count / 2);
    size_t half_bytes = resident_bytes();
    wait_for(shared, count);
    double each_us = (used_us() - begun_us) / (double)(count - first);
    double seconds = (double)(clock_monotonic_ns() - begun_ns) / NANOSECONDS_PER_SECOND;
    size_t bytes = resident_bytes();
    printf("%.1f us of CPU a request of the node's process, %.0f requests a second\n", each_us,
            (double)(count - first) / seconds);
    printf("memory: %.1f MB half-way, %.1f MB at the end\n", (double)half_bytes / 1e6,
            (double)bytes / 1e6);
    return report(node, shared, count) && bytes < half_bytes + KEPT_BYTES_MAX;
}

int main(int argc, char **argv)
{
    int descriptors[2];
    if (argc < 4 || argc > 5 || !requests_know(argv[1])) {
        fprintf(stderr, "usage: bench_requests lightpush|filter|store|metadata|ping|mixed COUNT "
                        "AT_ONCE [RATE_LIMIT]\n");
        return 2;
    }
    size_t count = strtoull(argv[2], NULL, 10);
    size_t at_once = strtoull(argv[3], NULL, 10);
    signal(SIGPIPE, SIG_IGN);
    struct requests_shared *shared =
            mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED || pipe(descriptors) != 0) {
        die("memory or pipe");
    }
    pid_t client = fork(); /* before there are threads */
    if (client == 0) {
        close(descriptors[1]);
        requests_make(shared, descriptors[0], argv[1], count, at_once);
        _exit(0);
    }
    close(descriptors[0]);
    struct node *node = start_node(argc == 5 ? argv[4] : "0/1s");
    tell_address(node, descriptors[1]);
    bool is_good = run(node, shared, count);
    atomic_store(&shared->is_over, true);
    waitpid(client, NULL, 0);
    node_stop(node);
    node_destroy(&node);
    return is_good ? 0 : 1;
}
