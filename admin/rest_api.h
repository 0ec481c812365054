/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The reference's REST API on an HTTP server: the same paths, fields and status codes. What a handler
 * cannot know it asks the node for (rest_services.h).
 *
 * Lifetime:  create before the server's first turn, destroy after its last.
 * Thread:    the handlers on the server's; rest_api_take and rest_api_take_pushed on any.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "admin/http_server.h"
#include "admin/rest_services.h"
#include "base/attributes.h"
#include "base/status.h"
#include "queues/envelope.h"

struct rest_api;

struct rest_api_options {
    struct http_server *BORROWED server;
    struct rest_services services;
    const char *version; /* of the program; outlives the API */
    uint16_t cluster;
    uint16_t shard_count; /* of autosharding; 0: none */
    size_t message_bytes_max;
    size_t cache_messages_max; /* of the relay cache, and of the filter cache */
    size_t cache_bytes_max;    /* likewise */
    size_t topics_max;         /* that REST clients may subscribe to, of each kind */
    bool has_relay;
    bool has_lightpush;       /* lightpush is served here */
    bool pushes_through_peer; /* --lightpushnode is given, or lightpush is not served here */
    bool has_store;           /* a query without peer goes to the own archive */
    bool has_admin;           /* --rest-admin */
    bool is_strict;           /* bodies with fields that are not known are refused */
};

MUST_USE enum status rest_api_create(struct rest_api **out, const struct rest_api_options *options);
void rest_api_destroy(struct rest_api **api);

/* Messages of that topic are kept for REST clients from now on. */
MUST_USE enum status rest_api_keep(struct rest_api *api, struct span pubsub_topic);
/* The same by content topic. */
MUST_USE enum status rest_api_keep_content(struct rest_api *api, struct span content_topic);

/* An accepted message. */
void rest_api_take(struct rest_api *api, struct envelope *BORROWED envelope);

/* A message that a filter service pushed. */
void rest_api_take_pushed(struct rest_api *api, struct span pubsub_topic, struct span message);
