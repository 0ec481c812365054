/* SPDX-License-Identifier: MIT */
#include "node/metrics_export.h"

#include <stdio.h>
#include <string.h>

#include "admin/process_figures.h"
#include "base/duration.h"
#include "base/memory.h"
#include "base/version.h"
#include "codec/topics.h"
#include "node/health.h"
#include "node/reading.h"

enum {
    LABELS_MAX = 2 * METRICS_LABEL_VALUE_MAX,
    ALWAYS = 1,
    ONCE_SEEN = 0
};

static const struct {
    const char *name;
    const char *labels;
    const char *help;
} counters[METRIC_COUNT] = {
#define METRIC(id, name, labels, kind, help) {name, labels, help},
#define LEDGER(stage, outcome, reason, help) {NULL, NULL, NULL},
#include "base/metrics.def"
};

/* Durations are written as histograms, under the reference's names. */
static const struct {
    enum metric first;
    size_t classes;
    const char *name;
    const char *help;
} durations[] = {
        {METRIC_ARCHIVE_INSERT_LE_5MS, 14, "waku_archive_insert_duration_seconds",
                "time for a batch of messages to be stored and synced"},
        {METRIC_ARCHIVE_QUERY_LE_5MS, 14, "waku_archive_query_duration_seconds",
                "time for a store query to be answered from the archive"},
        {METRIC_FILTER_HANDLE_LE_5MS, DURATION_CLASSES,
                "waku_filter_handle_message_duration_seconds",
                "time for a message to be matched and handed to its subscribers"},
};

static const char *const duration_labels[DURATION_CLASSES] = {"le=\"0.005\"", "le=\"0.01\"",
        "le=\"0.025\"", "le=\"0.05\"", "le=\"0.075\"", "le=\"0.1\"", "le=\"0.25\"", "le=\"0.5\"",
        "le=\"0.75\"", "le=\"1.0\"", "le=\"2.5\"", "le=\"5.0\"", "le=\"7.5\"", "le=\"10.0\"",
        "le=\"15.0\"", "le=\"20.0\"", "le=\"30.0\""};

static void count(struct metrics_text *text, const char *labels, int presence, uint64_t value)
{
    struct metrics_series series = {
            .suffix = "", .labels = labels, .is_always_there = presence == ALWAYS};
    metrics_text_count(text, &series, value);
}

static void number(struct metrics_text *text, const char *labels, double value)
{
    struct metrics_series series = {.suffix = "", .labels = labels};
    metrics_text_number(text, &series, value);
}

static void part(struct metrics_text *text, const char *suffix, const char *labels, uint64_t value)
{
    struct metrics_series series = {.suffix = suffix, .labels = labels, .is_always_there = true};
    metrics_text_count(text, &series, value);
}

static void sum_of_histogram(struct metrics_text *text, double value)
{
    struct metrics_series series = {.suffix = "_sum", .labels = "", .is_always_there = true};
    metrics_text_number(text, &series, value);
}

/* Rows of one name stand together; only the first begins the family. */
static void family_of_row(struct metrics_text *text, const char *name, const char *type,
        const char *help, const char **last)
{
    if (*last == NULL || strcmp(*last, name) != 0) {
        metrics_text_family(text, name, type, help);
        *last = name;
    }
}

static void write_reference(struct metrics_text *text, const struct node_reading *r)
{
    const char *last = NULL;
#define M(id) (r->metrics[id])
#define REFERENCE(name, labels, type, presence, value, help)                                       \
    family_of_row(text, name, type, help, &last);                                                  \
    count(text, labels, presence, (uint64_t)(value));
#define ABSENT(name, type)                                                                         \
    family_of_row(text, name, type, "always 0: there is nothing here to be counted", &last);       \
    count(text, "", ALWAYS, 0);
#include "node/reference_metrics.def"
#undef M
}

static void write_duration(struct metrics_text *text, const struct node_reading *reading, size_t i)
{
    const uint64_t *values = &reading->metrics[durations[i].first];
    metrics_text_family(text, durations[i].name, "histogram", durations[i].help);
    for (size_t k = 0; k < durations[i].classes; k++) {
        part(text, "_bucket", duration_labels[k], values[k]);
    }
    part(text, "_bucket", "le=\"+Inf\"", values[DURATION_CLASSES]);
    sum_of_histogram(text, (double)values[DURATION_CLASSES + 1] / 1e6);
    part(text, "_count", "", values[DURATION_CLASSES]);
}

