/* SPDX-License-Identifier: MIT */

/* The copying pipeline under the reference's workload, in this process and without a network. */

#include <stdlib.h>

#include "base/clock.h"
#include "base/metrics.h"
#include "bench/message_path/copying.h"
#include "bench/message_path/meter.h"
#include "bench/message_path/scenario.h"

struct copying_run {
    const struct workload *workload;
    const struct scenario *scenario;
    struct copying copying;
    struct span *messages;
    double *latency_ns;
};

static enum status build_messages(struct copying_run *run)
{
    size_t count = run->workload->count;
    run->messages = calloc(count, sizeof(*run->messages));
    run->latency_ns = calloc(count, sizeof(*run->latency_ns));
    if (run->messages == NULL || run->latency_ns == NULL) {
        return STATUS_NO_MEMORY;
    }
    for (size_t i = 0; i < count; i++) {
        int64_t timestamp = clock_wall_ns();
        size_t size = workload_message_size(run->workload, i, timestamp);
        uint8_t *bytes = malloc(size);
        if (bytes == NULL) {
            return STATUS_NO_MEMORY;
        }
        workload_fill(run->workload, i, run->scenario->nonce, timestamp, bytes);
        run->messages[i] = span_of(bytes, size);
    }
    return STATUS_OK;
}

static enum status take_range(struct copying_run *run, size_t first, size_t end)
{
    enum status status = STATUS_OK;
    for (size_t i = first; status == STATUS_OK && i < end; i++) {
        uint64_t began = clock_monotonic_ns();
        status = copying_take(&run->copying, run->messages[i]);
        run->latency_ns[i] = (double)(clock_monotonic_ns() - began);
    }
    return status == STATUS_OK && run->copying.batch_count > 0 ? copying_flush(&run->copying)
                                                               : status;
}

/* This thread has no row of its own: its counts are in the row that such threads share. */
static void read_counters(uint64_t counters[METRIC_COUNT])
{
    for (size_t i = 0; i < METRIC_COUNT; i++) {
        counters[i] = metrics_sum(NULL, (enum metric)i);
    }
}

static void fill_sample(struct row_sample *sample, const uint64_t counters[METRIC_COUNT],
        const struct meter *before, const struct meter *after, double messages)
{
    uint64_t now[METRIC_COUNT];
    read_counters(now);
    double wall_ns = (double)(after->wall_ns - before->wall_ns);
#define COUNTED(metric) ((double)(now[metric] - counters[metric]))
    sample->wall_ms = wall_ns / 1e6;
    sample->msg_per_s = messages * 1e9 / wall_ns;
    sample->decodes_per_msg = COUNTED(METRIC_DECODES) / messages;
    sample->hashes_per_msg = COUNTED(METRIC_MESSAGE_HASHES) / messages;
    sample->hashed_mb = COUNTED(METRIC_HASHED_BYTES) / 1e6;
    sample->decoded_mb = COUNTED(METRIC_DECODED_BYTES) / 1e6;
    sample->occupied_mem_delta_mb = (after->allocated_bytes - before->allocated_bytes) / 1e6;
    sample->copies_per_msg = COUNTED(METRIC_COPIES) / messages;
    sample->copied_mb = COUNTED(METRIC_COPIED_BYTES) / 1e6;
    sample->allocs_per_msg = COUNTED(METRIC_ALLOCATIONS) / messages;
    sample->allocated_mb = COUNTED(METRIC_ALLOCATED_BYTES) / 1e6;
    sample->cpu_us_per_msg = (double)(after->cpu_ns - before->cpu_ns) / 1e3 / messages;
    sample->peak_rss_mb = meter_peak_rss_mb();
#undef COUNTED
}

static enum status measure(struct row_sample *sample, struct copying_run *run)
{
    struct meter before;
    struct meter after;
    uint64_t counters[METRIC_COUNT];
    size_t first = run->scenario->warmup;
    size_t count = run->workload->count;
    enum status status = take_range(run, 0, first);
    meter_reset_peak();
    read_counters(counters);
    meter_read(&before);
    if (status == STATUS_OK) {
        status = take_range(run, first, count);
    }
    meter_read(&after);
    fill_sample(sample, counters, &before, &after, (double)(count - first));
    sample->ns_per_msg_p50 = median_of(run->latency_ns + first, count - first);
    sample->ns_per_msg_p99 = run->latency_ns[first + (count - first) * 99 / 100];
    return status;
}

static void free_messages(struct copying_run *run)
{
    for (size_t i = 0; run->messages != NULL && i < run->workload->count; i++) {
        free((void *)(uintptr_t)run->messages[i].bytes);
    }
    free(run->messages);
    free(run->latency_ns);
}

enum status run_copying(
        struct row_sample *sample, const struct workload *workload, const struct scenario *scenario)
{
    struct copying_run run = {.workload = workload, .scenario = scenario};
    struct archive_error error;
    struct archive_options options = {.memory_limit_bytes = UINT64_MAX};
    run.copying.topic.name = span_of_text(WORKLOAD_PUBSUB_TOPIC);
    run.copying.batch_max =
            scenario->window < COPYING_BATCH_MAX ? scenario->window : COPYING_BATCH_MAX;
    enum status status = archive_open(&run.copying.archive, scenario->archive, &options, &error);
    if (status != STATUS_OK) {
        fprintf(stderr, "message_path: %s\n", error.text);
        return status;
    }
    status = build_messages(&run);
    if (status == STATUS_OK) {
        status = measure(sample, &run);
    }
    archive_close(&run.copying.archive);
    free_messages(&run);
    return status;
}
