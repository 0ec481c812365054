/* SPDX-License-Identifier: MIT */

/* Store queries that REST clients put to another node: dialled, asked, and its answer handed on. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "net/protocols/exchange.h"
#include "net/protocols/service_code.h"
#include "net/protocols/store_message.h"
#include "node/network.h"
#include "node/peers.h"
#include "node/rest_private.h"

enum {
    QUERY_TIMEOUT_MS = 5000,
    ANSWER_MAX = 64 * 1024 * 1024, /* 100 messages of the largest kind, with room */
    DESCRIPTION_SIZE = 256,
    BAD_ANSWER = 300, /* codes that only the asking side has */
    UNREACHABLE = 504
};

/* One query, from the call to its end. One thread at a time works on it. */
struct peer_query {
    struct io_task task;
    struct rest_job job; /* to find a peer */
    struct rest *rest;
    struct rest_store_call *call;
    struct switch_dial dial;
    uint64_t deadline_ns;
    uint8_t *request; /* from base/memory.h */
    size_t length;
};

static void end(struct peer_query *query, enum status status, const struct archive_page *page,
        const char *description)
{
    struct rest_store_call *call = query->call;
    memory_free(query->request);
    free(query);
    call->end(call, status, page, description);
}

/* As the reference names what its client meets with; the name stands before the description. */
static void end_with_code(struct peer_query *query, uint32_t code, struct span description)
{
    static const struct {
        uint32_t code;
        const char *name;
    } names[] = {{BAD_ANSWER, "BAD_RESPONSE"}, {SERVICE_BAD_REQUEST, "BAD_REQUEST"},
            {SERVICE_UNAVAILABLE, "SERVICE_UNAVAILABLE"}, {UNREACHABLE, "PEER_DIAL_FAILURE"}};
    char text[DESCRIPTION_SIZE];
    const char *name = NULL;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        name = names[i].code == code ? names[i].name : name;
    }
    query->call->has_peer_code = true;
    query->call->peer_code = name != NULL ? code : 0;
    snprintf(text, sizeof(text), "%s%s%.*s", name != NULL ? name : "UNKNOWN",
            description.length > 0 ? ": " : "",
            (int)(description.length < 200 ? description.length : 200),
            description.length > 0 ? (const char *)description.bytes : "");
    end(query, STATUS_CLOSED, NULL, text);
}

static void end_unreached(struct peer_query *query)
{
    char id[PEER_ID_TEXT_SIZE] = "";
    struct peer_id peer;
    if (multiaddr_peer(&peer, &query->dial.address)) {
        peer_id_print(id, &peer);
    }
    end_with_code(query, UNREACHABLE, span_of_text(id));
}

/* Of this node: a timeout, a client that does not read, no memory. Else it is the peer's. */
static void end_failed(struct peer_query *query, enum status status)
{
    if (status == STATUS_TIMED_OUT || status == STATUS_BUSY || status == STATUS_NO_MEMORY) {
        end(query, status, NULL, status_text(status));
    } else if (status == STATUS_NO_COMMON_PROTOCOL) {
        end_unreached(query);
    } else {
        end_with_code(query, BAD_ANSWER, span_of_text(status_text(status)));
    }
}

static void end_dial(struct peer_query *query, enum status status)
{
    if (status == STATUS_TIMED_OUT || status == STATUS_NO_MEMORY) {
        end_failed(query, status);
    } else {
        end_unreached(query);
    }
}

/* The rows in turn; what fails ends them. */
static enum status pass_rows(const struct peer_query *query, struct store_answer_view *view)
{
    struct store_entry entry;
    enum status status = STATUS_OK;
    while (status == STATUS_OK && store_answer_next(view, &entry, &status)) {
        struct archive_row row = {
                .hash = entry.hash, .pubsub_topic = entry.pubsub_topic, .message = entry.message};
        status = query->call->row(query->call->context, &row);
    }
    return status;
}

static void end_refused(struct peer_query *query, const struct store_answer_view *view)
{
    if (view->code == SERVICE_TOO_MANY_REQUESTS) {
        end(query, STATUS_LIMIT_REACHED, NULL, "");
    } else {
        end_with_code(query, view->code, view->description);
    }
}

static void on_answered(void *context, enum status status, const char *protocol, struct span bytes)
{
    struct peer_query *query = context;
    struct store_answer_view view;
    struct archive_page page = {0};
    (void)protocol;
    if (status == STATUS_OK) {
        status = store_answer_read(&view, bytes);
    }
    if (status != STATUS_OK) {
        end_failed(query, status);
        return;
    }
    if (view.code != SERVICE_OK) {
        end_refused(query, &view);
        return;
    }
    if (view.cursor.length == MESSAGE_HASH_BYTES) {
        page.has_cursor = true;
        memcpy(page.cursor, view.cursor.bytes, MESSAGE_HASH_BYTES);
    }
    status = pass_rows(query, &view);
    if (status == STATUS_OK) {
        end(query, STATUS_OK, &page, "");
    } else {
        end_failed(query, status);
    }
}