/* Of plain numbers: classes, count, sum, as histogram_observe has them. */
static void write_numbers(struct metrics_text *text, const struct node_reading *reading,
        const char *name, enum metric first, enum metric count_metric)
{
    size_t classes = (size_t)count_metric - (size_t)first;
    metrics_text_family(text, name, "histogram", counters[first].help);
    for (size_t i = 0; i < classes; i++) {
        part(text, "_bucket", counters[(size_t)first + i].labels,
                reading->metrics[(size_t)first + i]);
    }
    part(text, "_bucket", "le=\"+Inf\"", reading->metrics[count_metric]);
    part(text, "_sum", "", reading->metrics[(size_t)count_metric + 1]);
    part(text, "_count", "", reading->metrics[count_metric]);
}

/* The reference has them for an archive of an older protocol, too. */
static void write_absent_duration(struct metrics_text *text, const char *name)
{
    metrics_text_family(text, name, "histogram", "always 0: there is nothing here to be counted");
    for (size_t k = 0; k < durations[0].classes; k++) {
        part(text, "_bucket", duration_labels[k], 0);
    }
    part(text, "_bucket", "le=\"+Inf\"", 0);
    sum_of_histogram(text, 0);
    part(text, "_count", "", 0);
}

/* In kB of 1,000 bytes, as in the reference. */
static void write_sizes(struct metrics_text *text, const struct node_reading *reading)
{
    uint64_t below = 0;
    uint64_t bytes = 0;
    metrics_text_family(text, "waku_histogram_message_size", "histogram",
            "payloads of accepted messages, in kB of 1,000 bytes");
    for (size_t i = 0; i < TRAFFIC_SIZES; i++) {
        char labels[32];
        snprintf(labels, sizeof(labels), "le=\"%.1f\"", (double)traffic_size_bounds[i] / 1e3);
        below += reading->sizes[i];
        part(text, "_bucket", labels, below);
    }
    below += reading->sizes[TRAFFIC_SIZES];
    for (size_t i = 0; i < reading->topic_count; i++) {
        bytes += reading->topics[i].payload_bytes;
    }
    part(text, "_bucket", "le=\"+Inf\"", below);
    sum_of_histogram(text, (double)bytes / 1e3);
    part(text, "_count", "", below);
}

static void write_histograms(struct metrics_text *text, const struct node_reading *reading)
{
    for (size_t i = 0; i < sizeof(durations) / sizeof(durations[0]); i++) {
        write_duration(text, reading, i);
    }
    write_absent_duration(text, "waku_legacy_archive_insert_duration_seconds");
    write_absent_duration(text, "waku_legacy_archive_query_duration_seconds");
    write_sizes(text, reading);
    write_numbers(text, reading, "reconciliation_roundtrips", METRIC_SYNC_ROUNDTRIPS_LE_1,
            METRIC_SYNC_ROUNDTRIPS_COUNT);
    write_numbers(text, reading, "reconciliation_differences", METRIC_SYNC_DIFFERENCES_LE_0,
            METRIC_SYNC_DIFFERENCES_COUNT);
}

/* A number of each topic, labelled with its name. */
struct topic_metric {
    const char *name;
    const char *label; /* of the topic's name */
    const char *others;
    const char *help;
    const char *type;
    size_t offset; /* in struct topic_reading */
};

#define TOPIC(field) offsetof(struct topic_reading, field)
static const struct topic_metric topic_metrics[] = {
        {"waku_relay_total_msg_bytes_per_shard", "shard", "",
                "payload bytes of accepted messages, by pubsub topic", "gauge",
                TOPIC(payload_bytes)},
        {"waku_relay_max_msg_bytes_per_shard", "shard", "",
                "largest payload of an accepted message, by pubsub topic", "gauge",
                TOPIC(payload_largest)},
        {"waku_relay_network_bytes_total", "topic", ",type=\"gross\",direction=\"in\"",
                "bytes of messages and topic names: gross with copies and refused ones, net "
                "without",
                "counter", TOPIC(gross_bytes)},
        {"waku_relay_network_bytes_total", "topic", ",type=\"net\",direction=\"in\"", NULL, NULL,
                TOPIC(net_bytes)},
        {"waku_relay_network_bytes_total", "topic", ",type=\"net\",direction=\"out\"", NULL, NULL,
                TOPIC(sent_bytes)},
        {"sluice_topic_messages_total", "topic", "", "accepted messages, by pubsub topic",
                "counter", TOPIC(messages)},
        {"sluice_topic_peers", "topic", "", "peers that take part in a pubsub topic", "gauge",
                TOPIC(peers)},
        {"sluice_mesh_peers", "topic", "", "peers in the mesh of a pubsub topic", "gauge",
                TOPIC(mesh_peers)},
};

static void write_topic_metric(struct metrics_text *text, const struct node_reading *reading,
        const struct topic_metric *metric)
{
    for (size_t i = 0; i < reading->topic_count; i++) {
        char labels[LABELS_MAX];
        char value[METRICS_LABEL_VALUE_MAX];
        uint64_t amount;
        memcpy(&amount, (const char *)&reading->topics[i] + metric->offset, sizeof(amount));
        snprintf(labels, sizeof(labels), "%s=\"%s\"%s", metric->label,
                metrics_label_value(value, reading->topics[i].name), metric->others);
        count(text, labels, ONCE_SEEN, amount);
    }
}

