/* SPDX-License-Identifier: MIT */

/* Peers and filter subscribers for the admin part of the REST API, listed on the waiting thread. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "net/protocols/store_sync.h"
#include "node/filter.h"
#include "node/network.h"
#include "node/peers.h"
#include "node/rest_private.h"

enum {
    LIST_TIMEOUT_MS = 5000
};

/* Peers. */

struct peers_job {
    struct rest_job job;
    struct rest *rest;
    rest_peers_listed *done;
    void *context;
};

static const char *state_text(enum node_peer_state state)
{
    switch (state) {
    case NODE_PEER_NOT_CONNECTED:
        return "NotConnected";
    case NODE_PEER_CANNOT_CONNECT:
        return "CannotConnect";
    case NODE_PEER_CAN_CONNECT:
        return "CanConnect";
    case NODE_PEER_CONNECTED:
        break;
    }
    return "Connected";
}

/* In the reference's words, as far as it has them. */
static const char *origin_text(enum peer_origin origin)
{
    switch (origin) {
    case PEER_ORIGIN_STATIC:
    case PEER_ORIGIN_REQUESTED:
        return "Static";
    case PEER_ORIGIN_INBOUND:
    case PEER_ORIGIN_FILE:
        break;
    }
    return "UnknownOrigin";
}

/* The texts of one peer. */
struct peer_texts {
    char multiaddr[MULTIADDR_TEXT_SIZE];
    char id[PEER_ID_TEXT_SIZE];
};

static void describe(struct rest_peer *out, struct peer_texts *texts, const struct node_peer *peer)
{
    peer_id_print(texts->id, &peer->id);
    if (peer->address_count > 0) {
        multiaddr_print(texts->multiaddr, &peer->addresses[0]);
    } else {
        snprintf(texts->multiaddr, sizeof(texts->multiaddr), "/p2p/%s", texts->id);
    }
    *out = (struct rest_peer){.multiaddr = texts->multiaddr,
            .id = texts->id,
            .protocols = peer->protocols,
            .protocol_count = peer->protocol_count,
            .shards = peer->shards,
            .shard_count = peer->shard_count,
            .connected = state_text(peer->state),
            .agent = peer->agent != NULL ? peer->agent : "",
            .origin = origin_text(peer->origin),
            .is_relay = peer->has_score,
            .score = peer->score,
            .mesh_topics = peer->mesh_topics,
            .mesh_topic_count = peer->mesh_topic_count};
}

static void tell_peers(const struct peers_job *job, const struct node_peer_list *list)
{
    struct rest_peer *peers = calloc(list->count + 1, sizeof(*peers));
    struct peer_texts *texts = calloc(list->count + 1, sizeof(*texts));
    enum status status = peers == NULL || texts == NULL ? STATUS_NO_MEMORY : STATUS_OK;
    for (size_t i = 0; status == STATUS_OK && i < list->count; i++) {
        describe(&peers[i], &texts[i], &list->peers[i]);
    }
    job->done(job->context, status, peers, status == STATUS_OK ? list->count : 0);
    free(peers);
    free(texts);
}

static void list_peers(struct rest_job *base)
{
    struct peers_job *job = (struct peers_job *)base;
    struct node_peer_list *list;
    enum status status = node_peers_list(job->rest->node, &list, LIST_TIMEOUT_MS);
    if (status == STATUS_OK) {
        tell_peers(job, list);
        node_peer_list_destroy(&list);
    } else {
        job->done(job->context, status, NULL, 0);
    }
    free(job);
}

enum status rest_list_peers(void *context, rest_peers_listed *done, void *done_context)
{
    struct rest *rest = context;
    struct peers_job *job = malloc(sizeof(*job));
    if (job == NULL) {
        return STATUS_NO_MEMORY;
    }
    *job = (struct peers_job){
            .job = {.run = list_peers}, .rest = rest, .done = done, .context = done_context};
    rest_post_job(rest, &job->job);
    return STATUS_OK;
}

