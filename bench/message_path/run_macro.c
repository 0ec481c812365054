/* SPDX-License-Identifier: MIT */

/*
 * The reference's macro scenario: A publishes by its node's own way in, B receives over loopback TCP
 * with Noise and yamux, and at most a window of messages is between A's publish and the end of B's
 * stages. Its rows count both nodes together, as the reference's do.
 */

#include <errno.h>
#include <pthread.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "bench/message_path/macro.h"
#include "node/network.h"
#include "node/node.h"

enum {
    HEAP_EVERY = 50,
    PROBE_PERIOD_US = 20 * 1000,
    PROBES_MAX = 1500,
    LOST_S = 60 /* without any arrival */
};

struct macro_run {
    const struct workload *workload;
    const struct scenario *scenario;
    struct macro_peer peer;
    int far_commands; /* B's ends */
    int far_acknowledgements;
    int memory;
    pthread_t thread;
    bool has_thread;
    pid_t process;
    struct options *options;
    struct node *node;
    const struct topic *topic;
    uint64_t posted;
    uint64_t *posted_ns;
    _Atomic uint64_t probe_verdict; /* peers that the probe went to, plus one; 0: not decided */
    struct macro_reading before;
    struct macro_reading after;
};

enum status macro_set_options(struct options *options, const struct macro_shared *shared,
        const char *archive, const char *extra_name)
{
    const char *const settings[][2] = {
            {"archive", archive},
            {"pin", shared->pin},
            {"archive-memory-limit", "4GiB"},
            {"archive-spill-limit", "0"},
            {"tcp-port", "0"},
            {"listen-address", "127.0.0.1"},
            {"ip-colocation-limit", "0"},
            {"relay-queue-age",
                    "120s"}, /* the copying receiver does not read while it waits for its disk */
            {"cluster-id", "66"},
            {"pubsub-topic", WORKLOAD_PUBSUB_TOPIC},
            {extra_name, shared->address},
    };
    struct options_error error;
    for (size_t i = 0; i < sizeof(settings) / sizeof(settings[0]); i++) {
        if (settings[i][0] != NULL &&
                options_set(options, settings[i][0], settings[i][1], &error) != STATUS_OK) {
            fprintf(stderr, "message_path: %s\n", error.text);
            return STATUS_BAD_ARGUMENT;
        }
    }
    return STATUS_OK;
}

static void take_verdict(
        void *context, void *completion, const struct lane_decision *decision, size_t peer_count)
{
    (void)completion;
    (void)decision;
    struct macro_run *run = context;
    /* relaxed: the number stands for itself */
    atomic_store_explicit(&run->probe_verdict, peer_count + 1, memory_order_relaxed);
}

static enum status start_publisher(struct macro_run *run)
{
    const struct option_spec *const tables[] = {options_of_node, NULL};
    struct node_hooks hooks = {
            .verdict = take_verdict, .verdict_context = run, .has_network = true};
    struct node_error error = {.text = ""};
    struct multiaddr address;
    enum status status = options_create(&run->options, tables);
    if (status == STATUS_OK) {
        status = macro_set_options(run->options, run->peer.shared, "none", NULL);
    }
    if (status == STATUS_OK) {
        status = node_create(&run->node, run->options, &hooks, &error);
    }
    if (status == STATUS_OK) {
        status = node_start(run->node, &error);
    }
    if (status == STATUS_OK) {
        status = node_subscribe_topic(run->node, &run->topic, span_of_text(WORKLOAD_PUBSUB_TOPIC));
    }
    if (status == STATUS_OK && !network_address_at(node_network(run->node), 0, &address)) {
        status = STATUS_NOT_FOUND;
    }
    if (status != STATUS_OK) {
        fprintf(stderr, "message_path: publisher: %s %s\n", status_text(status), error.text);
        return status;
    }
    multiaddr_print(run->peer.shared->address, &address);
    return STATUS_OK;
}

