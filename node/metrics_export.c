/* SPDX-License-Identifier: MIT */
#include "node/metrics_export.h"

#include <stdio.h>
#include <string.h>

#include "admin/process_figures.h"
#include "base/memory.h"
#include "node/health.h"
#include "node/metrics_export_private.h"
#include "node/reading.h"

enum {
    LABELS_MAX = METRICS_LABELS_MAX
};

const struct counter_name counter_names[METRIC_COUNT] = {
#define METRIC(id, name, labels, kind, help) {name, labels, help},
#define LEDGER(stage, outcome, reason, help) {NULL, NULL, NULL},
#include "base/metrics.def"
};

void metrics_count(struct metrics_text *text, const char *labels, enum metrics_presence presence,
        uint64_t value)
{
    struct metrics_series series = {
            .suffix = "", .labels = labels, .is_always_there = presence == ALWAYS};
    metrics_text_count(text, &series, value);
}

void metrics_number(struct metrics_text *text, const char *labels, double value)
{
    struct metrics_series series = {.suffix = "", .labels = labels};
    metrics_text_number(text, &series, value);
}

static bool is_first_of_name(size_t metric)
{
    for (size_t i = 0; i < metric; i++) {
        if (counter_names[i].name != NULL &&
                strcmp(counter_names[i].name, counter_names[metric].name) == 0) {
            return false;
        }
    }
    return true;
}

/* All rows of the name of the first one. */
static void write_rows(struct metrics_text *text, const struct node_reading *reading, size_t first)
{
    metrics_text_family(text, counter_names[first].name, "counter", counter_names[first].help);
    for (size_t i = first; i < METRIC_COUNT; i++) {
        if (counter_names[i].name != NULL &&
                strcmp(counter_names[i].name, counter_names[first].name) == 0) {
            metrics_count(text, counter_names[i].labels, ONCE_SEEN, reading->metrics[i]);
        }
    }
}

static void write_counters(struct metrics_text *text, const struct node_reading *reading)
{
    for (size_t i = 0; i < METRIC_COUNT; i++) {
        if (counter_names[i].name != NULL && !metrics_is_part_of_histogram(i) &&
                is_first_of_name(i)) {
            write_rows(text, reading, i);
        }
    }
}

static void ledger_labels(char labels[LABELS_MAX], const struct ledger_cell *cell)
{
    int length = snprintf(labels, LABELS_MAX, "stage=\"%s\",outcome=\"%s\",reason=\"",
            ledger_stage_name(cell->stage), ledger_outcome_name(cell->outcome));
    char *place = labels + length;
    for (const char *reason = cell->reason; *reason != '\0'; reason++) {
        *place++ = (char)(*reason == '_' ? '_' : *reason | 0x20); /* capitals, digits and "_" */
    }
    memcpy(place, "\"", 2);
}

static void write_ledgers(struct metrics_text *text, const struct node_reading *reading)
{
    char labels[LABELS_MAX];
    metrics_text_family(text, "sluice_stage_messages_total", "counter",
            "messages by stage and what became of them: received = delivered + refused + dropped + "
            "held");
    for (size_t i = 0; i < ledger_cell_count; i++) {
        ledger_labels(labels, &ledger_cells[i]);
        metrics_count(text, labels, ONCE_SEEN, reading->metrics[ledger_cells[i].metric]);
    }
    metrics_text_family(text, "sluice_stage_held", "gauge", "messages that a stage holds now");
    for (size_t i = 0; i < LEDGER_STAGES; i++) {
        snprintf(labels, sizeof(labels), "stage=\"%s\"", ledger_stage_name((enum ledger_stage)i));
        metrics_count(text, labels, ONCE_SEEN, reading->held[i]);
    }
}

