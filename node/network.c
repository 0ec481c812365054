/* SPDX-License-Identifier: MIT */
#include "node/network.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "codec/topics.h"
#include "net/protocols/echo.h"
#include "net/protocols/identify.h"
#include "net/protocols/lightpush.h"
#include "net/protocols/metadata.h"
#include "net/protocols/relay_queue.h"
#include "net/protocols/store.h"
#include "net/protocols/store_resume.h"
#include "net/protocols/store_sync.h"
#include "net/transport/tls.h"
#include "node/io_role.h"
#include "node/network_settings.h"
#include "node/node.h"
#include "node/push_client.h"
#include "node/subscribe_client.h"

enum {
    IO_THREADS_MAX = 64,
    TOPICS_MAX = METADATA_SHARDS_MAX + 256
};

struct network {
    struct identity *identity;
    struct tls_context *tls;
    char *certificate_file; /* these two with tls */
    char *certificate_key_file;
    struct io_role roles[IO_THREADS_MAX];
    size_t loop_count;
    struct net_switch *net_switch;
    struct identify *identify;
    struct metadata *metadata;
    struct relay_budget outbound; /* relay's and filter's queues */
    struct relay *relay;
    struct filter *filter;       /* NULL: not served */
    struct lightpush *lightpush; /* NULL: not served; likewise */
    struct store *store;
    struct store_sync *store_sync;
    struct store_resume *store_resume;
    struct push_client *push_client;
    struct subscribe_client *subscribe_client;
    struct peer_manager *peer_manager;
    struct multiaddr static_nodes[NETWORK_STATIC_NODES_MAX];
    size_t static_node_count;
    struct multiaddr addresses[NETWORK_EXTERNAL_MAX + NETWORK_LISTENERS_MAX];
    size_t address_count;
    char *topics[TOPICS_MAX];
    size_t topic_count;
};

static enum status explain(struct node_error *error, enum status status, const char *what)
{
    if (status != STATUS_OK && error->text[0] == '\0') {
        snprintf(error->text, sizeof(error->text), "%s: %s", what, status_text(status));
    }
    return status;
}

static enum status make_loops(struct network *network, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        enum status status = io_loop_create(&network->roles[i].loop, (unsigned)i);
        if (status != STATUS_OK) {
            return status;
        }
        network->loop_count = i + 1;
    }
    return STATUS_OK;
}

static void list_loops(const struct network *network, struct io_loop *out[IO_THREADS_MAX])
{
    for (size_t i = 0; i < network->loop_count; i++) {
        out[i] = network->roles[i].loop;
    }
}

static enum status make_tls(struct network *network, const struct network_settings *settings)
{
    if (settings->certificate_file == NULL) {
        return STATUS_OK;
    }
    network->certificate_file = strdup(settings->certificate_file);
    network->certificate_key_file = strdup(settings->certificate_key_file);
    if (network->certificate_file == NULL || network->certificate_key_file == NULL) {
        return STATUS_NO_MEMORY;
    }
    return tls_context_create_server(
            &network->tls, network->certificate_file, network->certificate_key_file);
}

static enum status make_switch(
        struct network *network, const struct network_settings *settings, struct node_error *error)
{
    struct io_loop *loops[IO_THREADS_MAX];
    enum status status = make_loops(network, settings->io_threads);
    if (status == STATUS_OK) {
        status = explain(error, make_tls(network, settings), "websocket-secure");
    }
    if (status != STATUS_OK) {
        return explain(error, status, "io loop");
    }
    list_loops(network, loops);
    struct switch_options options = settings->limits;
    options.identity = network->identity;
    options.loops = loops;
    options.loop_count = network->loop_count;
    options.tls_server = network->tls;
    return explain(error, switch_create(&network->net_switch, &options), "switch");
}

static enum status listen_on_all(
        struct network *network, const struct network_settings *settings, struct node_error *error)
{
    for (size_t i = 0; i < settings->listen_count; i++) {
        char text[MULTIADDR_TEXT_SIZE];
        enum status status = switch_listen(network->net_switch, &settings->listen[i]);
        if (status != STATUS_OK) {
            return explain(error, status, multiaddr_print(text, &settings->listen[i]));
        }
    }
    return STATUS_OK;
}

