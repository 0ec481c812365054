/* SPDX-License-Identifier: MIT */

/* The product's pipeline under the reference's workload. */

#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "bench/message_path/meter.h"
#include "bench/message_path/scenario.h"
#include "node/node.h"

enum {
    HEAP_EVERY = 50
};

struct shared_run {
    const struct workload *workload;
    const struct scenario *scenario;
    struct options *options;
    struct node *node;
    const struct topic *topic;
    struct frame **frames;
    size_t frame_count;
    uint64_t *posted_ns;
    double *latency_ns;
    size_t posted;
    size_t finished;
    uint64_t counters[METRIC_COUNT];
    struct meter heap_before;
    uint64_t serialised_before;
};

static enum status set_options(struct shared_run *run)
{
    const struct option_spec *const tables[] = {options_of_node, NULL};
    const struct scenario *scenario = run->scenario;
    const char *const settings[][2] = {
            {"archive", scenario->archive},
            {"relay", scenario->kind == SCENARIO_INGRESS_SHARED ? "true" : "false"},
            {"memory-budget", "4GiB"},
            {"archive-memory-limit", "4GiB"},
            {"archive-spill-limit", "0"},
            {"pin", scenario->pin},
    };
    struct options_error error;
    enum status status = options_create(&run->options, tables);
    for (size_t i = 0; status == STATUS_OK && i < sizeof(settings) / sizeof(settings[0]); i++) {
        status = options_set(run->options, settings[i][0], settings[i][1], &error);
        if (status != STATUS_OK) {
            fprintf(stderr, "message_path: %s\n", error.text);
        }
    }
    return status;
}

static enum status start_node(struct shared_run *run)
{
    struct node_hooks hooks = {0};
    struct node_error error;
    enum status status = node_create(&run->node, run->options, &hooks, &error);
    if (status == STATUS_OK) {
        status = node_subscribe_topic(run->node, &run->topic, span_of_text(WORKLOAD_PUBSUB_TOPIC));
    }
    if (status == STATUS_OK) {
        status = node_start(run->node, &error);
    }
    if (status != STATUS_OK) {
        fprintf(stderr, "message_path: %s\n", error.text);
    }
    return status;
}

static struct frame *build_frame(struct shared_run *run, size_t index, int64_t timestamp_ns)
{
    const struct workload *workload = run->workload;
    bool is_rpc = run->scenario->kind == SCENARIO_INGRESS_SHARED;
    size_t size = is_rpc ? workload_rpc_size(workload, index, timestamp_ns)
                         : workload_message_size(workload, index, timestamp_ns);
    struct frame *frame = node_wait_frame(run->node, size);
    if (frame != NULL && is_rpc) {
        workload_fill_rpc(workload, index, run->scenario->nonce, timestamp_ns, frame_bytes(frame));
    } else if (frame != NULL) {
        workload_fill(workload, index, run->scenario->nonce, timestamp_ns, frame_bytes(frame));
    }
    return frame;
}

/* Copies of a message come right behind it. */
static enum status build_range(struct shared_run *run, size_t first, size_t end)
{
    size_t arrivals = run->scenario->arrivals;
    int64_t now = clock_wall_ns();
    for (size_t i = first; i < end; i++) {
        run->frames[i] = build_frame(run, i / arrivals, now + (int64_t)(i / arrivals));
        if (run->frames[i] == NULL) {
            return STATUS_NO_MEMORY;
        }
    }
    return STATUS_OK;
}

/* All frames of the run before its clock starts. */
static enum status build_frames(struct shared_run *run)
{
    size_t arrivals = run->scenario->arrivals;
    run->frame_count = run->workload->count * arrivals;
    run->frames = calloc(run->frame_count, sizeof(struct frame *));
    run->posted_ns = calloc(run->frame_count, sizeof(*run->posted_ns));
    run->latency_ns = calloc(run->frame_count, sizeof(*run->latency_ns));
    if (run->frames == NULL || run->posted_ns == NULL || run->latency_ns == NULL) {
        return STATUS_NO_MEMORY;
    }
    /* The run that shows the heap grow makes each frame when it is posted. */
    return scenario_shows_heap(run->scenario) ? STATUS_OK : build_range(run, 0, run->frame_count);
}