static enum status make_shared(struct macro_run *run)
{
    size_t bytes = sizeof(struct macro_shared) + run->workload->count * sizeof(uint64_t);
    int commands[2];
    int acknowledgements[2];
    struct timeval lost = {.tv_sec = LOST_S};
    run->memory = memfd_create("macro", 0);
    if (run->memory < 0 || ftruncate(run->memory, (off_t)bytes) != 0 ||
            socketpair(AF_UNIX, SOCK_STREAM, 0, commands) != 0 ||
            socketpair(AF_UNIX, SOCK_STREAM, 0, acknowledgements) != 0 ||
            setsockopt(acknowledgements[0], SOL_SOCKET, SO_RCVTIMEO, &lost, sizeof(lost)) != 0) {
        return STATUS_SYSTEM;
    }
    struct macro_shared *shared =
            mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, run->memory, 0);
    if (shared == MAP_FAILED) {
        return STATUS_SYSTEM;
    }
    run->peer = (struct macro_peer){
            .shared = shared, .commands = commands[0], .acknowledgements = acknowledgements[0]};
    run->far_commands = commands[1];
    run->far_acknowledgements = acknowledgements[1];
    shared->bytes = bytes;
    shared->count = run->workload->count;
    shared->nonce = run->scenario->nonce;
    shared->is_copying = run->scenario->kind == SCENARIO_MACRO_COPYING;
    snprintf(shared->archive, sizeof(shared->archive), "%s", run->scenario->archive);
    snprintf(shared->pin, sizeof(shared->pin), "%s", run->scenario->pin);
    return STATUS_OK;
}

static void *receive_here(void *context)
{
    const struct macro_run *run = context;
    (void)macro_receive(run->peer.shared, run->far_commands, run->far_acknowledgements);
    return NULL;
}

static enum status spawn_receiver(struct macro_run *run)
{
    char texts[3][16];
    char *const arguments[] = {(char[]){"message_path"}, (char[]){MACRO_RECEIVER_COMMAND}, texts[0],
            texts[1], texts[2], NULL};
    extern char **environ;
    snprintf(texts[0], sizeof(texts[0]), "%d", run->memory);
    snprintf(texts[1], sizeof(texts[1]), "%d", run->far_commands);
    snprintf(texts[2], sizeof(texts[2]), "%d", run->far_acknowledgements);
    int result = posix_spawn(&run->process, "/proc/self/exe", NULL, NULL, arguments, environ);
    close(run->far_commands);
    close(run->far_acknowledgements);
    run->far_commands = -1;
    run->far_acknowledgements = -1;
    return result == 0 ? STATUS_OK : STATUS_SYSTEM;
}

static enum status ask(const struct macro_run *run, char command)
{
    char answer;
    if (send(run->peer.commands, &command, 1, MSG_NOSIGNAL) != 1 ||
            recv(run->peer.commands, &answer, 1, 0) != 1 || answer != command) {
        return STATUS_SYSTEM;
    }
    return STATUS_OK;
}

static enum status start_receiver(struct macro_run *run)
{
    if (run->scenario->has_two_processes) {
        enum status status = spawn_receiver(run);
        return status == STATUS_OK ? ask(run, MACRO_START) : status;
    }
    run->has_thread = pthread_create(&run->thread, NULL, receive_here, run) == 0;
    return run->has_thread ? ask(run, MACRO_START) : STATUS_SYSTEM;
}

static enum status publish(struct macro_run *run, size_t index, void *completion)
{
    const struct workload *workload = run->workload;
    int64_t now = clock_wall_ns();
    struct waku_message_view fields;
    struct intake_source source = {.received_ns = now,
            .received_monotonic_ns = clock_monotonic_ns(),
            .origin = ORIGIN_API};
    workload_fields(workload, index, run->scenario->nonce, now, &fields);
    struct frame *frame = node_wait_frame(run->node, waku_message_size(&fields));
    if (frame == NULL) {
        return STATUS_NO_MEMORY;
    }
    struct local_message message = {
            .topic = run->topic, .fields = &fields, .completion = completion};
    return intake_post_fields(node_intake(run->node), frame, &message, &source);
}

