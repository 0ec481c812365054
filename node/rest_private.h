/* SPDX-License-Identifier: MIT */
#pragma once

/* The inside of the REST API's end in the node, for node/rest*.c only. */

#include "admin/rest_api.h"
#include "net/identity/enr.h"
#include "node/node_private.h"
#include "node/rest.h"

/* Something that may wait for the node's other threads, done on the waiting thread. */
struct rest_job {
    struct inbox_link link;
    void (*run)(struct rest_job *CONSUMED job);
};

struct rest {
    struct node *node;
    bool serves_filter;
    struct http_server *server;
    struct rest_api *api;
    struct inbox *jobs; /* of struct rest_job */
    uint64_t query_timeout_ms;
    size_t message_bytes_max;
    uint16_t cluster;
    uint16_t shard_count;
    char *store_node;      /* --storenode; NULL: any peer that has a store */
    char **content_topics; /* that the options name */
    size_t content_topic_count;

    /* The REST thread's. */
    char enr[ENR_TEXT_SIZE]; /* "" when there is none yet */
    uint64_t enr_changes;    /* of topics, when it was written */
    uint64_t enr_sequence;   /* to which they are added */
    uint8_t capabilities;
};

void rest_post_job(struct rest *rest, struct rest_job *CONSUMED job);

/* Fills in what the node can do. */
void rest_fill_services(struct rest *rest, struct rest_services *services);

/* node/rest_enr.c */
bool rest_enr(void *context, char *out, size_t size);
uint8_t rest_capabilities(const struct options *options);

/* node/rest_query.c */
enum status rest_query(void *context, struct rest_store_call *call);

/* node/rest_peer_query.c */
enum status rest_query_peer(struct rest *rest, struct rest_store_call *call);

/* node/rest_peers.c */
enum status rest_list_peers(void *context, rest_peers_listed *done, void *done_context);
enum status rest_dial(void *context, const char *address, rest_dialed *done, void *done_context);
bool rest_is_peer_id(void *context, const char *text);
enum status rest_disconnect(void *context, const char *text);
enum status rest_sync_now(void *context);
enum status rest_list_subscribers(void *context, rest_subscriber_listed *each, void *each_context);

/* node/rest_filter.c */
enum status rest_ask_filter(void *context, const struct rest_filter_ask *ask,
        rest_filter_answered *done, void *done_context);
