/* SPDX-License-Identifier: MIT */

/*
 * bench_filter SUBSCRIBERS TOPICS STOPPED RATE SECONDS [BYTES]: a node with that many filter
 * subscribers on that many content topics, of which the last STOPPED are stopped (SIGSTOP) once they
 * are subscribed, and a local publisher of RATE messages a second, the content topics in turn. Prints
 * how long publishing took (until the lane's verdict), how long until the subscribers had the
 * messages, and what became of those that were stopped. Ends with 1 when one that was not stopped
 * has missed a message or got one out of order.
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
#include "bench/filter/filter_bench.h"
#include "codec/waku_message.h"
#include "net/protocols/relay_queue.h"
#include "node/filter.h"
#include "node/network.h"
#include "node/node.h"

enum {
    PATIENCE_S = 120,
    BYTES = 1000
};

struct bench {
    size_t subscribers;
    size_t topics;
    size_t stopped;
    uint64_t rate;
    uint64_t seconds;
    size_t bytes;
    struct filter_bench_shared *shared;
    pid_t processes[FILTER_BENCH_GROUPS];
    int pipes[FILTER_BENCH_GROUPS];
    struct node *node;
    const struct topic *topic;
    struct histogram publish_ns; /* the decode thread's */
    _Atomic uint64_t verdicts;
};

static struct bench bench;

static void die(const char *what)
{
    fprintf(stderr, "bench_filter: %s\n", what);
    for (size_t i = 0; i < FILTER_BENCH_GROUPS; i++) {
        if (bench.processes[i] > 0) {
            kill(bench.processes[i], SIGKILL);
        }
    }
    exit(1);
}

static size_t group_size(size_t group)
{
    return group == 0 ? bench.subscribers - bench.stopped : bench.stopped;
}

/* Before there are threads. */
static void start_group(size_t group)
{
    int descriptors[2];
    if (pipe(descriptors) != 0) {
        die("pipe");
    }
    pid_t process = fork();
    if (process == 0) {
        close(descriptors[1]);
        for (size_t i = 0; i < group; i++) {
            close(bench.pipes[i]);
        }
        filter_bench_subscribe(&bench.shared->groups[group], descriptors[0],
                group == 0 ? 0 : group_size(0), group_size(group), bench.topics);
        _exit(0);
    }
    close(descriptors[0]);
    bench.processes[group] = process;
    bench.pipes[group] = descriptors[1];
}

static void on_verdict(
        void *context, void *completion, const struct lane_decision *decision, size_t peer_count)
{
    (void)context;
    (void)peer_count;
    if (completion != NULL && decision->verdict == LANE_NEW) {
        histogram_add(&bench.publish_ns, clock_monotonic_ns() - (uint64_t)(uintptr_t)completion);
    }
    atomic_fetch_add(&bench.verdicts, 1);
}

static void set(struct options *options, const char *name, const char *value)
{
    struct options_error error;
    if (options_set(options, name, value, &error) != STATUS_OK) {
        die(error.text);
    }
}

static void start_node(void)
{
    static const struct option_spec *const tables[] = {options_of_node, NULL};
    static const char *const settings[][2] = {{"listen-address", "127.0.0.1"}, {"tcp-port", "0"},
            {"cluster-id", "16"}, {"shard", "0"}, {"archive", "none"}, {"ip-colocation-limit", "0"},
            {"max-connections", "100000"}, {"filter-max-peers-to-serve", "100000"},
            {"rate-limit", "0/1s"}};
    struct options *options;
    struct node_error error;
    struct node_hooks hooks = {.has_network = true, .verdict = on_verdict};
    if (options_create(&options, tables) != STATUS_OK) {
        die("options");
    }
    for (size_t i = 0; i < sizeof(settings) / sizeof(settings[0]); i++) {
        set(options, settings[i][0], settings[i][1]);
    }
    if (node_create(&bench.node, options, &hooks, &error) != STATUS_OK ||
            node_start(bench.node, &error) != STATUS_OK ||
            node_subscribe_topic(bench.node, &bench.topic, span_of_text(FILTER_BENCH_PUBSUB)) !=
                    STATUS_OK) {
        die(error.text);
    }
    options_destroy(&options);
}