/* Until a message of A is sent to a peer: B then takes part. Probes are not of the workload. */
static enum status connect_sides(struct macro_run *run)
{
    uint64_t verdict = 0;
    for (size_t i = 0; verdict < 2; i++) {
        atomic_store_explicit(&run->probe_verdict, 0, memory_order_relaxed);
        enum status status = publish(run, run->workload->count + i, run);
        if (status != STATUS_OK || i == PROBES_MAX) {
            return status == STATUS_OK ? STATUS_TIMED_OUT : status;
        }
        usleep(PROBE_PERIOD_US);
        verdict = atomic_load_explicit(&run->probe_verdict, memory_order_relaxed);
    }
    return STATUS_OK;
}

static uint64_t in_flight(const struct macro_run *run)
{
    return run->posted -
           atomic_load_explicit(&run->peer.shared->finished, memory_order_acquire); /* FINISHED */
}

static void read_publisher(struct macro_run *run, struct macro_reading *out)
{
    for (size_t i = 0; i < METRIC_COUNT; i++) {
        out->counters[i] = metrics_sum(node_metrics(run->node), (enum metric)i);
    }
    meter_read(&out->meter);
    out->peak_rss_mb = meter_peak_rss_mb();
}

static void print_counters(const char *side, const uint64_t counters[METRIC_COUNT])
{
    static const char *const names[] = {
#define METRIC(id, name, labels, kind, help) #id,
#define LEDGER(stage, outcome, reason, help) #stage "_" #reason,
#include "base/metrics.def"
    };
    for (size_t i = 0; i < METRIC_COUNT; i++) {
        if (counters[i] > 0) {
            fprintf(stderr, "  %s: %s %llu\n", side, names[i], (unsigned long long)counters[i]);
        }
    }
}

/* The receiver waits for it as well, so the whole run ends; the counters say where it was lost. */
static _Noreturn void end_for_loss(struct macro_run *run)
{
    fprintf(stderr, "message_path: %llu of %llu messages have not arrived for %d s: lost\n",
            (unsigned long long)in_flight(run), (unsigned long long)run->posted, LOST_S);
    read_publisher(run, &run->after);
    print_counters("publisher", run->after.counters);
    if (ask(run, MACRO_READ) == STATUS_OK) {
        print_counters("receiver", run->peer.shared->after.counters);
    }
    _Exit(EXIT_FAILURE);
}

static enum status wait_in_flight(struct macro_run *run, uint64_t max)
{
    char bytes[64];
    while (in_flight(run) > max) {
        ssize_t n = recv(run->peer.acknowledgements, bytes, sizeof(bytes), 0);
        if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
            end_for_loss(run);
        }
        if (n <= 0) {
            return STATUS_CLOSED;
        }
    }
    return STATUS_OK;
}

static enum status write_heap(struct macro_run *run)
{
    struct meter meter;
    if (run->scenario->heap_series == NULL || run->posted % HEAP_EVERY != 0) {
        return STATUS_OK;
    }
    enum status status = wait_in_flight(run, 0);
    uint64_t allocated = metrics_sum(node_metrics(run->node), METRIC_ALLOCATED_BYTES) +
                         metrics_sum(NULL, METRIC_ALLOCATED_BYTES);
    meter_read(&meter);
    fprintf(run->scenario->heap_series, "%llu,%.0f,%.0f,%.0f,%.0f,%llu,%llu,%.0f\n",
            (unsigned long long)run->posted, meter.allocated_bytes, meter.active_bytes,
            meter.resident_bytes, meter.rss_bytes, (unsigned long long)allocated,
            (unsigned long long)workload_bytes_until(run->workload, (size_t)run->posted),
            meter.allocated_bytes);
    return status;
}

