/* SPDX-License-Identifier: MIT */
#include "net/peer_manager/peer_manager.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

#include "base/log.h"
#include "base/memory.h"
#include "base/metrics.h"
#include "net/peer_manager/peer_manager_private.h"

static uint64_t or_default(uint64_t value, uint64_t fallback)
{
    return value == 0 ? fallback : value;
}

static uint64_t now_of(const struct peer_manager *manager)
{
    return io_loop_now_ms(manager->loop);
}

/* One attempt; a copy of the id, since the record may be forgotten meanwhile. */
struct attempt {
    struct peer_manager *manager;
    struct peer_id peer;
};

static void dial_what_is_due(struct peer_manager *manager);

static void on_dialled(void *context, enum status status, uint64_t connection)
{
    (void)connection;
    struct attempt *attempt = context;
    struct peer_manager *manager = attempt->manager;
    struct peer_record *peer = peer_store_find(manager->store, &attempt->peer);
    manager->dialling--;
    memory_free(attempt);
    if (peer != NULL && status == STATUS_OK) {
        peer_store_succeeded(peer, now_of(manager));
    } else if (peer != NULL) {
        metrics_add(METRIC_NET_PEER_DIALS_FAILED, 1);
        peer_store_failed(manager->store, peer, now_of(manager));
    }
    dial_what_is_due(manager);
}

static enum status start_dial(struct peer_manager *manager, struct peer_record *peer)
{
    struct attempt *attempt = memory_allocate_zeroed(sizeof(*attempt));
    if (attempt == NULL) {
        return STATUS_NO_MEMORY;
    }
    attempt->manager = manager;
    attempt->peer = peer->id;
    struct switch_dial dial = {
            .address = peer->addresses[peer->next_address], .done = on_dialled, .context = attempt};
    enum status status = switch_dial(manager->net_switch, &dial);
    if (status != STATUS_OK) {
        memory_free(attempt);
        return status;
    }
    peer->is_dialling = true;
    manager->dialling++;
    return STATUS_OK;
}

static bool wants_more(const struct peer_manager *manager)
{
    return peer_slots_want_more(&manager->slots, &manager->counts, manager->dialling);
}

static void on_due(uv_timer_t *timer)
{
    dial_what_is_due(timer->data);
}

static void dial_what_is_due(struct peer_manager *manager)
{
    uint64_t now_ms = now_of(manager);
    struct peer_record *peer;
    if (manager->is_stopping) {
        return;
    }
    while (manager->dialling < PEER_DIALS_MAX &&
            (peer = peer_store_next(manager->store, wants_more(manager), now_ms)) != NULL) {
        if (start_dial(manager, peer) != STATUS_OK) {
            peer_store_failed(manager->store, peer, now_ms);
        }
    }
    uint64_t due_ms = peer_store_next_due_ms(manager->store, wants_more(manager));
    if (due_ms != UINT64_MAX && manager->dialling < PEER_DIALS_MAX) {
        uv_timer_start(&manager->due, on_due, due_ms > now_ms ? due_ms - now_ms : 0, 0);
    } else {
        uv_timer_stop(&manager->due);
    }
}

static struct managed_connection *find_connection(struct peer_manager *manager, uint64_t id)
{
    for (size_t i = 0; i < manager->connection_count; i++) {
        if (manager->connections[i].id == id) {
            return &manager->connections[i];
        }
    }
    return NULL;
}

static bool is_static(const struct peer_manager *manager, const struct peer_id *id)
{
    const struct peer_record *peer = peer_store_find(manager->store, id);
    return peer != NULL && peer->is_static;
}

static bool on_admit(void *context, const struct switch_peer *peer)
{
    struct peer_manager *manager = context;
    if (manager->connection_count == manager->connection_capacity) {
        return false;
    }
    return peer->is_outbound || is_static(manager, &peer->peer) ||
           peer_slots_have_room(&manager->slots, &manager->counts);
}