static void note_finished(struct shared_run *run)
{
    size_t finished = (size_t)node_finished(run->node);
    uint64_t now = run->finished < finished ? clock_monotonic_ns() : 0;
    for (; run->finished < finished; run->finished++) {
        run->latency_ns[run->finished] = (double)(now - run->posted_ns[run->finished]);
    }
}

static enum status post(struct shared_run *run, size_t index)
{
    struct frame *frame = run->frames[index];
    struct intake_source source = {.received_ns = clock_wall_ns(),
            .received_monotonic_ns = clock_monotonic_ns(),
            .connection = 1 + index % run->scenario->arrivals,
            .origin = ORIGIN_MESH};
    enum status status = STATUS_OK;
    size_t count = 1;
    run->frames[index] = NULL;
    run->posted_ns[index] = source.received_monotonic_ns;
    if (run->scenario->kind == SCENARIO_INGRESS_SHARED) {
        status = intake_post_rpc(node_intake(run->node), frame, &source, &count);
    } else {
        status = intake_post_message(node_intake(run->node), frame, run->topic, &source, NULL);
    }
    run->posted++;
    return count == 1 ? status : STATUS_BAD_FRAME;
}

static void note_growth(struct shared_run *run, const struct meter *now, uint64_t serialised)
{
    struct heap_growth *growth = run->scenario->heap_growth;
    if (run->serialised_before == 0) {
        run->heap_before = *now;
        run->serialised_before = serialised;
        return;
    }
    growth->is_known = true;
    growth->rss_bytes = now->rss_bytes - run->heap_before.rss_bytes;
    growth->held_bytes = now->held_bytes - run->heap_before.held_bytes;
    growth->serialised_bytes = (double)(serialised - run->serialised_before);
}

static void write_heap(struct shared_run *run, size_t message)
{
    struct meter meter;
    if (run->scenario->heap_series == NULL || message % HEAP_EVERY != 0) {
        return;
    }
    node_wait_in_flight(run->node, run->posted, 0);
    meter_read(&meter);
    uint64_t allocated = metrics_sum(node_metrics(run->node), METRIC_ALLOCATED_BYTES) +
                         metrics_sum(NULL, METRIC_ALLOCATED_BYTES);
    uint64_t serialised = workload_bytes_until(run->workload, message);
    fprintf(run->scenario->heap_series, "%zu,%.0f,%.0f,%.0f,%.0f,%llu,%llu,%.0f\n", message,
            meter.allocated_bytes, meter.active_bytes, meter.resident_bytes, meter.rss_bytes,
            (unsigned long long)allocated, (unsigned long long)serialised, meter.held_bytes);
    note_growth(run, &meter, serialised);
}

/* The frames from first to end (exclusive), with at most window of them in flight. */
static enum status post_range(struct shared_run *run, size_t first, size_t end)
{
    size_t window = run->scenario->window;
    size_t arrivals = run->scenario->arrivals;
    enum status status = STATUS_OK;
    for (size_t i = first; status == STATUS_OK && i < end; i++) {
        if (scenario_shows_heap(run->scenario)) {
            status = build_range(run, i, i + 1);
        }
        status = status == STATUS_OK ? post(run, i) : status;
        note_finished(run);
        if (run->posted - run->finished >= window) {
            node_wait_in_flight(run->node, run->posted, window / 2);
            note_finished(run);
        }
        if ((i + 1) % arrivals == 0) {
            write_heap(run, (i + 1) / arrivals);
        }
    }
    node_wait_in_flight(run->node, run->posted, 0);
    note_finished(run);
    return status;
}

static void read_counters(struct shared_run *run)
{
    for (size_t i = 0; i < METRIC_COUNT; i++) {
        run->counters[i] = metrics_sum(node_metrics(run->node), (enum metric)i);
    }
}

static double counted(const struct shared_run *run, enum metric metric)
{
    return (double)(metrics_sum(node_metrics(run->node), metric) - run->counters[metric]);
}

static void fill_latencies(struct row_sample *sample, struct shared_run *run, size_t first)
{
    size_t count = run->frame_count - first;
    double *values = run->latency_ns + first;
    sample->ns_per_msg_p50 = median_of(values, count); /* sorts them */
    sample->ns_per_msg_p99 = values[count * 99 / 100];
}

