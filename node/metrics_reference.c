/* SPDX-License-Identifier: MIT */

/* The reference's metrics: rows of node/reference_metrics.def, its histograms, and its two namings. */

#include <stdio.h>
#include <string.h>

#include "base/duration.h"
#include "base/version.h"
#include "node/metrics_export_private.h"

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

static void write_rows(struct metrics_text *text, const struct node_reading *r)
{
    const char *last = NULL;
#define M(id) (r->metrics[id])
#define REFERENCE(name, labels, type, presence, value, help)                                       \
    family_of_row(text, name, type, help, &last);                                                  \
    metrics_count(text, labels, presence, (uint64_t)(value));
#define ABSENT(name, type)                                                                         \
    family_of_row(text, name, type, "always 0: there is nothing here to be counted", &last);       \
    metrics_count(text, "", ALWAYS, 0);
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
    metrics_text_family(text, name, "histogram", counter_names[first].help);
    for (size_t i = 0; i < classes; i++) {
        part(text, "_bucket", counter_names[(size_t)first + i].labels,
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

bool metrics_is_part_of_histogram(size_t metric)
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

static void write_version(struct metrics_text *text)
{
    metrics_text_family(text, "waku_version", "gauge",
            "1, with the release of the reference that is followed and our version");
    metrics_count(text, "version=\"" SLUICE_API_VERSION "\"", ALWAYS, 1);
}

static void write_service_peers(struct metrics_text *text, const struct service_peers *services)
{
    metrics_text_family(text, "waku_service_peers", "gauge",
            "1 for each peer that an option names for a service, by protocol and address");
    for (size_t i = 0; i < services->count; i++) {
        char labels[METRICS_LABELS_MAX];
        char value[METRICS_LABEL_VALUE_MAX];
        snprintf(labels, sizeof(labels), "protocol=\"%s\",peerId=\"%s\"",
                services->peers[i].protocol,
                metrics_label_value(value, services->peers[i].address));
        metrics_count(text, labels, ALWAYS, 1);
    }
}

static void write_connected(struct metrics_text *text, const struct node_reading *reading)
{
    static const char *const directions[] = {"In", "Out"};
    metrics_text_family(text, "waku_connected_peers", "gauge",
            "connected peers that speak a protocol of the network, by who dialled");
    for (size_t i = 0; i < PEER_PROTOCOLS_COUNTED; i++) {
        for (size_t k = 0; k < 2; k++) {
            char labels[METRICS_LABELS_MAX];
            snprintf(labels, sizeof(labels), "direction=\"%s\",protocol=\"%s\"", directions[k],
                    peer_protocols_counted[i]);
            metrics_count(text, labels, ONCE_SEEN, reading->protocol_peers[i][k]);
        }
    }
}

/* Some had no prefix at all before; one changed its words, too. */
static bool to_new_name(char out[METRICS_NAME_MAX], const char *name)
{
    static const char *const bare[] = {"reconciliation_", "total_", "postgres_"};
    static const char prefix[] = "logos_delivery_";
    if (strncmp(name, "waku_", 5) == 0) {
        snprintf(out, METRICS_NAME_MAX, "%s%s", prefix, name + 5);
        return true;
    }
    if (strcmp(name, "rendezvousPeerFoundTotal_total") == 0) {
        snprintf(out, METRICS_NAME_MAX, "%srendezvous_peer_found_total", prefix);
        return true;
    }
    for (size_t i = 0; i < sizeof(bare) / sizeof(bare[0]); i++) {
        if (strncmp(name, bare[i], strlen(bare[i])) == 0) {
            snprintf(out, METRICS_NAME_MAX, "%s%s", prefix, name);
            return true;
        }
    }
    return false;
}

/* What has no new name keeps its old one. */
static bool to_newest_name(char out[METRICS_NAME_MAX], const char *name)
{
    if (!to_new_name(out, name)) {
        snprintf(out, METRICS_NAME_MAX, "%s", name);
    }
    return true;
}

static void write_all(struct metrics_text *text, const struct node_reading *reading,
        const struct service_peers *services)
{
    write_version(text);
    write_rows(text, reading);
    write_service_peers(text, services);
    write_connected(text, reading);
    write_histograms(text, reading);
    metrics_write_reference_topics(text, reading);
}

void metrics_write_reference(struct metrics_text *text, const struct node_reading *reading,
        const struct metrics_export_options *options)
{
    text->rename = options->names == METRICS_NAMES_LOGOS_DELIVERY ? to_newest_name : NULL;
    write_all(text, reading, options->service_peers);
    if (options->names == METRICS_NAMES_BOTH) {
        text->rename = to_new_name;
        write_all(text, reading, options->service_peers);
    }
    text->rename = NULL;
}
