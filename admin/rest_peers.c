/* SPDX-License-Identifier: MIT */
#include "admin/rest_peers.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "codec/topics.h"

/* What the reference calls services, in its order, and those that its numbers are about. */
static const char *const services[] = {"/vac/waku/relay/2.0.0",
        "/vac/waku/filter-subscribe/2.0.0-beta1", "/vac/waku/store-query/3.0.0",
        "/vac/waku/lightpush/2.0.0-beta1", "/vac/waku/lightpush/3.0.0",
        "/vac/waku/peer-exchange/2.0.0-alpha1", "/vac/waku/reconciliation/1.0.0",
        "/vac/waku/transfer/1.0.0"};
static const char *const counted[] = {"/vac/waku/relay/2.0.0",
        "/vac/waku/filter-subscribe/2.0.0-beta1", "/vac/waku/filter-push/2.0.0-beta1",
        "/vac/waku/store-query/3.0.0", "/vac/waku/lightpush/3.0.0",
        "/vac/waku/lightpush/2.0.0-beta1", "/vac/waku/peer-exchange/2.0.0-alpha1",
        "/vac/waku/reconciliation/1.0.0"};
static const char *const states[] = {"Connected", "NotConnected", "CannotConnect", "CanConnect"};

enum {
    SERVICE_COUNT = sizeof(services) / sizeof(services[0]),
    COUNTED_COUNT = sizeof(counted) / sizeof(counted[0]),
    STATE_COUNT = sizeof(states) / sizeof(states[0])
};

static bool speaks(const struct rest_peer *peer, const char *protocol)
{
    for (size_t i = 0; i < peer->protocol_count; i++) {
        if (strcmp(peer->protocols[i], protocol) == 0) {
            return true;
        }
    }
    return false;
}

static void add_protocols(struct rest_text *text, const struct rest_peer *peer, bool only_services)
{
    const char *const *list = only_services ? services : peer->protocols;
    size_t count = only_services ? (size_t)SERVICE_COUNT : peer->protocol_count;
    bool is_first = true;
    rest_text_add(text, "[");
    for (size_t i = 0; i < count; i++) {
        if (!only_services || speaks(peer, list[i])) {
            rest_text_add(text, is_first ? "" : ",");
            rest_text_add_string(text, span_of_text(list[i]));
            is_first = false;
        }
    }
    rest_text_add(text, "]");
}

static void add_score(struct rest_text *text, double score)
{
    char digits[64];
    snprintf(digits, sizeof(digits), "%.6f", isfinite(score) ? score : 0.0);
    rest_text_add(text, digits);
}

struct form {
    bool has_score;
    bool only_services;
};

static void add_peer(struct rest_text *text, const struct rest_peer *peer, const struct form *form)
{
    rest_text_add(text, "{\"multiaddr\":");
    rest_text_add_string(text, span_of_text(peer->multiaddr));
    rest_text_add(text, ",\"protocols\":");
    add_protocols(text, peer, form->only_services);
    rest_text_add(text, ",\"shards\":[");
    for (size_t i = 0; i < peer->shard_count; i++) {
        rest_text_add(text, i > 0 ? "," : "");
        rest_text_add_number(text, peer->shards[i]);
    }
    rest_text_add(text, "],\"connected\":");
    rest_text_add_string(text, span_of_text(peer->connected));
    rest_text_add(text, ",\"agent\":");
    rest_text_add_string(text, span_of_text(peer->agent));
    rest_text_add(text, ",\"origin\":");
    rest_text_add_string(text, span_of_text(peer->origin));
    if (form->has_score) {
        rest_text_add(text, ",\"score\":");
        add_score(text, peer->score);
    }
    rest_text_add(text, "}");
}

static bool is_on_shard(const struct rest_peer *peer, uint16_t shard)
{
    for (size_t i = 0; i < peer->shard_count; i++) {
        if (peer->shards[i] == shard) {
            return true;
        }
    }
    return false;
}

static bool is_connected(const struct rest_peer *peer)
{
    return strcmp(peer->connected, states[0]) == 0;
}

static bool is_in_mesh(const struct rest_peer *peer, struct span topic)
{
    for (size_t i = 0; i < peer->mesh_topic_count; i++) {
        if (span_equal(span_of_text(peer->mesh_topics[i]), topic)) {
            return true;
        }
    }
    return false;
}

static bool is_service(const struct rest_peer *peer)
{
    bool is = false;
    for (size_t i = 0; i < SERVICE_COUNT; i++) {
        is = is || speaks(peer, services[i]);
    }
    return is;
}