/* The address listened on, under the name that others know its host by. */
static enum status announce_listener(struct network *network, const struct multiaddr *address,
        const struct network_settings *settings)
{
    struct multiaddr_endpoint endpoint;
    struct multiaddr *out = &network->addresses[network->address_count];
    *out = *address;
    if (settings->has_external_host) {
        enum status status = multiaddr_endpoint(&endpoint, address);
        if (status != STATUS_OK) {
            return status;
        }
        struct multiaddr_endpoint external = settings->external_host;
        external.port = endpoint.port;
        external.is_websocket = endpoint.is_websocket;
        external.is_secure = endpoint.is_secure;
        status = multiaddr_from_endpoint(out, &external);
        if (status != STATUS_OK) {
            return status;
        }
    }
    network->address_count++;
    return STATUS_OK;
}

static enum status collect_addresses(
        struct network *network, const struct network_settings *settings)
{
    enum status status = STATUS_OK;
    const struct multiaddr *address;
    for (size_t i = 0; status == STATUS_OK && !settings->only_external &&
                       (address = switch_listen_address(network->net_switch, i)) != NULL;
            i++) {
        status = announce_listener(network, address, settings);
    }
    for (size_t i = 0; i < settings->external_count; i++) {
        network->addresses[network->address_count++] = settings->external[i];
    }
    return status;
}

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
    struct io_loop *loops[IO_THREADS_MAX];
    list_loops(network, loops);
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
    };
    enum status status = relay_create(&network->relay, &relay_options);
    return explain(error, status,
            status == STATUS_BAD_ARGUMENT ? "--memory-budget is too small for --max-msg-size"
                                          : "relay");
}

static enum status make_filter(struct network *network, const struct network_settings *settings,
        const struct network_options *options)
{
    struct io_loop *loops[IO_THREADS_MAX];
    list_loops(network, loops);
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
            .network_shards = settings->network_shards};
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
        return explain(error, STATUS_BAD_ARGUMENT, "--store with --archive=none");
    }
    return store_create(&network->store, &store_options);
}

static enum status make_store_sync(struct network *network, const struct network_settings *settings,
        const struct network_options *options, struct node_error *error)
{
    struct io_loop *loops[IO_THREADS_MAX];
    struct store_sync_options sync_options = settings->stores.sync;
    if (!settings->stores.has_sync) {
        return STATUS_OK;
    }
    if (options->query_jobs == NULL) {
        return explain(error, STATUS_BAD_ARGUMENT, "--store-sync with --archive=none");
    }
    list_loops(network, loops);
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
        const struct network_settings *settings, const struct network_options *options,
        struct node_error *error)
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
            .from_ns = since_ns > earliest_ns ? since_ns : earliest_ns,
            .has_peer = stores->has_node,
            .peer = stores->node_peer};
    if (!stores->has_resume) {
        return STATUS_OK;
    }
    if (options->query_jobs == NULL) {
        return explain(error, STATUS_BAD_ARGUMENT, "--store-resume with --archive=none");
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
    memcpy(network->static_nodes, settings->static_nodes, sizeof(network->static_nodes));
    network->static_node_count = settings->static_node_count;
    enum status status = peer_manager_create(&network->peer_manager, &options);
    return explain(error, status,
            status == STATUS_BAD_ARGUMENT ? "--relay-service-ratio is not RELAY:SERVICE"
                                          : "peer manager");
}

static enum status make_protocols(struct network *network, const struct network_settings *settings,
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
    if (status == STATUS_OK && settings->has_relay) {
        status = make_relay(network, settings, options, error);
    }
    if (status == STATUS_OK) {
        status = make_filter(network, settings, options);
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
        status = make_store(network, settings, options, error);
    }
    if (status == STATUS_OK) {
        status = make_store_sync(network, settings, options, error);
    }
    if (status == STATUS_OK) {
        status = make_store_resume(network, settings, options, error);
    }
    return explain(error, status, "protocols");
}

