/* SPDX-License-Identifier: MIT */

/*
 * bench_filter SUBSCRIBERS TOPICS STOPPED RATE SECONDS [BYTES [EACH]]: a node with that many filter
 * subscribers, each on EACH (1) of that many content topics, of which the last STOPPED are stopped
 * (SIGSTOP) once they are subscribed, and a local publisher of RATE messages a second, the content
 * topics in turn. Prints how long publishing took (until the lane's verdict); how old messages were
 * when the node had sealed them for the socket and when the subscribers, all of them one thread, had
 * them; and what became of those that were stopped. Ends with 1 when one that was not stopped has
 * missed a message or got one out of order.
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
    size_t each;
    struct filter_bench_shared *shared;
    pid_t processes[FILTER_BENCH_GROUPS];
    int pipes[FILTER_BENCH_GROUPS];
    struct node *node;
    const struct topic *topic;
    struct histogram publish_ns; /* the decode thread's */
    _Atomic uint64_t verdicts;
};

static struct bench bench;

/* Between the first message and the last push. */
struct used {
    uint64_t elapsed_ns;
    uint64_t node_ns; /* CPU time */
    uint64_t readers_ns;
};

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

static struct filter_bench_part part_of(size_t group)
{
    return (struct filter_bench_part){.first = group == 0 ? 0 : group_size(0),
            .count = group_size(group),
            .each = bench.each,
            .topics = bench.topics};
}

/* CPU time of a process, nanoseconds; 0: it is no more. */
static uint64_t cpu_ns_of(pid_t process)
{
    clockid_t clock;
    struct timespec time;
    if (clock_getcpuclockid(process, &clock) != 0 || clock_gettime(clock, &time) != 0) {
        return 0;
    }
    return (uint64_t)time.tv_sec * NANOSECONDS_PER_SECOND + (uint64_t)time.tv_nsec;
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
        struct filter_bench_part part = part_of(group);
        filter_bench_subscribe(&bench.shared->groups[group], descriptors[0], &part);
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
    struct filter_bench_part part = part_of(0);
    size_t sum = 0;
    for (size_t i = 0; i < part.count * part.each; i++) {
        size_t topic = filter_bench_topic_of(&part, i / part.each, i % part.each);
        sum += messages / bench.topics + (topic < messages % bench.topics);
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

static void print_percentiles(const char *what, const struct histogram *histogram)
{
    printf("%s: p50 %.3f p99 %.3f max %.3f\n", what, ms(histogram_at(histogram, 0.5)),
            ms(histogram_at(histogram, 0.99)), ms(histogram->max));
}

/* What publishing and pushing took, and what of it is the subscribers'. */
static void report_times(const struct filter_bench_group *readers, const struct used *used)
{
    double elapsed = (double)used->elapsed_ns;
    print_percentiles("publish ms", &bench.publish_ns);
    print_percentiles("push ms, sealed for the socket", &filter_bench_written_ns);
    print_percentiles("push ms", &readers->latencies_ns);
    print_percentiles("push ms, the first of each subscriber", &readers->first_ns);
    print_percentiles("subscribers' thread, ms a turn", &readers->turns_ns);
    printf("share of a cpu: node %.2f, subscribers %.2f\n", (double)used->node_ns / elapsed,
            (double)used->readers_ns / elapsed);
}

static bool report(uint64_t messages, const struct used *used)
{
    struct filter_bench_group *readers = &bench.shared->groups[0];
    struct rusage usage;
    uint64_t ring = metric((enum metric)LEDGER_FILTER_RING_FULL) +
                    metric((enum metric)LEDGER_FILTER_OVER_SHARE);
    size_t want = expected(messages);
    getrusage(RUSAGE_SELF, &usage);
    printf("subscribers %zu with %zu subscriptions each, stopped %zu, topics %zu, %zu bytes, %llu "
           "messages a second for %llu s\n",
            bench.subscribers, bench.each, bench.stopped, bench.topics, bench.bytes,
            (unsigned long long)bench.rate, (unsigned long long)bench.seconds);
    printf("pushed %zu of %zu to those that read, %.0f a second; out of order %zu, connections "
           "lost "
           "%zu\n",
            atomic_load(&readers->received), want,
            (double)want / ((double)used->elapsed_ns / NANOSECONDS_PER_SECOND),
            atomic_load(&readers->out_of_order), atomic_load(&readers->lost));
    report_times(readers, used);
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

static struct used use_now(void)
{
    return (struct used){.elapsed_ns = clock_monotonic_ns(),
            .node_ns = cpu_ns_of(getpid()),
            .readers_ns = cpu_ns_of(bench.processes[0])};
}

static uint64_t publish_measured(struct used *used)
{
    struct filter_bench_group *readers = &bench.shared->groups[0];
    struct used before = use_now();
    atomic_store(&filter_bench_is_measuring, true);
    uint64_t messages = publish_all();
    wait_for(&readers->received, expected(messages), "received");
    struct used after = use_now();
    used->elapsed_ns = after.elapsed_ns - before.elapsed_ns;
    used->node_ns = after.node_ns - before.node_ns;
    used->readers_ns = after.readers_ns - before.readers_ns;
    return messages;
}

static bool run(void)
{
    struct filter_bench_group *groups = bench.shared->groups;
    struct used used;
    tell_address();
    wait_for(&groups[0].subscribed, group_size(0), "subscribed");
    wait_for(&groups[1].subscribed, group_size(1), "subscribed");
    if (bench.stopped > 0) {
        kill(bench.processes[1], SIGSTOP);
    }
    uint64_t messages = publish_measured(&used);
    atomic_store(&groups[0].is_over, true);
    waitpid(bench.processes[0], NULL, 0);
    bool is_good = report(messages, &used);
    kill(bench.processes[1], SIGKILL);
    waitpid(bench.processes[1], NULL, 0);
    return is_good;
}

static bool read_arguments(int argc, char **argv)
{
    if (argc < 6 || argc > 8) {
        fprintf(stderr,
                "usage: bench_filter SUBSCRIBERS TOPICS STOPPED RATE SECONDS [BYTES [EACH]]\n");
        return false;
    }
    bench.subscribers = strtoull(argv[1], NULL, 10);
    bench.topics = strtoull(argv[2], NULL, 10);
    bench.stopped = strtoull(argv[3], NULL, 10);
    bench.rate = strtoull(argv[4], NULL, 10);
    bench.seconds = strtoull(argv[5], NULL, 10);
    bench.bytes = argc >= 7 ? strtoull(argv[6], NULL, 10) : BYTES;
    bench.each = argc == 8 ? strtoull(argv[7], NULL, 10) : 1;
    return bench.topics > 0 && bench.rate > 0 && bench.stopped <= bench.subscribers &&
           bench.bytes >= FILTER_BENCH_HEAD_BYTES && bench.bytes <= 150000 && bench.each > 0 &&
           bench.each <= FILTER_BENCH_EACH_MAX && bench.each <= bench.topics;
}

int main(int argc, char **argv)
{
    struct rlimit limit;
    if (!read_arguments(argc, argv)) {
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
