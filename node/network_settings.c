/* SPDX-License-Identifier: MIT */
#include "node/network_settings.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "codec/topics.h"
#include "node/network_settings_private.h"
#include "node/node.h"

enum {
    RLN_CLUSTER = 1,
    SHARD_MAX = 65535,
    RATE_TEXTS_MAX = 64,
    PEERS_A_CONNECTION = 5, /* that the store keeps, as the reference does */
    FILTER_PUSH_HEAD_MAX = 2048
};

enum status settings_refuse(
        struct node_error *error, const char *name, const char *text, const char *why)
{
    snprintf(error->text, sizeof(error->text), "--%s=%.200s: %s", name, text, why);
    return STATUS_BAD_ARGUMENT;
}

enum status settings_refuse_status(
        struct node_error *error, const char *name, const char *text, enum status status)
{
    (void)settings_refuse(error, name, text, status_text(status));
    return status;
}

static enum status load_or_make_key(struct identity **out, const char *path)
{
    enum status status = identity_load(out, path);
    if (status != STATUS_NOT_FOUND) {
        return status;
    }
    status = identity_create(out, KEY_TYPE_SECP256K1);
    if (status != STATUS_OK) {
        return status;
    }
    status = identity_save(*out, path);
    if (status != STATUS_OK) {
        identity_destroy(out);
    }
    return status;
}

static enum status read_identity(
        struct network_settings *out, const struct options *options, struct node_error *error)
{
    const char *hex = options_text(options, "nodekey");
    const char *path = options_text(options, "key-file");
    enum status status;
    if (hex[0] != '\0') {
        status = identity_create_from_hex(&out->identity, span_of_text(hex));
        /* The secret itself is not for logs. */
        return status == STATUS_OK ? STATUS_OK
                                   : settings_refuse_status(error, "nodekey", "...", status);
    }
    if (path[0] != '\0') {
        errno = 0;
        status = load_or_make_key(&out->identity, path);
        if (status == STATUS_SYSTEM && errno != 0) {
            (void)settings_refuse(error, "key-file", path, strerror(errno));
            return status;
        }
        return status == STATUS_OK ? STATUS_OK
                                   : settings_refuse_status(error, "key-file", path, status);
    }
    status = identity_create(&out->identity, KEY_TYPE_SECP256K1);
    return status == STATUS_OK ? STATUS_OK : settings_refuse_status(error, "nodekey", "", status);
}

static enum status add_shard(struct network_settings *out, uint32_t shard, struct node_error *error)
{
    for (size_t i = 0; i < out->shard_count; i++) {
        if (out->shards[i] == shard) {
            return STATUS_OK;
        }
    }
    if (out->shard_count == METADATA_SHARDS_MAX) {
        snprintf(error->text, sizeof(error->text), "more than %d shards", METADATA_SHARDS_MAX);
        return STATUS_LIMIT_REACHED;
    }
    out->shards[out->shard_count++] = shard;
    return STATUS_OK;
}

static enum status add_named_shard(struct network_settings *out, const char *text,
        uint32_t network_shards, struct node_error *error)
{
    char *end;
    errno = 0;
    unsigned long shard = strtoul(text, &end, 10);
    if (end == text || *end != '\0' || errno != 0 || shard > SHARD_MAX || text[0] == '-') {
        return settings_refuse(error, "shard", text, "is no shard number");
    }
    if (network_shards > 0 && shard >= network_shards) {
        return settings_refuse(error, "shard", text, "the network has fewer shards");
    }
    return add_shard(out, (uint32_t)shard, error);
}

static enum status add_content_topic(struct network_settings *out, const char *text,
        uint32_t network_shards, struct node_error *error)
{
    struct content_topic topic;
    uint16_t shard;
    if (network_shards == 0) {
        return settings_refuse(error, "content-topic", text, "needs --num-shards-in-network");
    }
    enum status status = content_topic_parse(&topic, span_of_text(text));
    if (status == STATUS_OK) {
        status = content_topic_shard(&shard, &topic, (uint16_t)network_shards);
    }
    return status == STATUS_OK ? add_shard(out, shard, error)
                               : settings_refuse_status(error, "content-topic", text, status);
}

