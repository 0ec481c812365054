/* SPDX-License-Identifier: MIT */

/* What other threads ask of the peer manager: each request is a task for the control thread. */

#include "base/log.h"
#include "base/memory.h"
#include "base/metrics.h"
#include "net/peer_manager/peer_manager_private.h"

struct request {
    struct io_task task;
    struct peer_manager *manager;
    struct multiaddr address;
    struct peer_id peer;
    enum peer_origin origin;
    uint64_t connection;
    enum peer_kind kind;
    struct peer_facts *facts;
    struct peer_metadata *metadata;
    void (*done)(void *context, enum status status);
    void (*visit)(void *context, const struct peer_view *peer);
    void *context;
};

static struct request *request_create(
        struct peer_manager *manager, void (*run)(struct io_task *task))
{
    struct request *request = memory_allocate_zeroed(sizeof(*request));
    if (request != NULL) {
        request->task.run = run;
        request->manager = manager;
    }
    return request;
}

static enum status post(struct request *request)
{
    if (request == NULL) {
        return STATUS_NO_MEMORY;
    }
    io_loop_post(request->manager->loop, &request->task);
    return STATUS_OK;
}

static struct request take(struct io_task *task)
{
    struct request request = *(struct request *)task;
    memory_free(task);
    return request;
}

static enum status check_address(const struct multiaddr *address)
{
    struct multiaddr_endpoint endpoint;
    enum status status = multiaddr_endpoint(&endpoint, address);
    if (status == STATUS_OK && !endpoint.has_peer) {
        status = STATUS_BAD_ADDRESS;
    }
    return status;
}

/* A peer that is connected already is known as such at once. */
static void add(struct peer_manager *manager, const struct multiaddr *address,
        enum peer_origin origin, const struct peer_connection *connection)
{
    struct peer_id id;
    enum status status = peer_store_add(manager->store, address, origin, peer_manager_now(manager));
    if (status != STATUS_OK) {
        metrics_add(METRIC_NET_PEERS_NOT_STORED, 1);
        return;
    }
    struct peer_record *peer =
            multiaddr_peer(&id, address) ? peer_store_find(manager->store, &id) : NULL;
    if (peer == NULL || peer->connection != 0) {
        return;
    }
    if (connection == NULL) {
        connection = peer_connections_find_peer(&manager->connections, &id);
    }
    if (connection != NULL) {
        peer->connection = connection->id;
        peer->is_outbound = connection->is_outbound;
        peer->was_connected = true;
        peer->heard_ms = connection->since_ms;
    }
}

static void run_add(struct io_task *task)
{
    struct request request = take(task);
    add(request.manager, &request.address, request.origin, NULL);
    peer_manager_dial_due(request.manager);
}

enum status peer_manager_add(
        struct peer_manager *manager, const struct multiaddr *address, enum peer_origin origin)
{
    enum status status = check_address(address);
    if (status != STATUS_OK) {
        return status;
    }
    struct request *request = request_create(manager, run_add);
    if (request != NULL) {
        request->address = *address;
        request->origin = origin;
    }
    return post(request);
}

static void run_dial(struct io_task *task)
{
    struct request request = take(task);
    struct peer_manager *manager = request.manager;
    enum status status = STATUS_CLOSED;
    if (!manager->is_stopping) {
        add(manager, &request.address, PEER_ORIGIN_REQUESTED, NULL);
        status = peer_manager_attempt(manager, &request.address, request.done, request.context);
    }
    if (status != STATUS_OK) {
        request.done(request.context, status);
    }
}

enum status peer_manager_dial(struct peer_manager *manager, const struct multiaddr *address,
        void (*done)(void *context, enum status status), void *context)
{
    enum status status = check_address(address);
    if (status != STATUS_OK) {
        return status;
    }
    struct request *request = request_create(manager, run_dial);
    if (request != NULL) {
        request->address = *address;
        request->done = done;
        request->context = context;
    }
    return post(request);
}

const struct peer_protocols *peer_manager_protocols(const struct peer_manager *manager)
{
    return &manager->connections.protocols;
}

static void run_remove(struct io_task *task)
{
    struct request request = take(task);
    struct peer_manager *manager = request.manager;
    /* One that came to us may be connected without that an address of it is kept. */
    const struct peer_connection *connection =
            peer_connections_find_peer(&manager->connections, &request.peer);
    enum status status = peer_store_remove(manager->store, &request.peer);
    (void)status; /* not kept: only connected */
    if (connection != NULL) {
        switch_close_connection(manager->net_switch, connection->id, CLOSE_REQUESTED);
    }
}

enum status peer_manager_remove(struct peer_manager *manager, const struct peer_id *peer)
{
    struct request *request = request_create(manager, run_remove);
    if (request != NULL) {
        request->peer = *peer;
    }
    return post(request);
}