static void write_means(struct metrics_text *text, const struct node_reading *reading)
{
    metrics_text_family(text, "waku_relay_avg_msg_bytes_per_shard", "gauge",
            "mean payload of accepted messages, by pubsub topic");
    for (size_t i = 0; i < reading->topic_count; i++) {
        const struct topic_reading *topic = &reading->topics[i];
        char labels[LABELS_MAX];
        char value[METRICS_LABEL_VALUE_MAX];
        snprintf(labels, sizeof(labels), "shard=\"%s\"", metrics_label_value(value, topic->name));
        number(text, labels,
                topic->messages > 0 ? (double)topic->payload_bytes / (double)topic->messages : 0);
    }
}

static void write_shard_peers(struct metrics_text *text, const struct node_reading *reading)
{
    metrics_text_family(text, "waku_connected_peers_per_shard", "gauge",
            "connected peers that take part in a shard");
    for (size_t i = 0; i < reading->topic_count; i++) {
        const struct topic_reading *topic = &reading->topics[i];
        struct shard shard;
        char labels[32];
        if (topic->is_subscribed && shard_parse(&shard, span_of_text(topic->name)) == STATUS_OK) {
            snprintf(labels, sizeof(labels), "shard=\"%u\"", shard.index);
            count(text, labels, ONCE_SEEN, topic->peers);
        }
    }
}

static void write_topics(struct metrics_text *text, const struct node_reading *reading)
{
    for (size_t i = 0; i < sizeof(topic_metrics) / sizeof(topic_metrics[0]); i++) {
        if (topic_metrics[i].help != NULL) {
            metrics_text_family(
                    text, topic_metrics[i].name, topic_metrics[i].type, topic_metrics[i].help);
        }
        write_topic_metric(text, reading, &topic_metrics[i]);
    }
    write_means(text, reading);
    write_shard_peers(text, reading);
}

/* Those are written above. */
static bool is_part_of_histogram(size_t metric)
{
    if (metric >= METRIC_SYNC_ROUNDTRIPS_LE_1 && metric <= METRIC_SYNC_DIFFERENCES_SUM) {
        return true;
    }
    for (size_t i = 0; i < sizeof(durations) / sizeof(durations[0]); i++) {
        if (metric >= (size_t)durations[i].first &&
                metric <= (size_t)durations[i].first + DURATION_CLASSES + 1) {
            return true;
        }
    }
    return false;
}

static bool is_first_of_name(size_t metric)
{
    for (size_t i = 0; i < metric; i++) {
        if (counters[i].name != NULL && strcmp(counters[i].name, counters[metric].name) == 0) {
            return false;
        }
    }
    return true;
}

/* All rows of the name of the first one. */
static void write_rows(struct metrics_text *text, const struct node_reading *reading, size_t first)
{
    metrics_text_family(text, counters[first].name, "counter", counters[first].help);
    for (size_t i = first; i < METRIC_COUNT; i++) {
        if (counters[i].name != NULL && strcmp(counters[i].name, counters[first].name) == 0) {
            count(text, counters[i].labels, ONCE_SEEN, reading->metrics[i]);
        }
    }
}

static void write_counters(struct metrics_text *text, const struct node_reading *reading)
{
    for (size_t i = 0; i < METRIC_COUNT; i++) {
        if (counters[i].name != NULL && !is_part_of_histogram(i) && is_first_of_name(i)) {
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
        count(text, labels, ONCE_SEEN, reading->metrics[ledger_cells[i].metric]);
    }
    metrics_text_family(text, "sluice_stage_held", "gauge", "messages that a stage holds now");
    for (size_t i = 0; i < LEDGER_STAGES; i++) {
        snprintf(labels, sizeof(labels), "stage=\"%s\"", ledger_stage_name((enum ledger_stage)i));
        count(text, labels, ONCE_SEEN, reading->held[i]);
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
        number(text, labels, (double)thread->busy_ns / 1e9);
    }
    metrics_text_family(
            text, "sluice_thread_seconds_total", "counter", "time since a thread began");
    for (size_t i = 0; i < reading->thread_count; i++) {
        const struct thread_reading *thread = &reading->threads[i];
        snprintf(labels, sizeof(labels), "thread=\"%s\",role=\"%s\"", thread->name,
                node_role_name(thread->role));
        number(text, labels, (double)thread->total_ns / 1e9);
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
            count(text, labels, ONCE_SEEN, amount);
        }
    }
}