static bool is_listed(const struct rest_peers_request *request, const struct rest_peer *peer)
{
    switch (request->view) {
    case REST_PEERS_ONE:
        return strcmp(peer->id, request->peer_id) == 0;
    case REST_PEERS_SERVICE:
        return is_service(peer);
    case REST_PEERS_CONNECTED:
        return is_connected(peer);
    case REST_PEERS_CONNECTED_ON:
        return is_connected(peer) && is_on_shard(peer, request->shard);
    case REST_PEERS_ALL:
    case REST_PEERS_RELAY:
    case REST_PEERS_RELAY_ON:
    case REST_PEERS_MESH:
    case REST_PEERS_MESH_ON:
    case REST_PEERS_STATS:
        break;
    }
    return true;
}

static void add_list(struct rest_text *text, const struct rest_peers_request *request,
        const struct rest_peer *peers, size_t count)
{
    struct form form = {.only_services = request->view == REST_PEERS_SERVICE};
    bool is_first = true;
    rest_text_add(text, "[");
    for (size_t i = 0; i < count; i++) {
        if (is_listed(request, &peers[i])) {
            rest_text_add(text, is_first ? "" : ",");
            add_peer(text, &peers[i], &form);
            is_first = false;
        }
    }
    rest_text_add(text, "]");
}

static bool add_one(struct rest_text *text, const struct rest_peers_request *request,
        const struct rest_peer *peers, size_t count)
{
    static const struct form form = {.has_score = false};
    for (size_t i = 0; i < count; i++) {
        if (is_listed(request, &peers[i])) {
            add_peer(text, &peers[i], &form);
            return true;
        }
    }
    return false;
}

/* A relay peer of a topic: it relays with us and takes part in the shard, or is in the mesh. */
static bool is_of_topic(
        const struct rest_peer *peer, bool only_mesh, struct span topic, uint16_t shard)
{
    return is_in_mesh(peer, topic) ||
           (!only_mesh && peer->is_relay && is_connected(peer) && is_on_shard(peer, shard));
}

struct group {
    bool only_mesh;
    struct span topic;
    uint16_t shard;
};

static size_t count_group(const struct group *group, const struct rest_peer *peers, size_t count)
{
    size_t found = 0;
    for (size_t i = 0; i < count; i++) {
        found += is_of_topic(&peers[i], group->only_mesh, group->topic, group->shard);
    }
    return found;
}

static void add_group(struct rest_text *text, const struct group *group,
        const struct rest_peer *peers, size_t count)
{
    static const struct form form = {.has_score = true};
    bool is_first = true;
    rest_text_add(text, "{\"shard\":");
    rest_text_add_number(text, group->shard);
    rest_text_add(text, ",\"peers\":[");
    for (size_t i = 0; i < count; i++) {
        if (is_of_topic(&peers[i], group->only_mesh, group->topic, group->shard)) {
            rest_text_add(text, is_first ? "" : ",");
            add_peer(text, &peers[i], &form);
            is_first = false;
        }
    }
    rest_text_add(text, "]}");
}

static int compare_shards(const void *a, const void *b)
{
    const uint16_t *left = a;
    const uint16_t *right = b;
    return *left - *right;
}

/* From place *at on, of our cluster; false behind the last. */
static bool next_shard(const struct rest_peers_request *request, size_t *at, uint16_t *out)
{
    struct span topic;
    struct shard shard;
    while (request->services->joined_at(request->services->context, (*at)++, &topic)) {
        if (shard_parse(&shard, topic) == STATUS_OK && shard.cluster == request->cluster) {
            *out = shard.index;
            return true;
        }
    }
    return false;
}

/* The shards of ours that are joined, in order; to be freed. What there is no memory for is left out. */
static uint16_t *list_shards(const struct rest_peers_request *request, size_t *count)
{
    size_t at = 0;
    size_t room = 0;
    uint16_t shard;
    *count = 0;
    while (next_shard(request, &at, &shard)) {
        room++;
    }
    uint16_t *shards = calloc(room + 1, sizeof(*shards));
    at = 0;
    while (shards != NULL && *count < room && next_shard(request, &at, &shard)) {
        shards[(*count)++] = shard;
    }
    if (*count > 0) {
        qsort(shards, *count, sizeof(*shards), compare_shards);
    }
    return shards;
}