static void tell_address(void)
{
    struct multiaddr address;
    char text[MULTIADDR_TEXT_SIZE];
    if (!network_address_at(node_network(bench.node), 0, &address)) {
        die("no address");
    }
    multiaddr_print(text, &address);
    for (size_t i = 0; i < FILTER_BENCH_GROUPS; i++) {
        if (write(bench.pipes[i], text, strlen(text)) < 0) {
            die("pipe");
        }
        close(bench.pipes[i]);
    }
}

static void wait_for(const _Atomic size_t *number, size_t value, const char *what)
{
    struct timespec slice = {.tv_nsec = 5 * (long)NANOSECONDS_PER_MILLISECOND};
    uint64_t end_ns = clock_monotonic_ns() + (uint64_t)PATIENCE_S * NANOSECONDS_PER_SECOND;
    while (atomic_load(number) < value) {
        if (clock_monotonic_ns() > end_ns) {
            fprintf(stderr, "%s: %zu of %zu\n", what, atomic_load(number), value);
            return;
        }
        nanosleep(&slice, NULL);
    }
}

static void publish(uint64_t number)
{
    static uint8_t payload[1024 * 1024];
    char topic[FILTER_BENCH_TOPIC_BYTES];
    uint64_t now_ns = clock_monotonic_ns();
    uint64_t head[] = {number, now_ns};
    filter_bench_topic(topic, number % bench.topics);
    memcpy(payload, head, sizeof(head));
    struct waku_message_view fields = {.payload = span_of(payload, bench.bytes),
            .content_topic = span_of_text(topic),
            .timestamp_ns = clock_wall_ns(),
            .has_payload = true,
            .has_content_topic = true,
            .has_timestamp = true};
    struct frame *frame = node_wait_credit(bench.node, waku_message_size(&fields));
    struct local_message message = {
            .topic = bench.topic, .fields = &fields, .completion = (void *)(uintptr_t)now_ns};
    struct intake_source source = {
            .received_ns = clock_wall_ns(), .received_monotonic_ns = now_ns, .origin = ORIGIN_API};
    if (frame == NULL ||
            intake_post_fields(node_intake(bench.node), frame, &message, &source) != STATUS_OK) {
        die("publish");
    }
}

static uint64_t publish_all(void)
{
    uint64_t count = bench.rate * bench.seconds;
    uint64_t start_ns = clock_monotonic_ns();
    for (uint64_t i = 0; i < count; i++) {
        uint64_t due_ns = start_ns + i * NANOSECONDS_PER_SECOND / bench.rate;
        uint64_t now_ns = clock_monotonic_ns();
        if (due_ns > now_ns) {
            struct timespec slice = {.tv_nsec = (long)((due_ns - now_ns) % NANOSECONDS_PER_SECOND)};
            nanosleep(&slice, NULL);
        }
        publish(i);
    }
    return count;
}

/* What the reading subscribers have to get. */
static size_t expected(uint64_t messages)
{
    size_t sum = 0;
    for (size_t topic = 0; topic < bench.topics; topic++) {
        size_t of_topic = messages / bench.topics + (topic < messages % bench.topics);
        size_t readers = group_size(0) / bench.topics + (topic < group_size(0) % bench.topics);
        sum += of_topic * readers;
    }
    return sum;
}

static double ms(uint64_t ns)
{
    return (double)ns / NANOSECONDS_PER_MILLISECOND;
}

static uint64_t metric(enum metric which)
{
    return metrics_sum(node_metrics(bench.node), which);
}