static enum status add_topic(struct network *network, const char *name)
{
    if (network->topic_count == TOPICS_MAX) {
        return STATUS_LIMIT_REACHED;
    }
    size_t size = strlen(name) + 1;
    char *copy = memory_allocate(size);
    if (copy == NULL) {
        return STATUS_NO_MEMORY;
    }
    memcpy(copy, name, size);
    network->topics[network->topic_count++] = copy;
    return STATUS_OK;
}

static enum status list_topics(struct network *network, const struct network_settings *settings,
        const struct options *options)
{
    enum status status = STATUS_OK;
    for (size_t i = 0; status == STATUS_OK && i < settings->shard_count; i++) {
        char name[SHARD_TOPIC_MAX_BYTES];
        struct shard shard = {
                .cluster = (uint16_t)settings->cluster_id, .index = (uint16_t)settings->shards[i]};
        shard_format(name, shard);
        status = add_topic(network, name);
    }
    size_t named = options_list_count(options, "pubsub-topic");
    for (size_t i = 0; status == STATUS_OK && i < named; i++) {
        status = add_topic(network, options_list_item(options, "pubsub-topic", i));
    }
    return status;
}

static enum status assemble(struct network *network, const struct network_settings *settings,
        const struct network_options *options, struct node_error *error)
{
    enum status status = make_switch(network, settings, error);
    if (status == STATUS_OK) {
        status = listen_on_all(network, settings, error);
    }
    if (status == STATUS_OK) {
        status = collect_addresses(network, settings);
    }
    if (status == STATUS_OK) {
        status = make_protocols(network, settings, options, error);
    }
    if (status == STATUS_OK) {
        status = list_topics(network, settings, options->options);
    }
    return explain(error, status, "network");
}

enum status network_create(
        struct network **out, const struct network_options *options, struct node_error *error)
{
    struct network *network = memory_allocate_zeroed(sizeof(*network));
    struct network_settings *settings = memory_allocate(sizeof(*settings));
    enum status status = STATUS_NO_MEMORY;
    if (network != NULL && settings != NULL) {
        status = network_settings_read(settings, options->options, error);
    }
    if (status != STATUS_OK) {
        memory_free(settings);
        memory_free(network);
        return explain(error, status, "network");
    }
    network->identity = settings->identity;
    network->outbound.bytes_max = settings->outbound_bytes_max;
    atomic_init(&network->outbound.bytes, 0);
    status = assemble(network, settings, options, error);
    memory_free(settings);
    if (status != STATUS_OK) {
        network_destroy(&network);
        return status;
    }
    *out = network;
    return STATUS_OK;
}

/* A network whose loops nobody has run: they are run here until the switch is through. */
static void stop_unstarted(struct network *network)
{
    if (network->net_switch == NULL || switch_is_stopped(network->net_switch)) {
        return;
    }
    switch_stop(network->net_switch);
    while (!switch_is_stopped(network->net_switch)) {
        for (size_t i = 0; i < network->loop_count; i++) {
            io_loop_turn(network->roles[i].loop);
        }
    }
}

void network_destroy(struct network **network_pointer)
{
    struct network *network = *network_pointer;
    if (network == NULL) {
        return;
    }
    stop_unstarted(network);
    peer_manager_destroy(&network->peer_manager);
    relay_destroy(&network->relay);
    store_sync_destroy(&network->store_sync);
    store_resume_destroy(&network->store_resume);
    switch_destroy(&network->net_switch);
    filter_destroy(&network->filter);
    lightpush_destroy(&network->lightpush);
    store_destroy(&network->store);
    push_client_destroy(&network->push_client);
    subscribe_client_destroy(&network->subscribe_client);
    metadata_destroy(&network->metadata);
    identify_destroy(&network->identify);
    for (size_t i = 0; i < network->loop_count; i++) {
        io_loop_destroy(&network->roles[i].loop);
    }
    for (size_t i = 0; i < network->topic_count; i++) {
        memory_free(network->topics[i]);
    }
    tls_context_destroy(&network->tls);
    free(network->certificate_file);
    free(network->certificate_key_file);
    identity_destroy(&network->identity);
    memory_free(network);
    *network_pointer = NULL;
}

size_t network_loop_count(const struct network *network)
{
    return network->loop_count;
}

