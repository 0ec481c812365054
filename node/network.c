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

static enum status add_topic(struct network *network, const char *name)
{
    if (network->topic_count == NETWORK_TOPICS_MAX) {
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
    enum status status = network_make_switch(network, settings, error);
    if (status == STATUS_OK) {
        status = network_listen(network, settings, error);
    }
    if (status == STATUS_OK) {
        status = network_collect_addresses(network, settings);
    }
    if (status == STATUS_OK) {
        status = network_make_protocols(network, settings, options, error);
    }
    if (status == STATUS_OK) {
        status = list_topics(network, settings, options->options);
    }
    return node_explain(error, status, "network");
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
        return node_explain(error, status, "network");
    }
    network->identity = settings->identity;
    network->outbound.bytes_max = settings->outbound_bytes_max;
    atomic_init(&network->outbound.bytes, 0);
    atomic_init(&network->dials, 0);
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
    store_client_destroy(&network->store_client);
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

void network_close(struct network *network)
{
    struct timespec slice = {.tv_nsec = NANOSECONDS_PER_MILLISECOND};
    peer_manager_stop(network->peer_manager);
    switch_stop(network->net_switch);
    while (!switch_is_stopped(network->net_switch) || network_has_pending(network)) {
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

struct store_client *network_store_client(const struct network *network)
{
    return network->store_client;
}

atomic_size_t *network_dials(struct network *network)
{
    return &network->dials;
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