static uint64_t left_ms(const struct peer_query *query)
{
    uint64_t now_ns = clock_monotonic_ns();
    return now_ns >= query->deadline_ns
                   ? 1
                   : (query->deadline_ns - now_ns) / NANOSECONDS_PER_MILLISECOND + 1;
}

static void ask(void *context, struct connection *connection)
{
    static const char *const protocols[] = {STORE_PROTOCOL_ID};
    struct peer_query *query = context;
    struct exchange_call call = {.protocols = protocols,
            .protocol_count = 1,
            .request = span_of(query->request, query->length),
            .answer_max = ANSWER_MAX,
            .timeout_ms = left_ms(query),
            .done = on_answered,
            .context = query};
    enum status status = connection == NULL ? STATUS_CLOSED : exchange_call(connection, &call);
    if (status != STATUS_OK) {
        end_dial(query, status);
    }
}

static void on_dialled(void *context, enum status status, uint64_t connection)
{
    struct peer_query *query = context;
    if (status == STATUS_OK) {
        status = switch_run_on_connection(
                network_switch(query->rest->node->network), connection, ask, query);
    }
    if (status != STATUS_OK) {
        end_dial(query, status);
    }
}

/* On the control loop. */
static void start(struct io_task *task)
{
    struct peer_query *query =
            (struct peer_query *)((char *)task - offsetof(struct peer_query, task));
    enum status status = switch_dial(network_switch(query->rest->node->network), &query->dial);
    if (status != STATUS_OK) {
        end_dial(query, status);
    }
}

static void dial(struct peer_query *query, const struct multiaddr *address)
{
    query->dial = (struct switch_dial){.address = *address,
            .timeout_ms = QUERY_TIMEOUT_MS,
            .done = on_dialled,
            .context = query};
    query->task.run = start;
    io_loop_post(switch_control_loop(network_switch(query->rest->node->network)), &query->task);
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

static void find_and_dial(struct rest_job *job)
{
    struct peer_query *query =
            (struct peer_query *)((char *)job - offsetof(struct peer_query, job));
    struct node_peer_list *list = NULL;
    const struct multiaddr *address = NULL;
    if (node_peers_list(query->rest->node, &list, QUERY_TIMEOUT_MS) == STATUS_OK) {
        address = find_store(list);
    }
    if (address != NULL) {
        dial(query, address);
    } else {
        end(query, STATUS_NOT_FOUND, NULL, "");
    }
    node_peer_list_destroy(&list);
}

static enum status make_query(
        struct peer_query **out, struct rest *rest, struct rest_store_call *call)
{
    struct peer_query *query = calloc(1, sizeof(*query));
    if (query == NULL) {
        return STATUS_NO_MEMORY;
    }
    query->rest = rest;
    query->call = call;
    query->deadline_ns =
            clock_monotonic_ns() + QUERY_TIMEOUT_MS * (uint64_t)NANOSECONDS_PER_MILLISECOND;
    snprintf(call->request_id, sizeof(call->request_id), "rest-%llx",
            (unsigned long long)query->deadline_ns);
    struct store_request request = {
            .request_id = span_of_text(call->request_id), .query = call->query};
    enum status status = store_request_write(&query->request, &query->length, &request);
    if (status != STATUS_OK) {
        free(query);
        return status;
    }
    *out = query;
    return STATUS_OK;
}

static enum status read_address(struct multiaddr *out, const char *text)
{
    struct multiaddr_endpoint endpoint;
    return multiaddr_parse(out, span_of_text(text)) == STATUS_OK &&
                           multiaddr_endpoint(&endpoint, out) == STATUS_OK && endpoint.has_peer
                   ? STATUS_OK
                   : STATUS_BAD_ADDRESS;
}

enum status rest_query_peer(struct rest *rest, struct rest_store_call *call)
{
    struct multiaddr address;
    struct peer_query *query;
    const char *peer = call->peer != NULL ? call->peer : rest->store_node;
    if (rest->node->network == NULL) {
        return STATUS_NOT_FOUND;
    }
    if (peer != NULL && read_address(&address, peer) != STATUS_OK) {
        return STATUS_BAD_ADDRESS;
    }
    enum status status = make_query(&query, rest, call);
    if (status != STATUS_OK) {
        return status;
    }
    if (peer != NULL) {
        dial(query, &address);
    } else {
        query->job.run = find_and_dial;
        rest_post_job(rest, &query->job);
    }
    return STATUS_OK;
}
