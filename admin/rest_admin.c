/* SPDX-License-Identifier: MIT */

/* /admin/v1: peers, filter subscribers, the log level. */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "admin/rest_peers.h"
#include "admin/rest_private.h"
#include "base/log.h"
#include "codec/topics.h"

enum {
    SHARD_INDEX_MAX = 65535,
    ROUTE_SHARD = 5, /* the segment of a path that ends in on/{shardId} */
    ROUTE_PEER = 3
};

/* A question about peers: which of them, and how they are written. */
struct peers_question {
    enum rest_peers_view view;
    uint16_t shard;
    char *peer_id;
    bool is_removal; /* the one peer is to go */
};

static void free_question(void *data)
{
    struct peers_question *question = data;
    free(question->peer_id);
    free(question);
}

/* On the waiting thread. */
static void remove_peer(struct rest_answer *answer, const char *peer_id)
{
    const struct rest_services *services = &answer->api->options.services;
    enum status status = services->disconnect(services->context, peer_id);
    if (status == STATUS_OK) {
        rest_answer_send_text(answer, HTTP_OK, "OK");
    } else {
        rest_answer_send_text(answer, HTTP_UNAVAILABLE, "The peer could not be disconnected: %s",
                status_text(status));
    }
}

static void end_peers(
        void *context, enum status status, const struct rest_peer *peers, size_t count)
{
    struct rest_answer *answer = context;
    const struct peers_question *question = answer->data;
    struct rest_peers_request wanted = {.view = question->view,
            .cluster = answer->api->options.cluster,
            .shard = question->shard,
            .peer_id = question->peer_id,
            .services = &answer->api->options.services};
    if (status != STATUS_OK) {
        rest_answer_send_text(
                answer, HTTP_UNAVAILABLE, "The peers could not be listed: %s", status_text(status));
        return;
    }
    answer->is_json = true;
    if (!rest_add_peers(&answer->text, &wanted, peers, count)) {
        rest_answer_send_text(
                answer, HTTP_NOT_FOUND, "Peer with ID %.100s not found", question->peer_id);
    } else if (question->is_removal) {
        remove_peer(answer, question->peer_id);
    } else {
        rest_answer_send(answer);
    }
}

static void ask(struct rest_api *api, struct http_request *request, struct peers_question asked)
{
    const struct rest_services *services = &api->options.services;
    struct peers_question *question = calloc(1, sizeof(*question));
    struct rest_answer *answer = question != NULL ? rest_answer_begin(api, request) : NULL;
    if (answer == NULL) {
        free(question);
        if (question == NULL) {
            http_respond_text(request, HTTP_UNAVAILABLE, "out of memory");
        }
        return;
    }
    *question = asked;
    answer->data = question;
    answer->free_data = free_question;
    enum status status = STATUS_OK;
    if (asked.view == REST_PEERS_ONE) {
        question->peer_id = strdup(http_request_segment(request, ROUTE_PEER));
        status = question->peer_id == NULL ? STATUS_NO_MEMORY : STATUS_OK;
    }
    if (status == STATUS_OK) {
        status = services->peers == NULL ? STATUS_NOT_FOUND
                                         : services->peers(services->context, end_peers, answer);
    }
    if (status != STATUS_OK) {
        rest_answer_send_text(
                answer, HTTP_UNAVAILABLE, "There are no peers to list: %s", status_text(status));
    }
}

static void ask_peers(struct rest_api *api, struct http_request *request, enum rest_peers_view view,
        uint16_t shard)
{
    ask(api, request, (struct peers_question){.view = view, .shard = shard});
}

static void get_all(void *context, struct http_request *request)
{
    ask_peers(context, request, REST_PEERS_ALL, 0);
}

