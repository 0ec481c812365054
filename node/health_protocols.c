/* SPDX-License-Identifier: MIT */
#include "node/health_protocols.h"

#include <string.h>

#include "node/node_private.h"

enum {
    EDGE_PEERS_GOOD = 2 /* peers of each service, for a node that does not relay */
};

static const char relay_id[] = "/vac/waku/relay/2.0.0";
static const char lightpush_id[] = "/vac/waku/lightpush/3.0.0";
static const char legacy_lightpush_id[] = "/vac/waku/lightpush/2.0.0-beta1";
static const char filter_id[] = "/vac/waku/filter-subscribe/2.0.0-beta1";
static const char store_id[] = "/vac/waku/store-query/3.0.0";

static bool is_served(const struct node *node, const char *protocol)
{
    const char *id;
    if (node->network == NULL) {
        return false;
    }
    for (size_t i = 0; (id = switch_protocol_at(network_switch(node->network), i)) != NULL; i++) {
        if (strcmp(id, protocol) == 0) {
            return true;
        }
    }
    return false;
}

/* Connected peers that say they speak it. */
static uint64_t count_peers(const struct node_reading *reading, const char *protocol)
{
    uint64_t count = 0;
    for (size_t i = 0; i < PEER_PROTOCOLS_COUNTED; i++) {
        if (strcmp(peer_protocols_counted[i], protocol) == 0) {
            count += reading->protocol_peers[i][0] + reading->protocol_peers[i][1];
        }
    }
    return count;
}

static uint64_t smaller(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* Without relay peers a node is as well connected as the service that it has fewest peers for. */
static const char *connection_of(const struct node_reading *reading)
{
    uint64_t push = count_peers(reading, lightpush_id);
    uint64_t legacy_push = count_peers(reading, legacy_lightpush_id);
    uint64_t fewest = smaller(push > legacy_push ? push : legacy_push,
            smaller(count_peers(reading, filter_id), count_peers(reading, store_id)));
    if (reading->relay.peers > 0) {
        return reading->relay.peers >= reading->relay.mesh_low ? "Connected" : "PartiallyConnected";
    }
    if (fewest == 0) {
        return "Disconnected";
    }
    return fewest >= EDGE_PEERS_GOOD ? "Connected" : "PartiallyConnected";
}

struct row {
    const char *name;
    const char *id; /* NULL: not there */
    bool needs_relay;
    const char *why; /* it is not ready */
};

/* Served here; what needs relay is as ready as relay is. */
static struct health_protocol judge_service(
        const struct row *row, const struct node *node, const struct node_reading *reading)
{
    struct health_protocol out = {.name = row->name, .health = "NOT_MOUNTED"};
    bool is_ready = !row->needs_relay || reading->relay.peers > 0;
    if (row->id == NULL || !is_served(node, row->id)) {
        return out;
    }
    out.health = is_ready ? "READY" : "NOT_READY";
    out.why = is_ready ? NULL : row->why;
    if (row->id == store_id && reading->archive.is_there && reading->archive.health != STATUS_OK) {
        out.health = "NOT_READY";
        out.why = status_text(reading->archive.health);
    }
    return out;
}

/* Asked of others: there has to be one, or the own archive. */
static struct health_protocol judge_client(
        const struct row *row, const struct node *node, const struct node_reading *reading)
{
    bool is_ready =
            count_peers(reading, row->id) > 0 || (row->id == store_id && is_served(node, store_id));
    return (struct health_protocol){.name = row->name,
            .health = is_ready ? "READY" : "NOT_READY",
            .why = is_ready ? NULL : row->why};
}

/* In the reference's order. */
static const struct row services[] = {{"Relay", relay_id, true, "No connected peers"},
        {"Lightpush", lightpush_id, true, "Node has no relay peers to fullfill push requests"},
        {"Legacy Lightpush", legacy_lightpush_id, true,
                "Node has no relay peers to fullfill push requests"},
        {"Filter", filter_id, true,
                "Relay is not ready, filter will not be able to sort out messages"},
        {"Store", store_id, false, NULL},
        {"Peer Exchange", "/vac/waku/peer-exchange/2.0.0-alpha1", false, NULL},
        {"Rendezvous", "/vac/waku/rendezvous/1.0.0", false, NULL}, {"Mix", NULL, false, NULL}};
static const struct row clients[] = {
        {"Lightpush Client", lightpush_id, false, "No Lightpush service peer available yet"},
        {"Legacy Lightpush Client", legacy_lightpush_id, false,
                "No Lightpush service peer available yet"},
        {"Store Client", store_id, false,
                "No Store service peer available yet, neither Store service set up for the node"},
        {"Filter Client", filter_id, false, "No Filter service peer available yet"}};
static const struct row proofs = {"Rln Relay", NULL, false, NULL};

void health_list_protocols(
        struct node_health *out, const struct node *node, const struct node_reading *reading)
{
    size_t count = 0;
    for (size_t i = 0; i < sizeof(services) / sizeof(services[0]); i++) {
        out->protocols[count++] = judge_service(&services[i], node, reading);
    }
    for (size_t i = 0; i < sizeof(clients) / sizeof(clients[0]); i++) {
        out->protocols[count++] = judge_client(&clients[i], node, reading);
    }
    out->protocols[count++] = judge_service(&proofs, node, reading);
    out->protocol_count = count;
    out->connection = connection_of(reading);
}