static void run_set_kind(struct io_task *task)
{
    struct request request = take(task);
    struct peer_connection *connection =
            peer_connections_find(&request.manager->connections, request.connection);
    if (connection != NULL) {
        peer_manager_judge(request.manager, connection, request.kind);
    }
}

void peer_manager_set_kind(struct peer_manager *manager, uint64_t connection, enum peer_kind kind)
{
    struct request *request = request_create(manager, run_set_kind);
    if (request != NULL) {
        request->connection = connection;
        request->kind = kind;
        io_loop_post(manager->loop, &request->task);
    }
}

/*
 * Addresses by which a relay peer may be dialled another time. What an option says of a static peer
 * is not to be pushed out by what the peer says.
 */
static void learn_addresses(struct peer_manager *manager, const struct peer_connection *connection)
{
    const struct peer_record *peer = peer_store_find(manager->store, &connection->peer);
    if (connection->kind != PEER_RELAY || (peer != NULL && peer->is_static)) {
        return;
    }
    for (size_t i = 0; i < connection->facts->address_count; i++) {
        add(manager, &connection->facts->addresses[i], PEER_ORIGIN_INBOUND, connection);
    }
}

static void run_identified(struct io_task *task)
{
    struct request request = take(task);
    struct peer_connection *connection =
            peer_connections_find(&request.manager->connections, request.connection);
    bool is_news =
            connection != NULL && (request.facts->has_protocols || connection->facts == NULL);
    if (!is_news) {
        memory_free(request.facts);
        return;
    }
    peer_connections_set_facts(&request.manager->connections, connection, request.facts);
    if (request.facts->has_protocols) {
        peer_manager_judge(request.manager, connection, request.kind);
    }
    learn_addresses(request.manager, connection);
}

void peer_manager_identified(struct peer_manager *manager, uint64_t connection, enum peer_kind kind,
        struct peer_facts *facts)
{
    struct request *request = request_create(manager, run_identified);
    if (request == NULL) {
        memory_free(facts);
        return;
    }
    request->connection = connection;
    request->kind = kind;
    request->facts = facts;
    io_loop_post(manager->loop, &request->task);
}

static void run_metadata(struct io_task *task)
{
    struct request request = take(task);
    struct peer_connection *connection =
            peer_connections_find(&request.manager->connections, request.connection);
    if (connection == NULL) {
        memory_free(request.metadata);
        return;
    }
    memory_free(connection->metadata);
    connection->metadata = request.metadata;
}

void peer_manager_set_metadata(
        struct peer_manager *manager, uint64_t connection, struct peer_metadata *metadata)
{
    struct request *request = request_create(manager, run_metadata);
    if (request == NULL) {
        memory_free(metadata);
        return;
    }
    request->connection = connection;
    request->metadata = metadata;
    io_loop_post(manager->loop, &request->task);
}

static void run_visit(struct io_task *task)
{
    struct request request = take(task);
    const struct peer_manager *manager = request.manager;
    const struct peer_connection *connection;
    TAILQ_FOREACH(connection, &manager->connections.all, link)
    {
        struct peer_view view = {.connection = connection,
                .record = peer_store_find(manager->store, &connection->peer)};
        request.visit(request.context, &view);
    }
    const struct peer_record *peer;
    for (size_t i = 0; (peer = peer_store_at(manager->store, i)) != NULL; i++) {
        if (peer->connection == 0) {
            request.visit(request.context, &(struct peer_view){.record = peer});
        }
    }
    request.visit(request.context, NULL);
}

enum status peer_manager_visit(struct peer_manager *manager,
        void (*visit)(void *context, const struct peer_view *peer), void *context)
{
    struct request *request = request_create(manager, run_visit);
    if (request != NULL) {
        request->visit = visit;
        request->context = context;
    }
    return post(request);
}

static void run_start(struct io_task *task)
{
    struct request request = take(task);
    request.manager->is_started = true;
    peer_manager_dial_due(request.manager);
}

void peer_manager_start(struct peer_manager *manager)
{
    if (post(request_create(manager, run_start)) != STATUS_OK) {
        log_write(LOG_WARN, "peers", "no peers are dialled: %s", status_text(STATUS_NO_MEMORY));
    }
}

static void run_stop(struct io_task *task)
{
    struct request request = take(task);
    struct peer_manager *manager = request.manager;
    manager->is_stopping = true;
    uv_timer_stop(&manager->due);
    uv_timer_stop(&manager->save);
    peer_manager_save(manager);
}

void peer_manager_stop(struct peer_manager *manager)
{
    enum status status = post(request_create(manager, run_stop));
    if (status != STATUS_OK) {
        log_write(LOG_WARN, "peers", "peers are not saved: %s", status_text(status));
    }
}