enum status rest_dial(void *context, const char *text, rest_dialed *done, void *done_context)
{
    struct rest *rest = context;
    struct multiaddr address;
    struct multiaddr_endpoint endpoint;
    if (multiaddr_parse(&address, span_of_text(text)) != STATUS_OK ||
            multiaddr_endpoint(&endpoint, &address) != STATUS_OK || !endpoint.has_peer) {
        return STATUS_BAD_ADDRESS;
    }
    return node_dial(rest->node, &address, done, done_context);
}

bool rest_is_peer_id(void *context, const char *text)
{
    struct peer_id id;
    (void)context;
    return peer_id_parse(&id, span_of_text(text)) == STATUS_OK;
}

enum status rest_disconnect(void *context, const char *text)
{
    const struct rest *rest = context;
    struct peer_id id;
    if (rest->node->network == NULL) {
        return STATUS_NOT_FOUND;
    }
    enum status status = peer_id_parse(&id, span_of_text(text));
    return status == STATUS_OK ? peer_manager_remove(network_peer_manager(rest->node->network), &id)
                               : status;
}

enum status rest_sync_now(void *context)
{
    const struct rest *rest = context;
    struct store_sync *sync = network_store_sync(rest->node->network);
    if (sync == NULL) {
        return STATUS_NOT_FOUND;
    }
    store_sync_now(sync);
    return STATUS_OK;
}

/* Filter subscribers. */

struct subscribers_job {
    struct rest_job job;
    struct rest *rest;
    rest_subscriber_listed *each;
    void *context;
};

static void tell_subscriber(
        const struct subscribers_job *job, const struct node_filter_subscriber *subscriber)
{
    char id[PEER_ID_TEXT_SIZE];
    struct rest_criterion *criteria = calloc(subscriber->criterion_count + 1, sizeof(*criteria));
    if (criteria == NULL) {
        return;
    }
    for (size_t i = 0; i < subscriber->criterion_count; i++) {
        criteria[i] = (struct rest_criterion){.pubsub_topic = subscriber->criteria[i].pubsub_topic,
                .content_topic = subscriber->criteria[i].content_topic};
    }
    struct rest_subscriber told = {.id = peer_id_print(id, &subscriber->peer),
            .criteria = criteria,
            .criterion_count = subscriber->criterion_count,
            .is_connected = subscriber->is_connected,
            .age_ms = subscriber->age_ms,
            .silent_ms = subscriber->silent_ms,
            .queue_bytes = subscriber->queue_bytes,
            .queue_messages = subscriber->queue_messages,
            .sent = subscriber->sent,
            .dropped = subscriber->dropped,
            .last_push = node_filter_push_result_text(subscriber->last_push),
            .last_push_ms = subscriber->last_push_ms};
    job->each(job->context, STATUS_OK, &told);
    free(criteria);
}

static void list_subscribers(struct rest_job *base)
{
    struct subscribers_job *job = (struct subscribers_job *)base;
    struct node_filter_cursor cursor = {0};
    struct node_filter_subscriber *subscriber = NULL;
    enum status status = STATUS_OK;
    do {
        status = node_filter_next_subscriber(job->rest->node, &cursor, &subscriber);
        if (status == STATUS_OK && subscriber != NULL) {
            tell_subscriber(job, subscriber);
            node_filter_subscriber_destroy(&subscriber);
            continue;
        }
        break;
    } while (true);
    job->each(job->context, status, NULL);
    free(job);
}

enum status rest_list_subscribers(void *context, rest_subscriber_listed *each, void *each_context)
{
    struct rest *rest = context;
    struct subscribers_job *job = malloc(sizeof(*job));
    if (job == NULL) {
        return STATUS_NO_MEMORY;
    }
    *job = (struct subscribers_job){
            .job = {.run = list_subscribers}, .rest = rest, .each = each, .context = each_context};
    rest_post_job(rest, &job->job);
    return STATUS_OK;
}