/* False, and answered, when the path names no peer. */
static bool is_peer_id(const struct rest_api *api, struct http_request *request)
{
    const char *text = http_request_segment(request, ROUTE_PEER);
    const struct rest_services *services = &api->options.services;
    if (services->is_peer_id(services->context, text)) {
        return true;
    }
    http_respond_text(request, HTTP_BAD_REQUEST, "Invalid argument: %.100s is not a peer id", text);
    return false;
}

static void get_one(void *context, struct http_request *request)
{
    if (is_peer_id(context, request)) {
        ask_peers(context, request, REST_PEERS_ONE, 0);
    }
}

static void delete_one(void *context, struct http_request *request)
{
    if (is_peer_id(context, request)) {
        ask(context, request, (struct peers_question){.view = REST_PEERS_ONE, .is_removal = true});
    }
}

static void get_service(void *context, struct http_request *request)
{
    ask_peers(context, request, REST_PEERS_SERVICE, 0);
}

static void get_connected(void *context, struct http_request *request)
{
    ask_peers(context, request, REST_PEERS_CONNECTED, 0);
}

static void get_stats(void *context, struct http_request *request)
{
    ask_peers(context, request, REST_PEERS_STATS, 0);
}

/* False, and answered, when the path names no shard. */
static bool take_shard(struct http_request *request, uint16_t *shard)
{
    const char *text = http_request_segment(request, ROUTE_SHARD);
    char *end;
    unsigned long value = strtoul(text, &end, 10);
    if (text[0] < '0' || text[0] > '9' || *end != '\0' || value > SHARD_INDEX_MAX) {
        http_respond_text(request, HTTP_BAD_REQUEST, "Invalid shardId: %.50s is not from 0 to %d",
                text, SHARD_INDEX_MAX);
        return false;
    }
    *shard = (uint16_t)value;
    return true;
}

static void get_connected_on(void *context, struct http_request *request)
{
    uint16_t shard;
    if (take_shard(request, &shard)) {
        ask_peers(context, request, REST_PEERS_CONNECTED_ON, shard);
    }
}

/* False, and answered, when the node does not relay. */
static bool has_relay(const struct rest_api *api, struct http_request *request)
{
    if (!api->options.has_relay) {
        http_respond_text(
                request, HTTP_UNAVAILABLE, "Error: Relay Protocol is not mounted to the node");
    }
    return api->options.has_relay;
}

static void get_relay(void *context, struct http_request *request)
{
    if (has_relay(context, request)) {
        ask_peers(context, request, REST_PEERS_RELAY, 0);
    }
}

static void get_mesh(void *context, struct http_request *request)
{
    if (has_relay(context, request)) {
        ask_peers(context, request, REST_PEERS_MESH, 0);
    }
}

static void get_relay_on(void *context, struct http_request *request)
{
    uint16_t shard;
    if (take_shard(request, &shard) && has_relay(context, request)) {
        ask_peers(context, request, REST_PEERS_RELAY_ON, shard);
    }
}

static void get_mesh_on(void *context, struct http_request *request)
{
    uint16_t shard;
    if (take_shard(request, &shard) && has_relay(context, request)) {
        ask_peers(context, request, REST_PEERS_MESH_ON, shard);
    }
}

/* Dialling, one after the other. */

struct dial_list {
    struct rest_list addresses;
    size_t at;
};

static void free_dials(void *data)
{
    struct dial_list *dials = data;
    rest_list_fini(&dials->addresses);
    free(dials);
}

static void dial_next(struct rest_answer *answer);

static void continue_dials(void *context, struct http_request *request)
{
    (void)request;
    dial_next(context);
}

/* On the node's control thread: the next one is dialled from the REST thread. */
static void end_dial(void *context, enum status status)
{
    struct rest_answer *answer = context;
    struct dial_list *dials = answer->data;
    if (status != STATUS_OK) {
        rest_answer_send_text(answer, HTTP_BAD_REQUEST,
                "Failed to connect to peer at index: %zu - %.300s: %s", dials->at,
                dials->addresses.items[dials->at], status_text(status));
        return;
    }
    dials->at++;
    if (dials->at == dials->addresses.count) {
        rest_answer_send_text(answer, HTTP_OK, "OK");
        return;
    }
    http_request_resume(answer->request, continue_dials, answer);
}