static enum status publish_range(struct macro_run *run, size_t end)
{
    enum status status = STATUS_OK;
    while (status == STATUS_OK && run->posted < end) {
        status = wait_in_flight(run, run->scenario->window - 1);
        if (status == STATUS_OK) {
            run->posted_ns[run->posted] = clock_monotonic_ns();
            status = publish(run, (size_t)run->posted, NULL);
            run->posted++;
        }
        if (status == STATUS_OK) {
            status = write_heap(run);
        }
    }
    return status == STATUS_OK ? wait_in_flight(run, 0) : status;
}

static double grown(
        const struct macro_reading *before, const struct macro_reading *after, enum metric metric)
{
    return (double)(after->counters[metric] - before->counters[metric]);
}

static double both(const struct macro_run *run, enum metric metric)
{
    return grown(&run->before, &run->after, metric) +
           grown(&run->peer.shared->before, &run->peer.shared->after, metric);
}

static double received(const struct macro_run *run, enum metric metric)
{
    return grown(&run->peer.shared->before, &run->peer.shared->after, metric);
}

/* From one arrival to the next, as the reference measures; and from publish to arrival. */
static enum status fill_times(struct row_sample *sample, const struct macro_run *run, size_t first)
{
    size_t count = run->workload->count - first;
    double *gaps = calloc(count, sizeof(*gaps));
    double *latencies = calloc(count, sizeof(*latencies));
    if (gaps == NULL || latencies == NULL) {
        free(gaps);
        free(latencies);
        return STATUS_NO_MEMORY;
    }
    for (size_t i = 0; i < count; i++) {
        uint64_t arrived = run->peer.shared->arrived_ns[first + i];
        uint64_t previous =
                i > 0 ? run->peer.shared->arrived_ns[first + i - 1] : run->posted_ns[first];
        gaps[i] = arrived > previous ? (double)(arrived - previous) : 0;
        latencies[i] = (double)(arrived - run->posted_ns[first + i]);
    }
    sample->ns_per_msg_p50 = median_of(gaps, count);
    sample->ns_per_msg_p99 = gaps[count * 99 / 100];
    sample->latency_p50_ms = median_of(latencies, count) / 1e6;
    sample->latency_p99_ms = latencies[count * 99 / 100] / 1e6;
    free(gaps);
    free(latencies);
    return STATUS_OK;
}

static void fill_counts(struct row_sample *sample, const struct macro_run *run, double messages)
{
    sample->decodes_per_msg = both(run, METRIC_DECODES) / messages;
    sample->hashes_per_msg = both(run, METRIC_MESSAGE_HASHES) / messages;
    sample->hashed_mb = both(run, METRIC_HASHED_BYTES) / 1e6;
    sample->decoded_mb = both(run, METRIC_DECODED_BYTES) / 1e6;
    sample->id_hashes_per_msg = both(run, METRIC_ID_HASHES) / messages;
    sample->copies_per_msg = both(run, METRIC_COPIES) / messages;
    sample->copied_mb = both(run, METRIC_COPIED_BYTES) / 1e6;
    sample->allocs_per_msg = both(run, METRIC_ALLOCATIONS) / messages;
    sample->allocated_mb = both(run, METRIC_ALLOCATED_BYTES) / 1e6;
    sample->receiver_decodes = received(run, METRIC_DECODES) / messages;
    sample->receiver_hashes = received(run, METRIC_MESSAGE_HASHES) / messages;
    sample->receiver_ids = received(run, METRIC_ID_HASHES) / messages;
    sample->receiver_copies = received(run, METRIC_COPIES) / messages;
    sample->receiver_stored = received(run, (enum metric)LEDGER_ARCHIVE_DELIVERED) / messages;
}

