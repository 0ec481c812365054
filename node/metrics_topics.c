/* SPDX-License-Identifier: MIT */

/* Metrics with a series for each pubsub topic that the node has seen. */

#include <stdio.h>
#include <string.h>

#include "codec/topics.h"
#include "node/metrics_export_private.h"

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
static const struct topic_metric reference_metrics[] = {
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
};

static const struct topic_metric own_metrics[] = {
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
        char labels[METRICS_LABELS_MAX];
        char value[METRICS_LABEL_VALUE_MAX];
        uint64_t amount;
        memcpy(&amount, (const char *)&reading->topics[i] + metric->offset, sizeof(amount));
        snprintf(labels, sizeof(labels), "%s=\"%s\"%s", metric->label,
                metrics_label_value(value, reading->topics[i].name), metric->others);
        metrics_count(text, labels, ONCE_SEEN, amount);
    }
}

static void write_means(struct metrics_text *text, const struct node_reading *reading)
{
    metrics_text_family(text, "waku_relay_avg_msg_bytes_per_shard", "gauge",
            "mean payload of accepted messages, by pubsub topic");
    for (size_t i = 0; i < reading->topic_count; i++) {
        const struct topic_reading *topic = &reading->topics[i];
        char labels[METRICS_LABELS_MAX];
        char value[METRICS_LABEL_VALUE_MAX];
        snprintf(labels, sizeof(labels), "shard=\"%s\"", metrics_label_value(value, topic->name));
        metrics_number(text, labels,
                topic->messages > 0 ? (double)topic->payload_bytes / (double)topic->messages : 0);
    }
}

/* Of all clusters together: the label says no more. */
static uint64_t peers_of_shard(const struct node_reading *reading, size_t from, uint16_t index)
{
    uint64_t peers = 0;
    struct shard shard;
    for (size_t i = from; i < reading->topic_count; i++) {
        const struct topic_reading *topic = &reading->topics[i];
        if (topic->is_subscribed && shard_parse(&shard, span_of_text(topic->name)) == STATUS_OK &&
                shard.index == index) {
            peers += topic->peers;
        }
    }
    return peers;
}

static bool was_shard_written(const struct node_reading *reading, size_t end, uint16_t index)
{
    struct shard shard;
    for (size_t i = 0; i < end; i++) {
        if (reading->topics[i].is_subscribed &&
                shard_parse(&shard, span_of_text(reading->topics[i].name)) == STATUS_OK &&
                shard.index == index) {
            return true;
        }
    }
    return false;
}

static void write_shard_peers(struct metrics_text *text, const struct node_reading *reading)
{
    metrics_text_family(text, "waku_connected_peers_per_shard", "gauge",
            "connected peers that take part in a shard");
    for (size_t i = 0; i < reading->topic_count; i++) {
        struct shard shard;
        char labels[32];
        if (reading->topics[i].is_subscribed &&
                shard_parse(&shard, span_of_text(reading->topics[i].name)) == STATUS_OK &&
                !was_shard_written(reading, i, shard.index)) {
            snprintf(labels, sizeof(labels), "shard=\"%u\"", shard.index);
            metrics_count(text, labels, ONCE_SEEN, peers_of_shard(reading, i, shard.index));
        }
    }
}

static void write_table(struct metrics_text *text, const struct node_reading *reading,
        const struct topic_metric *metrics, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (metrics[i].help != NULL) {
            metrics_text_family(text, metrics[i].name, metrics[i].type, metrics[i].help);
        }
        write_topic_metric(text, reading, &metrics[i]);
    }
}

void metrics_write_reference_topics(struct metrics_text *text, const struct node_reading *reading)
{
    write_table(text, reading, reference_metrics,
            sizeof(reference_metrics) / sizeof(reference_metrics[0]));
    write_means(text, reading);
    write_shard_peers(text, reading);
}

void metrics_write_topics(struct metrics_text *text, const struct node_reading *reading)
{
    write_table(text, reading, own_metrics, sizeof(own_metrics) / sizeof(own_metrics[0]));
}
