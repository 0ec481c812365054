/* SPDX-License-Identifier: MIT */

/* What the network serves and asks, by protocol, and what the peer manager learns by it. */

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "net/peer_manager/peer_file.h"
#include "net/protocols/echo.h"
#include "net/protocols/identify.h"
#include "net/protocols/lightpush.h"
#include "net/protocols/metadata.h"
#include "net/protocols/store.h"
#include "net/protocols/store_resume.h"
#include "net/protocols/store_sync.h"
#include "node/network_private.h"
#include "node/node.h"
#include "node/push_client.h"
#include "node/store_client.h"
#include "node/subscribe_client.h"

/* An address that the peer announces, if it can be dialled from here. */
static void add_announced(
        struct peer_facts *facts, struct span bytes, const struct connection *connection)
{
    struct multiaddr_endpoint endpoint;
    struct multiaddr *address = &facts->addresses[facts->address_count];
    if (facts->address_count < PEER_FACTS_ADDRESSES_MAX &&
            multiaddr_from_bytes(address, bytes) == STATUS_OK &&
            multiaddr_endpoint(&endpoint, address) == STATUS_OK && endpoint.port != 0 &&
            multiaddr_set_peer(address, connection_peer(connection)) == STATUS_OK) {
        facts->address_count++;
    }
}

static void tell_peer_manager(struct network *network, const struct connection *connection,
        const struct identify_info *info)
{
    struct peer_facts *facts =
            peer_facts_create(info->agent, info->protocols, info->protocol_count);
    if (facts == NULL) {
        return;
    }
    bool is_relay = network->relay != NULL && identify_info_has_protocol(info, RELAY_PROTOCOL_ID);
    facts->has_protocols = info->has_protocols;
    for (size_t i = 0; i < info->address_count; i++) {
        add_announced(facts, info->addresses[i], connection);
    }
    peer_manager_identified(network->peer_manager, connection_id(connection),
            is_relay ? PEER_RELAY : PEER_SERVICE, facts);
}

static void on_identified(
        void *context, struct connection *connection, const struct identify_info *info)
{
    struct network *network = context;
    tell_peer_manager(network, connection, info);
    if (identify_info_has_protocol(info, METADATA_PROTOCOL_ID)) {
        metadata_ask(network->metadata, connection);
    }
    push_client_note_peer(network->push_client, connection, info);
    subscribe_client_note_peer(network->subscribe_client, connection, info);
    if (network->store_sync != NULL) {
        store_sync_identified(network->store_sync, connection, info);
    }
    if (network->store_resume != NULL) {
        store_resume_identified(network->store_resume, connection, info);
    }
}

static enum status make_identify(struct network *network, const struct network_settings *settings)
{
    /* Listened on and announced under the same name: identify knows these by itself. */
    size_t own = settings->only_external || settings->has_external_host
                         ? 0
                         : network->address_count - settings->external_count;
    struct identify_options options = {
            .net_switch = network->net_switch,
            .agent = settings->agent,
            .extra_addresses = network->addresses + own,
            .extra_address_count = network->address_count - own,
            .only_extra_addresses = own == 0,
            .identified = on_identified,
            .context = network,
    };
    return identify_create(&network->identify, &options);
}

static enum status make_relay(struct network *network, const struct network_settings *settings,
        const struct network_options *options, struct node_error *error)
{
    struct io_loop *loops[NETWORK_IO_THREADS_MAX];
    network_list_loops(network, loops);
    struct relay_options relay_options = {
            .net_switch = network->net_switch,
            .loops = loops,
            .loop_count = network->loop_count,
            .intake = options->intake,
            .budget = options->budget,
            .max_message_bytes = settings->message_bytes_max,
            .queue_bytes_max = settings->queue_bytes_max,
            .outbound = &network->outbound,
            .message_age_max_ms = settings->message_age_max_ms,
            .peer_bytes_max = settings->peer_bytes_max,
            .peer_events_max = settings->peer_events_max,
            .graylist_threshold = options->graylist_threshold,
    };
    enum status status = relay_create(&network->relay, &relay_options);
    return node_explain(error, status,
            status == STATUS_BAD_ARGUMENT ? "--memory-budget is too small for --max-msg-size"
                                          : "relay");
}