static void fill_meters(struct row_sample *sample, const struct macro_run *run, double messages)
{
    const struct macro_shared *shared = run->peer.shared;
    bool is_two = run->scenario->has_two_processes;
    double wall_ns = (double)(run->after.meter.wall_ns - run->before.meter.wall_ns);
    double cpu_ns = (double)(run->after.meter.cpu_ns - run->before.meter.cpu_ns);
    double far_ns = (double)(shared->after.meter.cpu_ns - shared->before.meter.cpu_ns);
    double occupied = shared->after.meter.allocated_bytes - shared->before.meter.allocated_bytes;
    double retained = (double)run->workload->message_bytes / 1e6;
    sample->wall_ms = wall_ns / 1e6;
    sample->msg_per_s = messages * 1e9 / wall_ns;
    sample->cpu_us_per_msg = (cpu_ns + (is_two ? far_ns : 0)) / 1e3 / messages;
    sample->receiver_cpu_us = is_two ? far_ns / 1e3 / messages : 0;
    sample->occupied_mem_delta_mb = occupied / 1e6;
    sample->peak_rss_mb = shared->after.peak_rss_mb;
    bool is_in_memory = strcmp(run->scenario->archive, "memory") == 0;
    sample->receiver_beyond_archive_mb =
            is_two && is_in_memory ? shared->after.peak_rss_mb - retained : 0;
    sample->receiver_wrapped_copies = is_two ? (double)(shared->after.meter.wrapped_copies -
                                                        shared->before.meter.wrapped_copies) /
                                                       messages
                                             : 0;
}

static enum status measure(struct row_sample *sample, struct macro_run *run)
{
    size_t first = run->scenario->warmup;
    double messages = (double)(run->workload->count - first);
    enum status status = publish_range(run, first);
    if (status == STATUS_OK) {
        status = ask(run, MACRO_RESET);
    }
    read_publisher(run, &run->before);
    if (status == STATUS_OK) {
        status = publish_range(run, run->workload->count);
    }
    read_publisher(run, &run->after);
    if (status == STATUS_OK) {
        status = ask(run, MACRO_READ);
    }
    if (status == STATUS_OK) {
        fill_counts(sample, run, messages);
        fill_meters(sample, run, messages);
        status = fill_times(sample, run, first);
    }
    return status;
}

static void close_end(int descriptor)
{
    if (descriptor >= 0) {
        close(descriptor);
    }
}

/* The receiver first, while what it is connected to is still there. */
static void end_run(struct macro_run *run)
{
    if (run->has_thread || run->process > 0) {
        (void)!ask(run, MACRO_QUIT);
    }
    if (run->has_thread) {
        pthread_join(run->thread, NULL);
    }
    if (run->process > 0) {
        close_end(run->peer.commands);
        run->peer.commands = -1;
        waitpid(run->process, NULL, 0);
    }
    if (run->node != NULL) {
        node_stop(run->node);
    }
    metrics_detach_thread();
    node_destroy(&run->node);
    options_destroy(&run->options);
    close_end(run->peer.commands);
    close_end(run->peer.acknowledgements);
    close_end(run->far_commands);
    close_end(run->far_acknowledgements);
    if (run->peer.shared != NULL) {
        munmap(run->peer.shared, run->peer.shared->bytes);
    }
    close_end(run->memory);
    free(run->posted_ns);
}

enum status run_macro(
        struct row_sample *sample, const struct workload *workload, const struct scenario *scenario)
{
    struct macro_run run = {.workload = workload,
            .scenario = scenario,
            .peer = {.commands = -1, .acknowledgements = -1},
            .far_commands = -1,
            .far_acknowledgements = -1,
            .memory = -1};
    run.posted_ns = calloc(workload->count, sizeof(*run.posted_ns));
    enum status status = run.posted_ns == NULL ? STATUS_NO_MEMORY : make_shared(&run);
    if (status == STATUS_OK) {
        status = start_publisher(&run);
    }
    if (status == STATUS_OK) {
        status = metrics_attach_thread(node_metrics(run.node));
    }
    if (status == STATUS_OK) {
        status = start_receiver(&run);
    }
    if (status == STATUS_OK) {
        status = connect_sides(&run);
    }
    if (status == STATUS_OK) {
        status = measure(sample, &run);
    }
    end_run(&run);
    return status;
}