static void fill_sample(struct row_sample *sample, struct shared_run *run,
        const struct meter *before, const struct meter *after, size_t first)
{
    double messages = (double)(run->frame_count - first) / (double)run->scenario->arrivals;
    double wall_ns = (double)(after->wall_ns - before->wall_ns);
    double frames = (double)(run->frame_count - first);
    sample->wall_ms = wall_ns / 1e6;
    sample->msg_per_s = messages * 1e9 / wall_ns;
    sample->decodes_per_msg = counted(run, METRIC_DECODES) / messages;
    sample->hashes_per_msg = counted(run, METRIC_MESSAGE_HASHES) / messages;
    sample->hashed_mb = counted(run, METRIC_HASHED_BYTES) / 1e6;
    sample->decoded_mb = counted(run, METRIC_DECODED_BYTES) / 1e6;
    sample->occupied_mem_delta_mb = (after->allocated_bytes - before->allocated_bytes) / 1e6;
    sample->id_hashes_per_msg = counted(run, METRIC_ID_HASHES) / messages;
    sample->copies_per_msg = counted(run, METRIC_COPIES) / messages;
    sample->copied_mb = counted(run, METRIC_COPIED_BYTES) / 1e6;
    /* The frame that each message came in was allocated before the clock started: one each. */
    sample->allocs_per_msg = (counted(run, METRIC_ALLOCATIONS) + frames) / messages;
    sample->allocated_mb = counted(run, METRIC_ALLOCATED_BYTES) / 1e6;
    sample->cpu_us_per_msg = (double)(after->cpu_ns - before->cpu_ns) / 1e3 / messages;
    sample->peak_rss_mb = meter_peak_rss_mb();
    fill_latencies(sample, run, first);
}

static enum status check_copies(
        const struct shared_run *run, const struct meter *before, const struct meter *after)
{
    double wrapped = (double)(after->wrapped_copies - before->wrapped_copies);
    double ours = counted(run, METRIC_COPIES);
    if (meter_counts_copies() && wrapped > ours) {
        fprintf(stderr, "message_path: the wrapped memcpy saw %.0f copies, the counter %.0f\n",
                wrapped, ours);
        return STATUS_BAD_ARGUMENT;
    }
    return STATUS_OK;
}

static enum status measure(struct row_sample *sample, struct shared_run *run)
{
    struct meter before;
    struct meter after;
    size_t first = run->scenario->warmup * run->scenario->arrivals;
    enum status status = post_range(run, 0, first);
    meter_reset_peak();
    read_counters(run);
    meter_read(&before);
    if (status == STATUS_OK) {
        status = post_range(run, first, run->frame_count);
    }
    meter_read(&after);
    fill_sample(sample, run, &before, &after, first);
    return status == STATUS_OK ? check_copies(run, &before, &after) : status;
}

static void drop_frames(struct shared_run *run)
{
    for (size_t i = 0; run->frames != NULL && i < run->frame_count; i++) {
        if (run->frames[i] != NULL) {
            frame_unref(run->frames[i]);
        }
    }
    free(run->frames);
    free(run->posted_ns);
    free(run->latency_ns);
}

enum status run_shared(
        struct row_sample *sample, const struct workload *workload, const struct scenario *scenario)
{
    struct shared_run run = {.workload = workload, .scenario = scenario};
    cpu_set_t everywhere;
    sched_getaffinity(0, sizeof(everywhere), &everywhere);
    enum status status = set_options(&run);
    if (status == STATUS_OK) {
        status = start_node(&run);
    }
    if (status == STATUS_OK) {
        struct cpu_set floating;
        node_floating_cpus(run.node, &floating);
        (void)!sched_setaffinity(0, sizeof(floating.mask), &floating.mask);
        status = build_frames(&run);
    }
    if (status == STATUS_OK) {
        status = measure(sample, &run);
    }
    drop_frames(&run);
    if (run.node != NULL) {
        node_stop(run.node);
    }
    node_destroy(&run.node);
    options_destroy(&run.options);
    (void)!sched_setaffinity(0, sizeof(everywhere), &everywhere);
    return status;
}