static enum status make_filter(struct network *network, const struct network_settings *settings,
        const struct network_options *options)
{
    struct io_loop *loops[NETWORK_IO_THREADS_MAX];
    network_list_loops(network, loops);
    struct filter_options filter_options = {.net_switch = network->net_switch,
            .loops = loops,
            .loop_count = network->loop_count,
            .intake = options->intake,
            .filter_link = options->filter_link,
            .outbound = &network->outbound,
            .queue_bytes_max = settings->filter_queue_bytes_max,
            .queue_age_max_ms = settings->filter_queue_age_ms,
            .stuck_timeout_ms = settings->filter_stuck_ms,
            .topics_per_request_max = settings->filter_topics_per_request,
            .peers_max = settings->filter_peers_max,
            .connection_requests_max = settings->filter_connection_requests_max,
            .requests_max = settings->filter_requests_max,
            .rate = settings->rates.of[RATE_FILTER],
            .cluster_id = (uint16_t)settings->cluster_id,
            .network_shards = settings->network_shards,
            .client = subscribe_client_filter(network->subscribe_client)};
    return settings->has_filter ? filter_create(&network->filter, &filter_options) : STATUS_OK;
}

static enum status make_lightpush(struct network *network, const struct network_settings *settings,
        const struct network_options *options)
{
    struct lightpush_options lightpush_options = {.net_switch = network->net_switch,
            .intake = options->intake,
            .budget = options->budget,
            .message_bytes_max = settings->message_bytes_max,
            .connection_pushes_max = settings->connection_pushes_max,
            .pushes_max = settings->pushes_max,
            .rate = settings->rates.of[RATE_LIGHTPUSH],
            .cluster_id = (uint16_t)settings->cluster_id,
            .network_shards = settings->network_shards};
    return settings->has_lightpush ? lightpush_create(&network->lightpush, &lightpush_options)
                                   : STATUS_OK;
}

static enum status make_push_client(
        struct network *network, const struct network_settings *settings)
{
    struct push_client_options options = {.net_switch = network->net_switch,
            .service = settings->has_push_service ? &settings->push_service : NULL,
            .pushes_max = settings->pushes_max,
            .cluster_id = (uint16_t)settings->cluster_id,
            .network_shards = settings->network_shards};
    return push_client_create(&network->push_client, &options);
}

static enum status make_subscribe_client(
        struct network *network, const struct network_settings *settings)
{
    struct subscribe_client_options options = {.net_switch = network->net_switch,
            .service = settings->has_filter_service ? &settings->filter_service : NULL,
            .message_bytes_max = settings->message_bytes_max,
            .cluster_id = (uint16_t)settings->cluster_id,
            .network_shards = settings->network_shards};
    return subscribe_client_create(&network->subscribe_client, &options);
}

static enum status make_store(struct network *network, const struct network_settings *settings,
        const struct network_options *options, struct node_error *error)
{
    struct store_options store_options = {.net_switch = network->net_switch,
            .jobs = options->query_jobs,
            .connection_queries_max = settings->connection_queries_max,
            .queries_max = settings->queries_max,
            .answer_bytes_max = settings->answer_bytes_max,
            .answers_bytes_max = settings->answers_bytes_max,
            .timeout_ms = settings->query_timeout_ms,
            .rate = settings->rates.of[RATE_STORE],
            .time_range_max_ns = settings->query_range_ms * NANOSECONDS_PER_MILLISECOND};
    if (!settings->has_store) {
        return STATUS_OK;
    }
    if (options->query_jobs == NULL) {
        return node_explain(error, STATUS_BAD_ARGUMENT, "--store with --archive=none");
    }
    return store_create(&network->store, &store_options);
}

/* Asked for by an operator who has switched the store off: as in the reference, the node runs without. */
static bool has_archive_for(const char *option, const struct network_options *options)
{
    if (options->query_jobs == NULL) {
        log_write(LOG_WARN, "config", "%s does nothing: it needs an archive (store or archive)",
                option);
    }
    return options->query_jobs != NULL;
}

static enum status make_store_sync(struct network *network, const struct network_settings *settings,
        const struct network_options *options)
{
    struct io_loop *loops[NETWORK_IO_THREADS_MAX];
    struct store_sync_options sync_options = settings->stores.sync;
    if (!settings->stores.has_sync || !has_archive_for("store-sync", options)) {
        return STATUS_OK;
    }
    network_list_loops(network, loops);
    sync_options.net_switch = network->net_switch;
    sync_options.loops = loops;
    sync_options.loop_count = network->loop_count;
    sync_options.sync_jobs = options->sync_jobs;
    sync_options.query_jobs = options->query_jobs;
    sync_options.intake = options->intake;
    sync_options.budget = options->budget;
    sync_options.has_room = options->has_room;
    sync_options.room_context = options->room_context;
    return store_sync_create(&network->store_sync, &sync_options);
}