static void on_admitted(void *context, const struct switch_peer *admitted)
{
    struct peer_manager *manager = context;
    struct peer_record *peer = peer_store_find(manager->store, &admitted->peer);
    manager->connections[manager->connection_count++] =
            (struct managed_connection){.id = admitted->connection,
                    .peer = admitted->peer,
                    .kind = PEER_UNKNOWN,
                    .is_outbound = admitted->is_outbound};
    peer_counts_add(&manager->counts, PEER_UNKNOWN, admitted->is_outbound);
    if (peer != NULL) {
        peer->connection = admitted->connection;
        peer->is_outbound = admitted->is_outbound;
        peer_store_succeeded(peer, now_of(manager));
    }
}

static void on_left(void *context, const struct switch_peer *left, enum close_reason reason)
{
    (void)reason;
    struct peer_manager *manager = context;
    struct managed_connection *connection = find_connection(manager, left->connection);
    struct peer_record *peer = peer_store_find(manager->store, &left->peer);
    if (connection != NULL) {
        peer_counts_remove(&manager->counts, connection->kind, connection->is_outbound);
        *connection = manager->connections[--manager->connection_count];
    }
    if (peer != NULL && peer->connection == left->connection) {
        peer->connection = 0;
        peer_store_lost(manager->store, peer, now_of(manager));
    }
    dial_what_is_due(manager);
}

static const struct switch_gatekeeper gatekeeper = {
        .admit = on_admit, .admitted = on_admitted, .left = on_left};

static void on_save_due(uv_timer_t *timer)
{
    peer_manager_save(timer->data);
}

static void on_found_in_file(void *context, const struct multiaddr *address)
{
    struct peer_manager *manager = context;
    /* What does not fit any more is not needed. */
    enum status status = peer_store_add(manager->store, address, false, now_of(manager));
    (void)status;
}

static enum status read_file(struct peer_manager *manager)
{
    if (manager->file == NULL) {
        return STATUS_OK;
    }
    enum status status = peer_file_read(manager->file, on_found_in_file, manager);
    if (status != STATUS_OK && status != STATUS_NOT_FOUND) {
        log_write(LOG_WARN, "peers", "%s cannot be read: %s", manager->file, status_text(status));
    }
    return STATUS_OK;
}

static enum status create_parts(
        struct peer_manager *manager, const struct peer_manager_options *options)
{
    const char *ratio =
            options->relay_service_ratio == NULL ? "50:50" : options->relay_service_ratio;
    size_t total = or_default(options->connections_max, SWITCH_CONNECTIONS_MAX);
    enum status status = peer_slots_init(&manager->slots, total, ratio);
    if (status != STATUS_OK) {
        return status;
    }
    struct peer_store_options store_options = {
            .capacity = options->store_capacity,
            .backoff_first_ms = or_default(options->backoff_first_ms, PEER_BACKOFF_FIRST_MS),
            .backoff_max_ms = or_default(options->backoff_max_ms, PEER_BACKOFF_MAX_MS),
            .seed = uv_hrtime(),
    };
    status = peer_store_create(&manager->store, &store_options);
    if (status != STATUS_OK) {
        return status;
    }
    manager->connection_capacity = total;
    manager->connections = memory_allocate_zeroed(total * sizeof(*manager->connections));
    if (options->file != NULL) {
        manager->file = strdup(options->file);
    }
    bool is_complete =
            manager->connections != NULL && (options->file == NULL || manager->file != NULL);
    return is_complete ? STATUS_OK : STATUS_NO_MEMORY;
}

static void free_parts(struct peer_manager *manager)
{
    peer_store_destroy(&manager->store);
    memory_free(manager->connections);
    free(manager->file);
    memory_free(manager);
}

enum status peer_manager_create(
        struct peer_manager **out, const struct peer_manager_options *options)
{
    struct peer_manager *manager = memory_allocate_zeroed(sizeof(*manager));
    if (manager == NULL) {
        return STATUS_NO_MEMORY;
    }
    manager->net_switch = options->net_switch;
    manager->loop = switch_control_loop(options->net_switch);
    enum status status = create_parts(manager, options);
    if (status == STATUS_OK) {
        status = read_file(manager);
    }
    if (status != STATUS_OK) {
        free_parts(manager);
        return status;
    }
    uv_timer_init(io_loop_uv(manager->loop), &manager->due);
    uv_timer_init(io_loop_uv(manager->loop), &manager->save);
    manager->due.data = manager;
    manager->save.data = manager;
    uv_timer_start(&manager->due, on_due, 0, 0);
    if (manager->file != NULL) {
        uv_timer_start(&manager->save, on_save_due, PEER_SAVE_MS, PEER_SAVE_MS);
    }
    switch_set_gatekeeper(manager->net_switch, &gatekeeper, manager);
    *out = manager;
    return STATUS_OK;
}