/* The group of one shard; its topic's name is written to name. */
static struct group group_of(const struct rest_peers_request *request, uint16_t shard,
        bool only_mesh, char name[SHARD_TOPIC_MAX_BYTES])
{
    size_t length = shard_format(name, (struct shard){.cluster = request->cluster, .index = shard});
    return (struct group){.only_mesh = only_mesh, .topic = span_of(name, length), .shard = shard};
}

static void add_groups(struct rest_text *text, const struct rest_peers_request *request,
        const struct rest_peer *peers, size_t count)
{
    char name[SHARD_TOPIC_MAX_BYTES];
    size_t shard_count;
    uint16_t *shards = list_shards(request, &shard_count);
    rest_text_add(text, "[");
    for (size_t i = 0; i < shard_count; i++) {
        struct group group = group_of(request, shards[i], request->view == REST_PEERS_MESH, name);
        rest_text_add(text, i > 0 ? "," : "");
        add_group(text, &group, peers, count);
    }
    rest_text_add(text, "]");
    free(shards);
}

static void add_group_of_shard(struct rest_text *text, const struct rest_peers_request *request,
        const struct rest_peer *peers, size_t count)
{
    char name[SHARD_TOPIC_MAX_BYTES];
    struct group group =
            group_of(request, request->shard, request->view == REST_PEERS_MESH_ON, name);
    add_group(text, &group, peers, count);
}

/* Numbers. */

static void add_count(struct rest_text *text, const char *name, size_t number, bool is_first)
{
    rest_text_add(text, is_first ? "" : ",");
    rest_text_add_string(text, span_of_text(name));
    rest_text_add(text, ":");
    rest_text_add_number(text, (int64_t)number);
}

static void add_group_counts(struct rest_text *text, const struct rest_peers_request *request,
        const struct rest_peer *peers, size_t count, bool only_mesh)
{
    char topic[SHARD_TOPIC_MAX_BYTES];
    size_t total = 0;
    size_t shard_count;
    uint16_t *shards = list_shards(request, &shard_count);
    for (size_t i = 0; i < shard_count; i++) {
        char name[8];
        struct group group = group_of(request, shards[i], only_mesh, topic);
        size_t found = count_group(&group, peers, count);
        snprintf(name, sizeof(name), "%u", group.shard);
        add_count(text, name, found, i == 0);
        total += found;
    }
    free(shards);
    add_count(text, only_mesh ? "Total mesh peers" : "Total relay peers", total, shard_count == 0);
}

static void add_stats(struct rest_text *text, const struct rest_peers_request *request,
        const struct rest_peer *peers, size_t count)
{
    rest_text_add(text, "{\"Sum\":{");
    add_count(text, "Total peers", count, true);
    rest_text_add(text, "},\"By Connectedness\":{");
    for (size_t s = 0; s < STATE_COUNT; s++) {
        size_t found = 0;
        for (size_t i = 0; i < count; i++) {
            found += strcmp(peers[i].connected, states[s]) == 0;
        }
        add_count(text, states[s], found, s == 0);
    }
    rest_text_add(text, "},\"Relay peers\":{");
    add_group_counts(text, request, peers, count, false);
    rest_text_add(text, "},\"Mesh peers\":{");
    add_group_counts(text, request, peers, count, true);
    rest_text_add(text, "},\"By Protocols\":{");
    for (size_t p = 0; p < COUNTED_COUNT; p++) {
        size_t found = 0;
        for (size_t i = 0; i < count; i++) {
            found += speaks(&peers[i], counted[p]);
        }
        add_count(text, counted[p], found, p == 0);
    }
    rest_text_add(text, "}}");
}

bool rest_add_peers(struct rest_text *text, const struct rest_peers_request *request,
        const struct rest_peer *peers, size_t count)
{
    switch (request->view) {
    case REST_PEERS_ONE:
        return add_one(text, request, peers, count);
    case REST_PEERS_ALL:
    case REST_PEERS_SERVICE:
    case REST_PEERS_CONNECTED:
    case REST_PEERS_CONNECTED_ON:
        add_list(text, request, peers, count);
        break;
    case REST_PEERS_RELAY:
    case REST_PEERS_MESH:
        add_groups(text, request, peers, count);
        break;
    case REST_PEERS_RELAY_ON:
    case REST_PEERS_MESH_ON:
        add_group_of_shard(text, request, peers, count);
        break;
    case REST_PEERS_STATS:
        add_stats(text, request, peers, count);
        break;
    }
    return true;
}