/* A number of each thread or queue. */
static void write_threads(struct metrics_text *text, const struct node_reading *reading)
{
    char labels[LABELS_MAX];
    metrics_text_family(text, "sluice_thread_busy_seconds_total", "counter",
            "time of a thread's turns that had work; its rate is the busy share");
    for (size_t i = 0; i < reading->thread_count; i++) {
        const struct thread_reading *thread = &reading->threads[i];
        snprintf(labels, sizeof(labels), "thread=\"%s\",role=\"%s\"", thread->name,
                node_role_name(thread->role));
        metrics_number(text, labels, (double)thread->busy_ns / 1e9);
    }
    metrics_text_family(
            text, "sluice_thread_seconds_total", "counter", "time since a thread began");
    for (size_t i = 0; i < reading->thread_count; i++) {
        const struct thread_reading *thread = &reading->threads[i];
        snprintf(labels, sizeof(labels), "thread=\"%s\",role=\"%s\"", thread->name,
                node_role_name(thread->role));
        metrics_number(text, labels, (double)thread->total_ns / 1e9);
    }
}

static void queue_labels(char labels[LABELS_MAX], const struct queue_reading *queue)
{
    snprintf(labels, LABELS_MAX, "from=\"%s\",to=\"%s\",kind=\"%s\",lane=\"%zu\",taker=\"%zu\"",
            queue->from, queue->to, queue->kind, queue->lane, queue->index);
}

static void write_queues(struct metrics_text *text, const struct node_reading *reading)
{
    static const struct {
        const char *name;
        const char *help;
        size_t offset;
    } rows[] = {
            {"sluice_queue_depth", "entries in a queue now", offsetof(struct queue_reading, depth)},
            {"sluice_queue_capacity", "entries that a ring has room for",
                    offsetof(struct queue_reading, capacity)},
            {"sluice_queue_high_water", "the most entries that a queue ever had",
                    offsetof(struct queue_reading, high_water)}};
    for (size_t k = 0; k < sizeof(rows) / sizeof(rows[0]); k++) {
        metrics_text_family(text, rows[k].name, "gauge", rows[k].help);
        for (size_t i = 0; i < reading->queue_count; i++) {
            char labels[LABELS_MAX];
            uint64_t amount;
            memcpy(&amount, (const char *)&reading->queues[i] + rows[k].offset, sizeof(amount));
            queue_labels(labels, &reading->queues[i]);
            metrics_count(text, labels, ONCE_SEEN, amount);
        }
    }
}

static void write_memory(struct metrics_text *text, const struct node_reading *reading)
{
    metrics_text_family(
            text, "sluice_memory_bytes", "gauge", "bytes of messages, by where they wait");
    metrics_count(text, "place=\"budget\"", ONCE_SEEN, reading->budget_used);
    metrics_count(text, "place=\"archive_ring\"", ONCE_SEEN, reading->archive.ring_bytes);
    metrics_count(text, "place=\"filter_rings\"", ONCE_SEEN, reading->filter_bytes);
    metrics_count(text, "place=\"event_ring\"", ONCE_SEEN, reading->event_bytes);
    metrics_count(text, "place=\"mesh_cache\"", ONCE_SEEN, reading->relay.cached_bytes);
    metrics_count(text, "place=\"outbound\"", ONCE_SEEN, reading->relay.outbound_bytes);
    metrics_text_family(text, "sluice_memory_limit_bytes", "gauge", "what they are bounded by");
    metrics_count(text, "place=\"budget\"", ONCE_SEEN, reading->budget_limit);
    metrics_count(text, "place=\"outbound\"", ONCE_SEEN, reading->relay.outbound_limit);
    metrics_text_family(
            text, "sluice_memory_peak_bytes", "gauge", "the most that the memory budget ever had");
    metrics_count(text, "place=\"budget\"", ONCE_SEEN, reading->budget_peak);
}

static void write_relay(struct metrics_text *text, const struct node_reading *reading)
{
    metrics_text_family(
            text, "sluice_relay_peers", "gauge", "connected peers that speak relay with this node");
    metrics_count(text, "", ONCE_SEEN, reading->relay.peers);
}