static void on_timer_closed(uv_handle_t *handle)
{
    struct peer_manager *manager = handle->data;
    manager->closed_timers++;
}

void peer_manager_destroy(struct peer_manager **manager_pointer)
{
    struct peer_manager *manager = *manager_pointer;
    if (manager == NULL) {
        return;
    }
    uv_close((uv_handle_t *)&manager->due, on_timer_closed);
    uv_close((uv_handle_t *)&manager->save, on_timer_closed);
    while (manager->closed_timers < 2 || manager->is_saving) {
        io_loop_run_once(manager->loop);
    }
    free_parts(manager);
    *manager_pointer = NULL;
}

/* Requests of other threads. */
struct request {
    struct io_task task;
    struct peer_manager *manager;
    struct multiaddr address;
    struct peer_id peer;
    uint64_t connection;
    enum peer_kind kind;
    bool is_static;
    void (*visit)(void *context, const struct peer_record *peer);
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

static void run_add(struct io_task *task)
{
    struct request request = take(task);
    struct peer_manager *manager = request.manager;
    enum status status =
            peer_store_add(manager->store, &request.address, request.is_static, now_of(manager));
    if (status != STATUS_OK) {
        metrics_add(METRIC_NET_PEERS_NOT_STORED, 1);
    }
    dial_what_is_due(manager);
}

enum status peer_manager_add(
        struct peer_manager *manager, const struct multiaddr *address, bool is_static_peer)
{
    struct multiaddr_endpoint endpoint;
    enum status status = multiaddr_endpoint(&endpoint, address);
    if (status != STATUS_OK) {
        return status;
    }
    if (!endpoint.has_peer) {
        return STATUS_BAD_ADDRESS;
    }
    struct request *request = request_create(manager, run_add);
    if (request != NULL) {
        request->address = *address;
        request->is_static = is_static_peer;
    }
    return post(request);
}

static void run_remove(struct io_task *task)
{
    struct request request = take(task);
    struct peer_manager *manager = request.manager;
    struct peer_record *peer = peer_store_find(manager->store, &request.peer);
    if (peer == NULL) {
        return;
    }
    uint64_t connection = peer->connection;
    if (peer_store_remove(manager->store, &request.peer) == STATUS_OK && connection != 0) {
        switch_close_connection(manager->net_switch, connection, CLOSE_REQUESTED);
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
    struct peer_manager *manager = request.manager;
    struct managed_connection *connection = find_connection(manager, request.connection);
    if (connection == NULL || connection->kind == request.kind) {
        return;
    }
    peer_counts_remove(&manager->counts, connection->kind, connection->is_outbound);
    connection->kind = request.kind;
    peer_counts_add(&manager->counts, connection->kind, connection->is_outbound);
    bool is_one_too_many = peer_slots_exceeded(&manager->slots, &manager->counts, connection->kind,
                                   connection->is_outbound) &&
                           !is_static(manager, &connection->peer);
    if (is_one_too_many) {
        switch_close_connection(manager->net_switch, connection->id, CLOSE_SLOTS_MAX);
    }
    dial_what_is_due(manager);
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

static void run_visit(struct io_task *task)
{
    struct request request = take(task);
    struct peer_record *peer;
    for (size_t i = 0; (peer = peer_store_at(request.manager->store, i)) != NULL; i++) {
        request.visit(request.context, peer);
    }
    request.visit(request.context, NULL);
}

enum status peer_manager_visit(struct peer_manager *manager,
        void (*visit)(void *context, const struct peer_record *peer), void *context)
{
    struct request *request = request_create(manager, run_visit);
    if (request != NULL) {
        request->visit = visit;
        request->context = context;
    }
    return post(request);
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