static bool report(uint64_t messages, uint64_t elapsed_ns)
{
    struct filter_bench_group *readers = &bench.shared->groups[0];
    struct rusage usage;
    uint64_t ring = metric((enum metric)LEDGER_FILTER_RING_FULL) +
                    metric((enum metric)LEDGER_FILTER_OVER_SHARE);
    size_t want = expected(messages);
    getrusage(RUSAGE_SELF, &usage);
    printf("subscribers %zu, stopped %zu, topics %zu, %zu bytes, %llu messages a second for %llu "
           "s\n",
            bench.subscribers, bench.stopped, bench.topics, bench.bytes,
            (unsigned long long)bench.rate, (unsigned long long)bench.seconds);
    printf("pushed %zu of %zu to those that read, %.0f a second; out of order %zu, connections "
           "lost "
           "%zu\n",
            atomic_load(&readers->received), want,
            (double)want / ((double)elapsed_ns / NANOSECONDS_PER_SECOND),
            atomic_load(&readers->out_of_order), atomic_load(&readers->lost));
    printf("publish ms: p50 %.3f p99 %.3f max %.3f\n", ms(histogram_at(&bench.publish_ns, 0.5)),
            ms(histogram_at(&bench.publish_ns, 0.99)), ms(bench.publish_ns.max));
    printf("push ms: p50 %.3f p99 %.3f max %.3f\n", ms(histogram_at(&readers->latencies_ns, 0.5)),
            ms(histogram_at(&readers->latencies_ns, 0.99)), ms(readers->latencies_ns.max));
    printf("dropped: stale %llu, queue full %llu, outbound budget %llu, gone %llu; stuck %llu; "
           "ring %llu\n",
            (unsigned long long)metric((enum metric)LEDGER_FILTER_OUT_STALE),
            (unsigned long long)metric((enum metric)LEDGER_FILTER_OUT_QUEUE_FULL),
            (unsigned long long)metric((enum metric)LEDGER_FILTER_OUT_OUTBOUND_BUDGET),
            (unsigned long long)metric((enum metric)LEDGER_FILTER_OUT_PEER_GONE),
            (unsigned long long)metric(METRIC_FILTER_STUCK), (unsigned long long)ring);
    printf("a message: decodes %.2f, message hashes %.2f, copies %.2f; peak memory %.1f MB, cpu "
           "%.2f "
           "s\n",
            (double)metric(METRIC_DECODES) / (double)messages,
            (double)metric(METRIC_MESSAGE_HASHES) / (double)messages,
            (double)metric(METRIC_COPIES) / (double)messages, (double)usage.ru_maxrss / 1024,
            (double)usage.ru_utime.tv_sec + (double)usage.ru_stime.tv_sec +
                    (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6);
    return atomic_load(&readers->received) == want && atomic_load(&readers->out_of_order) == 0;
}

static bool run(void)
{
    struct filter_bench_group *groups = bench.shared->groups;
    tell_address();
    wait_for(&groups[0].subscribed, group_size(0), "subscribed");
    wait_for(&groups[1].subscribed, group_size(1), "subscribed");
    if (bench.stopped > 0) {
        kill(bench.processes[1], SIGSTOP);
    }
    uint64_t start_ns = clock_monotonic_ns();
    uint64_t messages = publish_all();
    wait_for(&groups[0].received, expected(messages), "received");
    uint64_t elapsed_ns = clock_monotonic_ns() - start_ns;
    atomic_store(&groups[0].is_over, true);
    waitpid(bench.processes[0], NULL, 0);
    bool is_good = report(messages, elapsed_ns);
    kill(bench.processes[1], SIGKILL);
    waitpid(bench.processes[1], NULL, 0);
    return is_good;
}

int main(int argc, char **argv)
{
    struct rlimit limit;
    if (argc < 6 || argc > 7) {
        fprintf(stderr, "usage: bench_filter SUBSCRIBERS TOPICS STOPPED RATE SECONDS [BYTES]\n");
        return 2;
    }
    bench.subscribers = strtoull(argv[1], NULL, 10);
    bench.topics = strtoull(argv[2], NULL, 10);
    bench.stopped = strtoull(argv[3], NULL, 10);
    bench.rate = strtoull(argv[4], NULL, 10);
    bench.seconds = strtoull(argv[5], NULL, 10);
    bench.bytes = argc == 7 ? strtoull(argv[6], NULL, 10) : BYTES;
    if (bench.topics == 0 || bench.rate == 0 || bench.stopped > bench.subscribers ||
            bench.bytes < FILTER_BENCH_HEAD_BYTES || bench.bytes > 150000) {
        return 2;
    }
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
    signal(SIGPIPE, SIG_IGN);
    bench.shared = mmap(
            NULL, sizeof(*bench.shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (bench.shared == MAP_FAILED) {
        die("memory");
    }
    for (size_t i = 0; i < FILTER_BENCH_GROUPS; i++) {
        start_group(i);
    }
    start_node();
    bool is_good = run();
    node_stop(bench.node);
    node_destroy(&bench.node);
    return is_good ? 0 : 1;
}