static enum status read_shards(
        struct network_settings *out, const struct options *options, struct node_error *error)
{
    uint32_t network_shards = (uint32_t)options_number(options, "num-shards-in-network");
    size_t named = options_list_count(options, "shard");
    size_t topics = options_list_count(options, "content-topic");
    bool is_in_all = named == 0 ||
                     (options_flag(options, "relay") && options_flag(options, "relay-all-shards"));
    enum status status = STATUS_OK;
    for (size_t i = 0; status == STATUS_OK && i < named; i++) {
        status =
                add_named_shard(out, options_list_item(options, "shard", i), network_shards, error);
    }
    for (size_t i = 0; status == STATUS_OK && i < topics; i++) {
        status = add_content_topic(
                out, options_list_item(options, "content-topic", i), network_shards, error);
    }
    for (uint32_t i = 0; status == STATUS_OK && is_in_all && i < network_shards; i++) {
        status = add_shard(out, i, error);
    }
    return status;
}

static void read_connection_limits(struct switch_options *out, const struct options *options)
{
    out->connections_max = (size_t)options_number(options, "max-connections");
    out->group_max = (size_t)options_number(options, "ip-colocation-limit");
    out->upgrades_max = (size_t)options_number(options, "max-pending-connections");
    out->streams_max = (size_t)options_number(options, "max-streams");
    out->negotiations_max = (size_t)options_number(options, "max-stream-negotiations");
    out->buffered_bytes_max = (size_t)options_number(options, "connection-buffer-limit");
    out->upgrade_timeout_ms = options_number(options, "handshake-timeout");
    out->negotiation_timeout_ms = options_number(options, "stream-negotiation-timeout");
    out->write_timeout_ms = options_number(options, "write-timeout");
    out->keep_alive_ms = options_number(options, "keep-alive-interval");
}

/* A store that is smaller than the number of connections would forget peers that are there. */
static enum status read_peers(
        struct network_settings *out, const struct options *options, struct node_error *error)
{
    size_t capacity = (size_t)options_number(options, "peer-store-capacity");
    size_t connections = out->limits.connections_max;
    if (capacity != 0 && capacity < connections) {
        snprintf(error->text, sizeof(error->text),
                "--peer-store-capacity=%zu: less than --max-connections (%zu)", capacity,
                connections);
        return STATUS_BAD_ARGUMENT;
    }
    out->peer_store_capacity = capacity != 0 ? capacity : connections * PEERS_A_CONNECTION;
    out->relay_service_ratio = options_text(options, "relay-service-ratio");
    out->peer_file = options_flag(options, "peer-persistence")
                             ? options_text(options, "peer-store-file")
                             : NULL;
    return STATUS_OK;
}

static enum status read_limits(
        struct network_settings *out, const struct options *options, struct node_error *error)
{
    const char *agent = options_text(options, "agent-string");
    out->io_threads = (size_t)options_number(options, "io-threads");
    read_connection_limits(&out->limits, options);
    out->agent = agent[0] == '\0' ? NULL : agent;
    out->cluster_id = (uint32_t)options_number(options, "cluster-id");
    out->has_relay = options_flag(options, "relay");
    out->message_bytes_max = (size_t)options_number(options, "max-msg-size");
    out->queue_bytes_max = (size_t)options_number(options, "relay-queue-limit");
    out->outbound_bytes_max = (size_t)options_number(options, "outbound-budget");
    out->message_age_max_ms = options_number(options, "relay-queue-age");
    out->peer_bytes_max = (size_t)options_number(options, "relay-peer-budget");
    out->peer_events_max = (size_t)options_number(options, "relay-peer-events");
    if (out->cluster_id == RLN_CLUSTER) {
        return settings_refuse(error, "cluster-id", "1",
                "The Waku Network needs RLN proofs, which this node cannot make or check");
    }
    return STATUS_OK;
}

static enum status read_rates(
        struct rate_limits *out, const struct options *options, struct node_error *error)
{
    static const char name[] = "rate-limit";
    const char *texts[RATE_TEXTS_MAX];
    size_t count = options_list_count(options, name);
    size_t bad;
    if (count == 0) {
        rate_limits_default(out);
        return STATUS_OK;
    }
    if (count > RATE_TEXTS_MAX) {
        return settings_refuse(error, name, "...", "is given too often");
    }
    for (size_t i = 0; i < count; i++) {
        texts[i] = options_list_item(options, name, i);
    }
    enum status status = rate_limits_parse(out, texts, count, &bad);
    return status == STATUS_OK
                   ? status
                   : settings_refuse(error, name, texts[bad],
                             "is not [PROTOCOL:]REQUESTS/PERIOD[ each], such as store:10/1s");
}