static void dial(struct rest_answer *answer)
{
    const struct rest_services *services = &answer->api->options.services;
    struct dial_list *dials = answer->data;
    const char *address = dials->addresses.items[dials->at];
    enum status status = services->dial == NULL
                                 ? STATUS_UNSUPPORTED
                                 : services->dial(services->context, address, end_dial, answer);
    if (status == STATUS_BAD_ADDRESS || status == STATUS_BAD_FIELD) {
        rest_answer_send_text(answer, HTTP_BAD_REQUEST,
                "Couldn't parse remote peer info: MultiAddress error: %.300s", address);
    } else if (status != STATUS_OK) {
        end_dial(answer, status);
    }
}

static void dial_next(struct rest_answer *answer)
{
    http_request_hold(answer->request);
    dial(answer);
}

static void post_peers(void *context, struct http_request *request)
{
    struct rest_error error = {0};
    struct rest_api *api = context;
    if (!rest_has_json_body(request)) {
        return;
    }
    struct dial_list *dials = calloc(1, sizeof(*dials));
    enum status status =
            dials == NULL ? STATUS_NO_MEMORY
                          : rest_list_parse(&dials->addresses, http_request_body(request), &error);
    if (status != STATUS_OK) {
        free(dials);
        rest_respond_bad_body(request, status, &error);
        return;
    }
    struct rest_answer *answer =
            dials->addresses.count > 0 ? rest_answer_begin(api, request) : NULL;
    if (answer == NULL) {
        if (dials->addresses.count == 0) {
            http_respond_text(request, HTTP_OK, "OK");
        }
        free_dials(dials);
        return;
    }
    answer->data = dials;
    answer->free_data = free_dials;
    dial(answer);
}

/* Filter subscribers. */

static void add_criteria(struct rest_text *text, const struct rest_subscriber *subscriber)
{
    rest_text_add(text, ",\"filterCriteria\":[");
    for (size_t i = 0; i < subscriber->criterion_count; i++) {
        rest_text_add(text, i > 0 ? ",{\"pubsubTopic\":" : "{\"pubsubTopic\":");
        rest_text_add_string(text, subscriber->criteria[i].pubsub_topic);
        rest_text_add(text, ",\"contentTopic\":");
        rest_text_add_string(text, subscriber->criteria[i].content_topic);
        rest_text_add(text, "}");
    }
    rest_text_add(text, "]");
}

static void add_field(struct rest_text *text, const char *name, uint64_t number)
{
    rest_text_add(text, ",");
    rest_text_add_string(text, span_of_text(name));
    rest_text_add(text, ":");
    rest_text_add_number(text, (int64_t)number);
}

/* The reference has the peer and its criteria; the rest is Sluice's own. */
static void add_subscriber(struct rest_text *text, const struct rest_subscriber *subscriber)
{
    rest_text_add(text, "{\"peerId\":");
    rest_text_add_string(text, span_of_text(subscriber->id));
    add_criteria(text, subscriber);
    rest_text_add(text, ",\"connected\":");
    rest_text_add_bool(text, subscriber->is_connected);
    add_field(text, "ageMs", subscriber->age_ms);
    add_field(text, "silentMs", subscriber->silent_ms);
    add_field(text, "queueBytes", subscriber->queue_bytes);
    add_field(text, "queueMessages", subscriber->queue_messages);
    add_field(text, "sent", subscriber->sent);
    add_field(text, "dropped", subscriber->dropped);
    rest_text_add(text, ",\"lastPush\":");
    rest_text_add_string(text, span_of_text(subscriber->last_push));
    add_field(text, "lastPushMs", subscriber->last_push_ms);
    rest_text_add(text, "}");
}