static void write_memory(struct metrics_text *text, const struct node_reading *reading)
{
    metrics_text_family(
            text, "sluice_memory_bytes", "gauge", "bytes of messages, by where they wait");
    count(text, "place=\"budget\"", ONCE_SEEN, reading->budget_used);
    count(text, "place=\"archive_ring\"", ONCE_SEEN, reading->archive.ring_bytes);
    count(text, "place=\"filter_rings\"", ONCE_SEEN, reading->filter_bytes);
    count(text, "place=\"event_ring\"", ONCE_SEEN, reading->event_bytes);
    count(text, "place=\"mesh_cache\"", ONCE_SEEN, reading->relay.cached_bytes);
    count(text, "place=\"outbound\"", ONCE_SEEN, reading->relay.outbound_bytes);
    metrics_text_family(text, "sluice_memory_limit_bytes", "gauge", "what they are bounded by");
    count(text, "place=\"budget\"", ONCE_SEEN, reading->budget_limit);
    count(text, "place=\"outbound\"", ONCE_SEEN, reading->relay.outbound_limit);
    metrics_text_family(
            text, "sluice_memory_peak_bytes", "gauge", "the most that the memory budget ever had");
    count(text, "place=\"budget\"", ONCE_SEEN, reading->budget_peak);
}

static void write_archive(struct metrics_text *text, const struct node_reading *reading)
{
    const struct archive_reading *archive = &reading->archive;
    if (!archive->is_there) {
        return;
    }
    metrics_text_family(
            text, "sluice_archive_bytes", "gauge", "memory or disk that the archive takes");
    count(text, "", ONCE_SEEN, archive->totals.size_bytes);
    metrics_text_family(text, "sluice_archive_lag", "gauge", "messages that wait to be archived");
    count(text, "", ONCE_SEEN, archive->held);
    metrics_text_family(text, "sluice_archive_spilled", "gauge", "of them, in the spill file");
    count(text, "", ONCE_SEEN, archive->spilled);
    metrics_text_family(text, "sluice_archive_oldest_timestamp_seconds", "gauge",
            "timestamp of the oldest message in the archive");
    number(text, "", (double)archive->totals.oldest_ns / 1e9);
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
        count(text, labels, ONCE_SEEN, health.parts[i].is_degraded);
    }
    metrics_text_family(text, "sluice_timestamp_offset_seconds", "gauge",
            "median of how far the last messages' timestamps are ahead of this clock");
    number(text, "", (double)reading->offset_median_ns / 1e9);
}

static void write_process(struct metrics_text *text)
{
    struct process_figures figures;
    process_figures_read(&figures);
    metrics_text_family(text, "process_cpu_seconds_total", "counter", "user and system time");
    number(text, "", figures.cpu_seconds);
    metrics_text_family(text, "process_start_time_seconds", "gauge", "when the process began");
    number(text, "", figures.start_time_seconds);
    metrics_text_family(text, "process_virtual_memory_bytes", "gauge", "virtual memory");
    count(text, "", ONCE_SEEN, figures.virtual_bytes);
    metrics_text_family(text, "process_resident_memory_bytes", "gauge", "resident memory");
    count(text, "", ONCE_SEEN, figures.resident_bytes);
    metrics_text_family(text, "process_open_fds", "gauge", "open file descriptors");
    count(text, "", ONCE_SEEN, figures.open_fds);
    metrics_text_family(text, "process_max_fds", "gauge", "file descriptors that may be open");
    count(text, "", ONCE_SEEN, figures.max_fds);
    metrics_text_family(text, "process_threads", "gauge", "threads");
    count(text, "", ONCE_SEEN, figures.threads);
}

static void write_version(struct metrics_text *text, const struct node_reading *reading)
{
    metrics_text_family(text, "waku_version", "gauge", "1, with the version as a label");
    count(text, "version=\"v" SLUICE_VERSION "\"", ALWAYS, 1);
    metrics_text_family(text, "sluice_uptime_seconds", "gauge", "time since the node started");
    number(text, "", (double)reading->uptime_ns / 1e9);
}

char *metrics_export(struct node *node, struct metrics_seen *seen, size_t *length)
{
    struct metrics_text text;
    struct node_reading *reading = memory_allocate(sizeof(*reading));
    if (reading == NULL) {
        return NULL;
    }
    node_read(node, reading);
    metrics_text_begin(&text, seen);
    write_version(&text, reading);
    write_process(&text);
    write_reference(&text, reading);
    write_histograms(&text, reading);
    write_topics(&text, reading);
    write_health(&text, node, reading);
    write_ledgers(&text, reading);
    write_counters(&text, reading);
    write_threads(&text, reading);
    write_queues(&text, reading);
    write_memory(&text, reading);
    write_archive(&text, reading);
    memory_free(reading);
    return metrics_text_end(&text, length);
}