/* The address of a service peer, where the option names one. */
static enum status read_service(struct multiaddr *out, bool *is_named,
        const struct options *options, const char *name, struct node_error *error)
{
    const char *text = options_text(options, name);
    struct multiaddr_endpoint endpoint;
    *is_named = text[0] != '\0';
    if (!*is_named) {
        return STATUS_OK;
    }
    if (multiaddr_parse(out, span_of_text(text)) != STATUS_OK ||
            multiaddr_endpoint(&endpoint, out) != STATUS_OK || !endpoint.has_peer) {
        return settings_refuse(error, name, text, "is no TCP or WebSocket address with /p2p");
    }
    return STATUS_OK;
}

static enum status read_service_peers(
        struct network_settings *out, const struct options *options, struct node_error *error)
{
    enum status status = read_service(
            &out->push_service, &out->has_push_service, options, "lightpushnode", error);
    return status == STATUS_OK ? read_service(&out->filter_service, &out->has_filter_service,
                                         options, "filternode", error)
                               : status;
}

static void read_filter(struct network_settings *out, const struct options *options)
{
    size_t queue_bytes = (size_t)options_number(options, "filter-queue-limit");
    size_t push_bytes = (size_t)options_number(options, "max-msg-size") + FILTER_PUSH_HEAD_MAX +
                        RELAY_TICKET_BYTES;
    out->filter_queue_bytes_max = queue_bytes > push_bytes ? queue_bytes : push_bytes;
    out->has_filter = options_flag(options, "filter");
    out->filter_queue_age_ms = options_number(options, "filter-queue-age");
    out->filter_stuck_ms = options_number(options, "filter-stuck-timeout");
    out->filter_topics_per_request =
            (size_t)options_number(options, "filter-max-topics-per-request");
    out->filter_peers_max = (size_t)options_number(options, "filter-max-peers-to-serve");
    out->filter_connection_requests_max = (size_t)options_number(options, "filter-peer-requests");
    out->filter_requests_max = (size_t)options_number(options, "filter-requests");
}

static void read_services(struct network_settings *out, const struct options *options)
{
    out->network_shards = (uint16_t)options_number(options, "num-shards-in-network");
    out->has_lightpush = options_flag(options, "lightpush");
    out->pushes_max = (size_t)options_number(options, "lightpush-limit");
    out->connection_pushes_max = (size_t)options_number(options, "lightpush-peer-limit");
    out->has_store = options_flag(options, "store");
    out->queries_max = (size_t)options_number(options, "store-queries");
    out->connection_queries_max = (size_t)options_number(options, "store-peer-queries");
    out->answer_bytes_max = (size_t)options_number(options, "store-answer-limit");
    out->answers_bytes_max = (size_t)options_number(options, "store-answers-limit");
    out->query_timeout_ms = options_number(options, "store-query-timeout");
    out->query_range_ms = options_number(options, "store-time-range");
}

static enum status read_all_but_identity(
        struct network_settings *out, const struct options *options, struct node_error *error)
{
    memset(out, 0, sizeof(*out));
    out->only_external = options_flag(options, "ext-multiaddr-only");
    read_services(out, options);
    read_filter(out, options);
    enum status status = read_limits(out, options, error);
    if (status == STATUS_OK) {
        status = read_rates(&out->rates, options, error);
    }
    if (status == STATUS_OK) {
        status = read_service_peers(out, options, error);
    }
    if (status == STATUS_OK) {
        status = read_peers(out, options, error);
    }
    if (status == STATUS_OK) {
        status = network_settings_read_addresses(out, options, error);
    }
    if (status == STATUS_OK) {
        status = read_shards(out, options, error);
    }
    return status;
}

enum status network_settings_read(
        struct network_settings *out, const struct options *options, struct node_error *error)
{
    enum status status = read_all_but_identity(out, options, error);
    return status == STATUS_OK ? read_identity(out, options, error) : status;
}

enum status network_settings_check(const struct options *options, struct node_error *error)
{
    struct network_settings *settings = memory_allocate(sizeof(*settings));
    enum status status = STATUS_NO_MEMORY;
    if (settings != NULL) {
        status = read_all_but_identity(settings, options, error);
    }
    if (status == STATUS_OK && options_text(options, "nodekey")[0] != '\0') {
        status = read_identity(settings, options, error);
        identity_destroy(&settings->identity);
    }
    memory_free(settings);
    return status;
}