struct worker_role network_io_role(struct network *network, size_t loop, const char *name)
{
    return io_role_of(&network->roles[loop], name);
}

static void add_peer(
        struct network *network, const struct multiaddr *address, enum peer_origin origin)
{
    enum status status = peer_manager_add(network->peer_manager, address, origin);
    if (status != STATUS_OK) {
        log_write(LOG_WARN, "peers", "a peer named is not dialled: %s", status_text(status));
    }
}

void network_start(struct network *network)
{
    const struct multiaddr *push_service = push_client_service(network->push_client);
    peer_manager_start(network->peer_manager);
    for (size_t i = 0; i < network->static_node_count; i++) {
        add_peer(network, &network->static_nodes[i], PEER_ORIGIN_STATIC);
    }
    if (push_service != NULL) { /* no slot rule throws it out */
        add_peer(network, push_service, PEER_ORIGIN_REQUESTED);
    }
}

/* Requests that other threads still work on come back to their io thread, which has to be there. */
static bool has_pending(const struct network *network)
{
    return (network->lightpush != NULL && lightpush_pending(network->lightpush) > 0) ||
           (network->store != NULL && store_pending(network->store) > 0) ||
           (network->store_sync != NULL && store_sync_pending(network->store_sync) > 0) ||
           push_client_pending(network->push_client) > 0 ||
           subscribe_client_pending(network->subscribe_client) > 0 ||
           (network->filter != NULL && filter_pending(network->filter) > 0);
}

void network_close(struct network *network)
{
    struct timespec slice = {.tv_nsec = NANOSECONDS_PER_MILLISECOND};
    peer_manager_stop(network->peer_manager);
    switch_stop(network->net_switch);
    while (!switch_is_stopped(network->net_switch) || has_pending(network)) {
        nanosleep(&slice, NULL);
    }
}

enum status network_reload_certificate(struct network *network)
{
    return network->tls == NULL ? STATUS_OK
                                : tls_context_reload(network->tls, network->certificate_file,
                                          network->certificate_key_file);
}

struct relay_port network_relay_port(const struct network *network)
{
    return network->relay == NULL ? (struct relay_port){0} : relay_port(network->relay);
}

void network_topic_changed(struct network *network, const struct topic *topic)
{
    if (network->relay != NULL) {
        relay_topic_changed(network->relay, topic);
    }
}

void network_take_part(struct network *network, struct span topic, bool takes_part)
{
    struct shard shard;
    if (shard_parse(&shard, topic) == STATUS_OK &&
            shard.cluster == metadata_cluster(network->metadata)) {
        metadata_set_shard(network->metadata, shard.index, takes_part);
    }
}

const char *network_topic_at(const struct network *network, size_t i)
{
    return i < network->topic_count ? network->topics[i] : NULL;
}

const struct identity *network_identity(const struct network *network)
{
    return network->identity;
}

struct net_switch *network_switch(const struct network *network)
{
    return network->net_switch;
}

struct push_client *network_push_client(const struct network *network)
{
    return network->push_client;
}

struct peer_manager *network_peer_manager(const struct network *network)
{
    return network->peer_manager;
}

bool network_has_store(const struct network *network)
{
    return network->store != NULL || network->store_sync != NULL;
}

bool network_has_sync(const struct network *network)
{
    return network->store_sync != NULL;
}

struct store_sync *network_store_sync(const struct network *network)
{
    return network->store_sync;
}

decode_verdict *network_lightpush_verdict(const struct network *network, void **context)
{
    *context = network->lightpush;
    return network->lightpush != NULL ? lightpush_settle : NULL;
}

struct subscribe_client *network_subscribe_client(const struct network *network)
{
    return network->subscribe_client;
}

struct filter *network_filter(const struct network *network)
{
    return network->filter;
}

struct relay *network_relay(const struct network *network)
{
    return network->relay;
}

bool network_address_at(const struct network *network, size_t i, struct multiaddr *out)
{
    if (i >= network->address_count) {
        return false;
    }
    *out = network->addresses[i];
    return multiaddr_set_peer(out, identity_peer_id(network->identity)) == STATUS_OK;
}
