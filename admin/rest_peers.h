/* SPDX-License-Identifier: MIT */
#pragma once

/* Peers as the admin part of the REST API writes them. */

#include "admin/rest_services.h"
#include "admin/rest_text.h"

enum rest_peers_view {
    REST_PEERS_ALL,
    REST_PEERS_ONE,     /* one object, by peer_id */
    REST_PEERS_SERVICE, /* who speaks one of the network's services, with those only */
    REST_PEERS_CONNECTED,
    REST_PEERS_CONNECTED_ON, /* and takes part in the shard */
    REST_PEERS_RELAY,        /* relay peers of each shard of ours */
    REST_PEERS_RELAY_ON,     /* of one shard */
    REST_PEERS_MESH,
    REST_PEERS_MESH_ON,
    REST_PEERS_STATS /* numbers of all kinds */
};

struct rest_peers_request {
    enum rest_peers_view view;
    uint16_t cluster;
    uint16_t shard;
    const char *peer_id;
    const struct rest_services *services; /* joined_at */
};

/* False: there is no peer of that id. */
MUST_USE bool rest_add_peers(struct rest_text *text, const struct rest_peers_request *request,
        const struct rest_peer *peers, size_t count);