static enum status make_store_resume(struct network *network,
        const struct network_settings *settings, const struct network_options *options)
{
    const struct store_settings *stores = &settings->stores;
    int64_t now_ns = clock_wall_ns();
    int64_t earliest_ns = now_ns - stores->resume_range_ns;
    /* A message of the future says nothing of when the node was up. */
    int64_t since_ns =
            options->newest_ns > now_ns ? 0 : options->newest_ns - stores->resume_overlap_ns;
    struct store_resume_options resume_options = {.net_switch = network->net_switch,
            .intake = options->intake,
            .budget = options->budget,
            .has_room = options->has_room,
            .room_context = options->room_context,
            .message_bytes_max = settings->message_bytes_max,
            .messages_max = stores->resume_messages_max,
            .from_ns = since_ns > earliest_ns ? since_ns : earliest_ns,
            .has_peer = stores->has_node,
            .peer = stores->node_peer};
    if (!stores->has_resume || !has_archive_for("store-resume", options)) {
        return STATUS_OK;
    }
    return store_resume_create(&network->store_resume, &resume_options);
}

static void on_metadata(
        void *context, struct connection *connection, const struct metadata_message *said)
{
    struct network *network = context;
    size_t bytes = said->shard_count * sizeof(said->shards[0]);
    struct peer_metadata *metadata = memory_allocate(sizeof(*metadata) + bytes);
    if (metadata == NULL) {
        return;
    }
    metadata->has_cluster = said->has_cluster;
    metadata->cluster_id = said->cluster_id;
    metadata->shard_count = said->shard_count;
    memcpy(metadata->shards, said->shards, bytes);
    peer_manager_set_metadata(network->peer_manager, connection_id(connection), metadata);
}

/* Without relay all peers are clients of services. */
static enum status make_peer_manager(
        struct network *network, const struct network_settings *settings, struct node_error *error)
{
    struct peer_manager_options options = {.net_switch = network->net_switch,
            .relay_service_ratio = settings->has_relay ? settings->relay_service_ratio : "0:1",
            .connections_max = settings->limits.connections_max,
            .store_capacity = settings->peer_store_capacity,
            .file = settings->peer_file};
    if (settings->peer_file != NULL && peer_file_check(settings->peer_file) != STATUS_OK) {
        snprintf(error->text, sizeof(error->text), "--peer-store-file=%.300s: %s",
                settings->peer_file, strerror(errno));
        return STATUS_SYSTEM;
    }
    memcpy(network->static_nodes, settings->static_nodes, sizeof(network->static_nodes));
    network->static_node_count = settings->static_node_count;
    enum status status = peer_manager_create(&network->peer_manager, &options);
    return node_explain(error, status,
            status == STATUS_BAD_ARGUMENT ? "--relay-service-ratio" : "peer manager");
}

enum status network_make_protocols(struct network *network, const struct network_settings *settings,
        const struct network_options *options, struct node_error *error)
{
    struct metadata_options metadata = {.net_switch = network->net_switch,
            .cluster_id = settings->cluster_id,
            .shards = settings->shards,
            .shard_count = settings->shard_count,
            .told = on_metadata,
            .context = network};
    enum status status = make_peer_manager(network, settings, error);
    if (status == STATUS_OK) {
        status = ping_register(network->net_switch);
    }
    if (status == STATUS_OK) {
        status = make_identify(network, settings);
    }
    if (status == STATUS_OK) {
        status = metadata_create(&network->metadata, &metadata);
    }
    if (status == STATUS_OK) { /* in the words of the reference, that scripts look for */
        log_write(LOG_INFO, "metadata", "Created WakuMetadata protocol: cluster %u, %zu shards",
                metadata.cluster_id, metadata.shard_count);
    }
    if (status == STATUS_OK && settings->has_relay) {
        status = make_relay(network, settings, options, error);
    }
    if (status == STATUS_OK) {
        status = make_lightpush(network, settings, options);
    }
    if (status == STATUS_OK) {
        status = make_push_client(network, settings);
    }
    if (status == STATUS_OK) {
        status = make_subscribe_client(network, settings);
    }
    if (status == STATUS_OK) {
        status = make_filter(network, settings, options);
    }
    if (status == STATUS_OK) {
        status = store_client_create(&network->store_client, network->net_switch);
    }
    if (status == STATUS_OK) {
        status = make_store(network, settings, options, error);
    }
    if (status == STATUS_OK) {
        status = make_store_sync(network, settings, options);
    }
    if (status == STATUS_OK) {
        status = make_store_resume(network, settings, options);
    }
    return node_explain(error, status, "protocols");
}

bool network_has_pending(const struct network *network)
{
    return (network->lightpush != NULL && lightpush_pending(network->lightpush) > 0) ||
           (network->store != NULL && store_pending(network->store) > 0) ||
           (network->store_sync != NULL && store_sync_pending(network->store_sync) > 0) ||
           push_client_pending(network->push_client) > 0 ||
           subscribe_client_pending(network->subscribe_client) > 0 ||
           store_client_pending(network->store_client) > 0 ||
           /* acquire: pairs with the release of the dial's end */
           atomic_load_explicit(&network->dials, memory_order_acquire) > 0 ||
           (network->filter != NULL && filter_pending(network->filter) > 0);
}
