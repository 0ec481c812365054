/* SPDX-License-Identifier: MIT */

/* The node among its peers: its own name and addresses, whom it knows, connects to, and loses. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/metrics.h"
#include "net/switch/switch.h"
#include "node/api_private.h"
#include "node/network.h"
#include "node/peers.h"
#include "node/store_client.h"

enum {
    LIST_TIMEOUT_MS = 5000,
    EVENTS_MAX = 4096 /* that wait for the callback */
};

static enum sluice_result write_text(char *out, size_t size, const char *text)
{
    size_t length = strlen(text);
    if (length >= size) {
        return SLUICE_LIMIT_REACHED;
    }
    memcpy(out, text, length + 1);
    return SLUICE_OK;
}

enum sluice_result sluice_node_address(
        const struct sluice_node *node, size_t i, char *out, size_t size)
{
    struct multiaddr address;
    char text[MULTIADDR_TEXT_SIZE];
    const struct network *network = node_network(node->node);
    if (network == NULL || !network_address_at(network, i, &address)) {
        return SLUICE_NOT_FOUND;
    }
    return write_text(out, size, multiaddr_print(text, &address));
}

enum sluice_result sluice_node_peer_id(const struct sluice_node *node, char *out, size_t size)
{
    char text[PEER_ID_TEXT_SIZE];
    const struct network *network = node_network(node->node);
    if (network == NULL) {
        return SLUICE_NOT_FOUND;
    }
    peer_id_print(text, identity_peer_id(network_identity(network)));
    return write_text(out, size, text);
}

static void visit_peer(const struct node_peer *peer, sluice_peer_visitor *visit, void *context)
{
    char id[PEER_ID_TEXT_SIZE];
    char address[MULTIADDR_TEXT_SIZE] = "";
    struct sluice_peer shown = {.id = peer_id_print(id, &peer->id),
            .address = address,
            .agent = peer->agent != NULL ? peer->agent : "",
            .protocols = peer->protocols,
            .protocol_count = peer->protocol_count,
            .mesh_topics = peer->mesh_topics,
            .mesh_topic_count = peer->mesh_topic_count,
            .score = peer->has_score ? peer->score : 0,
            .latency_ns = peer->latency_ns,
            .is_connected = peer->state == NODE_PEER_CONNECTED,
            .is_outbound = peer->is_outbound};
    if (peer->address_count > 0) {
        multiaddr_print(address, &peer->addresses[0]);
    }
    visit(context, &shown);
}

/* The visitor runs outside of the gate: it may stop the node. */
enum sluice_result sluice_node_peers(
        struct sluice_node *node, sluice_peer_visitor *visit, void *context)
{
    struct node_peer_list *list = NULL;
    if (!api_enter(node)) {
        return SLUICE_NOT_RUNNING;
    }
    enum status status = node_peers_list(node->node, &list, LIST_TIMEOUT_MS);
    api_leave(node);
    for (size_t i = 0; status == STATUS_OK && i < list->count; i++) {
        visit_peer(&list->peers[i], visit, context);
    }
    if (status == STATUS_OK) {
        node_peer_list_destroy(&list);
    }
    return api_result(status);
}

static void on_dialled(void *context, enum status status)
{
    struct sluice_answer answer = {
            .result = api_result(status), .text = status == STATUS_OK ? "" : status_text(status)};
    api_answer(context, answer);
}

static enum status begin_dial(struct sluice_node *node, const void *what, struct api_call *call)
{
    struct multiaddr address;
    enum status status = store_client_read_address(&address, what);
    return status == STATUS_OK ? node_dial(node->node, &address, on_dialled, call) : status;
}

enum sluice_result sluice_node_dial(
        struct sluice_node *node, const char *address, sluice_answer_callback *done, void *context)
{
    return api_ask(node, done, context, begin_dial, address);
}

static enum status disconnect(const struct sluice_node *node, const char *peer_id)
{
    struct peer_id id;
    const struct network *network = node_network(node->node);
    if (network == NULL) {
        return STATUS_NOT_FOUND;
    }
    if (peer_id_parse(&id, span_of_text(peer_id)) != STATUS_OK) {
        return STATUS_BAD_ARGUMENT;
    }
    return peer_manager_remove(network_peer_manager(network), &id);
}

enum sluice_result sluice_node_disconnect(struct sluice_node *node, const char *peer_id)
{
    if (!api_enter(node)) {
        return SLUICE_NOT_RUNNING;
    }
    enum status status = disconnect(node, peer_id);
    api_leave(node);
    return api_result(status);
}

/* Connections that come and go. */

struct peer_event {
    struct event_task task;
    struct sluice_node *node;
    bool is_connected;
    const char *reason; /* a constant */
    char id[PEER_ID_TEXT_SIZE];
};

static void tell(struct event_task *task)
{
    struct peer_event *event = (struct peer_event *)task;
    struct sluice_node *node = event->node;
    api_calling_node = node;
    node->peer_callback(node->peer_context, event->id, event->is_connected, event->reason);
    api_calling_node = NULL;
    free(event);
    /* relaxed, here and below: a count orders nothing */
    atomic_fetch_sub_explicit(&node->peer_events, 1, memory_order_relaxed);
}

/* On an io thread. */
static void note(struct sluice_node *node, const struct connection *connection, bool is_connected,
        const char *reason)
{
    struct peer_event *event = NULL;
    if (atomic_fetch_add_explicit(&node->peer_events, 1, memory_order_relaxed) < EVENTS_MAX) {
        event = malloc(sizeof(*event));
    }
    if (event == NULL) {
        atomic_fetch_sub_explicit(&node->peer_events, 1, memory_order_relaxed);
        metrics_add(METRIC_EVENT_PEERS_DROPPED, 1);
        return;
    }
    *event = (struct peer_event){.task = {.carry_out = tell},
            .node = node,
            .is_connected = is_connected,
            .reason = reason};
    peer_id_print(event->id, connection_peer(connection));
    node_post_event_task(node->node, &event->task);
}

static void on_connected(void *context, struct connection *connection)
{
    note(context, connection, true, "");
}

static void on_disconnected(void *context, struct connection *connection, enum close_reason reason)
{
    note(context, connection, false, close_reason_text(reason));
}

enum sluice_result sluice_node_set_peer_callback(
        struct sluice_node *node, sluice_peer_callback *callback, void *context)
{
    static const struct switch_observer observer = {
            .connected = on_connected, .disconnected = on_disconnected};
    const struct network *network = node_network(node->node);
    if (network == NULL) {
        return SLUICE_NOT_FOUND;
    }
    if (callback == NULL || node->peer_callback != NULL ||
            atomic_load_explicit(&node->state, memory_order_seq_cst) != NODE_CREATED) {
        return SLUICE_BAD_ARGUMENT;
    }
    enum status status = switch_add_observer(network_switch(network), &observer, node);
    if (status == STATUS_OK) {
        node->peer_callback = callback;
        node->peer_context = context;
    }
    return api_result(status);
}