static void take_subscriber(
        void *context, enum status status, const struct rest_subscriber *subscriber)
{
    struct rest_answer *answer = context;
    struct rest_text *text = &answer->text;
    size_t before = text->length;
    if (subscriber == NULL && status != STATUS_OK) {
        rest_answer_send_text(answer, HTTP_UNAVAILABLE, "The subscriptions could not be listed: %s",
                status_text(status));
        return;
    }
    rest_text_add(text, answer->is_json ? "" : "[");
    if (subscriber == NULL) {
        rest_text_add(text, "]");
        answer->is_json = true;
        rest_answer_send(answer);
        return;
    }
    rest_text_add(text, answer->is_json ? "," : "");
    answer->is_json = true;
    add_subscriber(text, subscriber);
    if (!http_request_try_charge(answer->request, text->length - before)) {
        text->has_failed = true;
    }
}

static void get_subscriptions(void *context, struct http_request *request)
{
    struct rest_api *api = context;
    const struct rest_services *services = &api->options.services;
    if (services->subscribers == NULL) {
        http_respond_text(
                request, HTTP_BAD_REQUEST, "Error: Filter Protocol is not mounted to the node");
        return;
    }
    struct rest_answer *answer = rest_answer_begin(api, request);
    if (answer == NULL) {
        return;
    }
    enum status status = services->subscribers(services->context, take_subscriber, answer);
    if (status != STATUS_OK) {
        take_subscriber(answer, status, NULL);
    }
}

static void post_store_sync(void *context, struct http_request *request)
{
    const struct rest_services *services = &((struct rest_api *)context)->options.services;
    if (services->sync_now == NULL || services->sync_now(services->context) != STATUS_OK) {
        http_respond_text(
                request, HTTP_UNAVAILABLE, "Error: Store-sync is not mounted to the node");
        return;
    }
    http_respond_text(request, HTTP_OK, "OK");
}

static void post_log_level(void *context, struct http_request *request)
{
    const char *name = http_request_segment(request, 3);
    enum log_level level;
    (void)context;
    if (!log_level_from_name(&level, name)) {
        http_respond_text(request, HTTP_BAD_REQUEST,
                "Invalid log-level: %.50s. Please specify one of TRACE, DEBUG, INFO, NOTICE, "
                "WARN, ERROR or FATAL",
                name);
        return;
    }
    log_set_level(level);
    http_respond_text(request, HTTP_OK, "OK");
}

const struct http_route rest_admin_routes[] = {
        {HTTP_GET, "/admin/v1/peers", get_all},
        {HTTP_POST, "/admin/v1/peers", post_peers},
        {HTTP_GET, "/admin/v1/peer/{peerId}", get_one},
        {HTTP_DELETE, "/admin/v1/peer/{peerId}",
                delete_one}, /* Sluice's own; likewise store-sync */
        {HTTP_POST, "/admin/v1/store-sync", post_store_sync},
        {HTTP_GET, "/admin/v1/peers/service", get_service},
        {HTTP_GET, "/admin/v1/peers/stats", get_stats},
        {HTTP_GET, "/admin/v1/peers/connected", get_connected},
        {HTTP_GET, "/admin/v1/peers/connected/on/{shardId}", get_connected_on},
        {HTTP_GET, "/admin/v1/peers/relay", get_relay},
        {HTTP_GET, "/admin/v1/peers/relay/on/{shardId}", get_relay_on},
        {HTTP_GET, "/admin/v1/peers/mesh", get_mesh},
        {HTTP_GET, "/admin/v1/peers/mesh/on/{shardId}", get_mesh_on},
        {HTTP_GET, "/admin/v1/filter/subscriptions", get_subscriptions},
        {HTTP_POST, "/admin/v1/log-level/{logLevel}", post_log_level},
};
const size_t rest_admin_route_count = sizeof(rest_admin_routes) / sizeof(rest_admin_routes[0]);