static void write_archive(struct metrics_text *text, const struct node_reading *reading)
{
    const struct archive_reading *archive = &reading->archive;
    if (!archive->is_there) {
        return;
    }
    metrics_text_family(
            text, "sluice_archive_bytes", "gauge", "memory or disk that the archive takes");
    metrics_count(text, "", ONCE_SEEN, archive->totals.size_bytes);
    metrics_text_family(text, "sluice_archive_lag", "gauge", "messages that wait to be archived");
    metrics_count(text, "", ONCE_SEEN, archive->held);
    metrics_text_family(text, "sluice_archive_spilled", "gauge", "of them, in the spill file");
    metrics_count(text, "", ONCE_SEEN, archive->spilled);
    metrics_text_family(text, "sluice_archive_oldest_timestamp_seconds", "gauge",
            "timestamp of the oldest message in the archive");
    metrics_number(text, "", (double)archive->totals.oldest_ns / 1e9);
}

static void write_health(
        struct metrics_text *text, const struct node *node, const struct node_reading *reading)
{
    struct node_health health;
    char labels[LABELS_MAX];
    node_health(node, &health);
    metrics_text_family(text, "sluice_degraded", "gauge", "1: that part of the node is in trouble");
    for (size_t i = 0; i < HEALTH_PARTS; i++) {
        snprintf(labels, sizeof(labels), "part=\"%s\"", health_part_name((enum health_part)i));
        metrics_count(text, labels, ONCE_SEEN, health.parts[i].is_degraded);
    }
    metrics_text_family(text, "sluice_timestamp_offset_seconds", "gauge",
            "median of how far the last messages' timestamps are ahead of this clock");
    metrics_number(text, "", (double)reading->offset_median_ns / 1e9);
}

static void write_process(struct metrics_text *text)
{
    struct process_figures figures;
    process_figures_read(&figures);
    metrics_text_family(text, "process_cpu_seconds_total", "counter", "user and system time");
    metrics_number(text, "", figures.cpu_seconds);
    metrics_text_family(text, "process_start_time_seconds", "gauge", "when the process began");
    metrics_number(text, "", figures.start_time_seconds);
    metrics_text_family(text, "process_virtual_memory_bytes", "gauge", "virtual memory");
    metrics_count(text, "", ONCE_SEEN, figures.virtual_bytes);
    metrics_text_family(text, "process_resident_memory_bytes", "gauge", "resident memory");
    metrics_count(text, "", ONCE_SEEN, figures.resident_bytes);
    metrics_text_family(text, "process_open_fds", "gauge", "open file descriptors");
    metrics_count(text, "", ONCE_SEEN, figures.open_fds);
    metrics_text_family(text, "process_max_fds", "gauge", "file descriptors that may be open");
    metrics_count(text, "", ONCE_SEEN, figures.max_fds);
    metrics_text_family(text, "process_threads", "gauge", "threads");
    metrics_count(text, "", ONCE_SEEN, figures.threads);
}

static void write_uptime(struct metrics_text *text, const struct node_reading *reading)
{
    metrics_text_family(text, "sluice_uptime_seconds", "gauge", "time since the node started");
    metrics_number(text, "", (double)reading->uptime_ns / 1e9);
}

char *metrics_export(
        struct node *node, const struct metrics_export_options *options, size_t *length)
{
    struct metrics_text text;
    struct node_reading *reading = memory_allocate(sizeof(*reading));
    if (reading == NULL) {
        return NULL;
    }
    node_read(node, reading);
    metrics_text_begin(&text, options->seen);
    write_process(&text);
    metrics_write_reference(&text, reading, options);
    metrics_write_topics(&text, reading);
    write_uptime(&text, reading);
    write_health(&text, node, reading);
    write_ledgers(&text, reading);
    write_counters(&text, reading);
    write_threads(&text, reading);
    write_queues(&text, reading);
    write_memory(&text, reading);
    write_relay(&text, reading);
    write_archive(&text, reading);
    memory_free(reading);
    return metrics_text_end(&text, length);
}
