/* SPDX-License-Identifier: MIT */

/* Store queries that REST clients put to another node: dialled, asked, and its answer handed on. */

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "net/protocols/store_message.h"
#include "node/network.h"
#include "node/peers.h"
#include "node/rest_private.h"
#include "node/store_client.h"

/* One that has to find its peer first. */
struct peer_query {
    struct rest_job job;
    struct rest *rest;
    struct rest_store_call *call;
};

_Static_assert((int)REST_REQUEST_ID_SIZE == (int)STORE_CLIENT_ID_SIZE, "an id fits the call");

static enum status on_row(void *context, const struct archive_row *row)
{
    const struct rest_store_call *call = context;
    return call->row(call->context, row);
}

static void on_answered(void *context, const struct store_client_outcome *outcome)
{
    struct rest_store_call *call = context;
    enum status status = outcome->status;
    if (status != STATUS_LIMIT_REACHED && (outcome->code != 0 || status == STATUS_CLOSED)) {
        status = STATUS_CLOSED;
        call->has_peer_code = true;
        call->peer_code = outcome->code;
    }
    call->end(call, status, outcome->page, outcome->description);
}

static enum status ask(
        struct rest *rest, struct rest_store_call *call, const struct multiaddr *peer)
{
    struct store_client_ask ask = {.query = &call->query,
            .peer = peer,
            .request_id = call->request_id,
            .row = on_row,
            .answered = on_answered,
            .context = call};
    return store_client_ask(network_store_client(rest->node->network), &ask);
}

/* Without a name: any that is connected and has a store. */

static bool has_store(const struct node_peer *peer)
{
    bool has = false;
    for (size_t i = 0; i < peer->protocol_count; i++) {
        has = has || strcmp(peer->protocols[i], STORE_PROTOCOL_ID) == 0;
    }
    return has && peer->state == NODE_PEER_CONNECTED && peer->address_count > 0;
}

static const struct multiaddr *find_store(const struct node_peer_list *list)
{
    for (size_t i = 0; i < list->count; i++) {
        if (has_store(&list->peers[i])) {
            return &list->peers[i].addresses[0];
        }
    }
    return NULL;
}

static void find_and_ask(struct rest_job *job)
{
    struct peer_query *query =
            (struct peer_query *)((char *)job - offsetof(struct peer_query, job));
    struct rest_store_call *call = query->call;
    struct node_peer_list *list = NULL;
    const struct multiaddr *peer = NULL;
    if (node_peers_list(query->rest->node, &list, STORE_CLIENT_TIMEOUT_MS) == STATUS_OK) {
        peer = find_store(list);
    }
    enum status status = peer == NULL ? STATUS_NOT_FOUND : ask(query->rest, call, peer);
    if (status != STATUS_OK) {
        call->end(call, status, NULL, "");
    }
    node_peer_list_destroy(&list);
    free(query);
}

static enum status post_search(struct rest *rest, struct rest_store_call *call)
{
    struct peer_query *query = calloc(1, sizeof(*query));
    if (query == NULL) {
        return STATUS_NO_MEMORY;
    }
    *query = (struct peer_query){.job.run = find_and_ask, .rest = rest, .call = call};
    rest_post_job(rest, &query->job);
    return STATUS_OK;
}

enum status rest_query_peer(struct rest *rest, struct rest_store_call *call)
{
    struct multiaddr address;
    const char *peer = call->peer != NULL ? call->peer : rest->store_node;
    if (rest->node->network == NULL) {
        return STATUS_NOT_FOUND;
    }
    if (peer != NULL && store_client_read_address(&address, peer) != STATUS_OK) {
        return STATUS_BAD_ADDRESS;
    }
    store_client_make_id(call->request_id);
    return peer != NULL ? ask(rest, call, &address) : post_search(rest, call);
}
