/* SPDX-License-Identifier: MIT */
#include "net/peer_manager/peer_manager.h"

#include <openssl/rand.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/memory.h"
#include "base/metrics.h"
#include "net/peer_manager/peer_manager_private.h"

enum {
    IDENTIFY_TICK_MS = 1000,
    TIMERS = 3
};

uint64_t peer_manager_now(const struct peer_manager *manager)
{
    return io_loop_now_ms(manager->loop);
}

/* One dial; a copy of the id, since the record may be forgotten meanwhile. */
struct attempt {
    struct peer_manager *manager;
    struct peer_id peer;
    void (*done)(void *context, enum status status);
    void *context;
};

static void log_failure(const struct peer_manager *manager, const struct peer_record *peer,
        const struct multiaddr *address, enum status status)
{
    static struct log_limit limit;
    char text[MULTIADDR_TEXT_SIZE];
    uint64_t now_ms = peer_manager_now(manager);
    log_write_limited(&limit, peer->is_static ? LOG_NOTICE : LOG_DEBUG, "peers",
            "%s cannot be reached: %s; again in %llu ms", multiaddr_print(text, address),
            status_text(status),
            (unsigned long long)(peer->due_ms > now_ms ? peer->due_ms - now_ms : 0));
}

static void note_outcome(struct peer_manager *manager, struct peer_record *peer, enum status status,
        uint64_t connection)
{
    if (status != STATUS_OK) {
        struct multiaddr address = peer->addresses[peer->next_address];
        metrics_add(METRIC_NET_PEER_DIALS_FAILED, 1);
        peer_store_failed(manager->store, peer, peer_manager_now(manager));
        log_failure(manager, peer, &address, status);
        return;
    }
    /* It may stand since before the peer was known. */
    const struct peer_connection *standing =
            peer_connections_find(&manager->connections, connection);
    peer_store_succeeded(peer, peer_manager_now(manager));
    if (standing != NULL) {
        peer->connection = standing->id;
        peer->is_outbound = standing->is_outbound;
    } else {
        peer_store_failed(manager->store, peer, peer_manager_now(manager));
    }
}

static void on_dialled(void *context, enum status status, uint64_t connection)
{
    struct attempt attempt = *(struct attempt *)context;
    struct peer_manager *manager = attempt.manager;
    struct peer_record *peer = peer_store_find(manager->store, &attempt.peer);
    memory_free(context);
    manager->dialling--;
    if (peer != NULL) {
        note_outcome(manager, peer, status, connection);
    }
    if (attempt.done != NULL) {
        attempt.done(attempt.context, status);
    }
    peer_manager_dial_due(manager);
}

enum status peer_manager_attempt(struct peer_manager *manager, const struct multiaddr *address,
        void (*done)(void *context, enum status status), void *context)
{
    struct attempt *attempt = memory_allocate_zeroed(sizeof(*attempt));
    if (attempt == NULL) {
        return STATUS_NO_MEMORY;
    }
    *attempt = (struct attempt){.manager = manager, .done = done, .context = context};
    enum status status = multiaddr_peer(&attempt->peer, address) ? STATUS_OK : STATUS_BAD_ADDRESS;
    struct switch_dial dial = {.address = *address, .done = on_dialled, .context = attempt};
    if (status == STATUS_OK) {
        status = switch_dial(manager->net_switch, &dial);
    }
    if (status != STATUS_OK) {
        memory_free(attempt);
        return status;
    }
    struct peer_record *peer = peer_store_find(manager->store, &attempt->peer);
    if (peer != NULL) {
        peer->is_dialling = true;
    }
    manager->dialling++;
    return STATUS_OK;
}

static bool wants_more(const struct peer_manager *manager)
{
    return peer_slots_want_more(&manager->slots, &manager->connections.counts, manager->dialling);
}

static void on_due(uv_timer_t *timer)
{
    peer_manager_dial_due(timer->data);
}

void peer_manager_dial_due(struct peer_manager *manager)
{
    uint64_t now_ms = peer_manager_now(manager);
    struct peer_record *peer;
    if (!manager->is_started || manager->is_stopping) {
        return;
    }
    while (manager->dialling < PEER_DIALS_MAX &&
            (peer = peer_store_next(manager->store, wants_more(manager), now_ms)) != NULL) {
        if (peer_manager_attempt(manager, &peer->addresses[peer->next_address], NULL, NULL) !=
                STATUS_OK) {
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

/* Neither static nor asked for: it has to have a slot. */
static bool needs_slot(const struct peer_manager *manager, const struct peer_id *id)
{
    const struct peer_record *peer = peer_store_find(manager->store, id);
    return peer == NULL || (!peer->is_static && peer->origin != PEER_ORIGIN_REQUESTED);
}

static bool on_admit(void *context, const struct switch_peer *peer)
{
    struct peer_manager *manager = context;
    return peer->is_outbound || !needs_slot(manager, &peer->peer) ||
           peer_slots_have_room(&manager->slots, &manager->connections.counts);
}

static void on_admitted(void *context, const struct switch_peer *admitted)
{
    struct peer_manager *manager = context;
    struct peer_record *peer = peer_store_find(manager->store, &admitted->peer);
    if (peer_connections_add(&manager->connections, admitted, peer_manager_now(manager)) == NULL) {
        switch_close_connection(manager->net_switch, admitted->connection, CLOSE_NO_MEMORY);
        return;
    }
    if (peer != NULL) {
        peer->connection = admitted->connection;
        peer->is_outbound = admitted->is_outbound;
        peer_store_succeeded(peer, peer_manager_now(manager));
    }
}

static void on_left(void *context, const struct switch_peer *left, enum close_reason reason)
{
    struct peer_manager *manager = context;
    struct peer_connection *connection =
            peer_connections_find(&manager->connections, left->connection);
    struct peer_record *peer = peer_store_find(manager->store, &left->peer);
    uint64_t now_ms = peer_manager_now(manager);
    if (connection != NULL) {
        peer_connections_remove(&manager->connections, connection);
    }
    if (peer != NULL && peer->connection == left->connection) {
        peer->connection = 0;
        if (reason == CLOSE_DUPLICATE) {
            return; /* the other connection is admitted next */
        }
        peer_store_lost(manager->store, peer, now_ms);
        if (reason == CLOSE_OTHER_CLUSTER || reason == CLOSE_GRAYLISTED) {
            peer_store_avoid(peer, now_ms + manager->options.avoided_ms);
        }
    }
    peer_manager_dial_due(manager);
}

static const struct switch_gatekeeper gatekeeper = {
        .admit = on_admit, .admitted = on_admitted, .left = on_left};

void peer_manager_judge(
        struct peer_manager *manager, struct peer_connection *connection, enum peer_kind kind)
{
    if (connection->kind == kind) {
        return;
    }
    peer_connections_set_kind(&manager->connections, connection, kind);
    if (peer_slots_exceeded(
                &manager->slots, &manager->connections.counts, kind, connection->is_outbound) &&
            needs_slot(manager, &connection->peer)) {
        switch_close_connection(manager->net_switch, connection->id, CLOSE_SLOTS_MAX);
    }
    peer_manager_dial_due(manager);
}

/* A peer that does not say what it is gets no more than a client's place. */
static void on_identify_tick(uv_timer_t *timer)
{
    struct peer_manager *manager = timer->data;
    uint64_t now_ms = peer_manager_now(manager);
    struct peer_connection *connection;
    while ((connection = TAILQ_FIRST(&manager->connections.unknown)) != NULL &&
            now_ms - connection->since_ms >= manager->options.identify_ms) {
        peer_manager_judge(manager, connection, PEER_SERVICE);
    }
}

static void on_save_due(uv_timer_t *timer)
{
    peer_manager_save(timer->data);
}

static void on_found_in_file(void *context, const struct multiaddr *address)
{
    struct peer_manager *manager = context;
    /* What does not fit any more is not needed. */
    enum status status =
            peer_store_add(manager->store, address, PEER_ORIGIN_FILE, peer_manager_now(manager));
    (void)status;
}

static void read_file(struct peer_manager *manager)
{
    if (manager->file == NULL) {
        return;
    }
    enum status status = peer_file_read(manager->file, on_found_in_file, manager);
    if (status != STATUS_OK && status != STATUS_NOT_FOUND) {
        log_write(LOG_WARN, "peers", "%s cannot be read: %s", manager->file, status_text(status));
    }
}

static void set_number(uint64_t *value, uint64_t fallback)
{
    *value = *value == 0 ? fallback : *value;
}

static void fill_defaults(struct peer_manager_options *options)
{
    if (options->relay_service_ratio == NULL) {
        options->relay_service_ratio = "50:50";
    }
    if (options->connections_max == 0) {
        options->connections_max = SWITCH_CONNECTIONS_MAX;
    }
    set_number(&options->backoff_first_ms, PEER_BACKOFF_FIRST_MS);
    set_number(&options->backoff_max_ms, PEER_BACKOFF_MAX_MS);
    set_number(&options->static_backoff_max_ms, PEER_STATIC_BACKOFF_MAX_MS);
    set_number(&options->identify_ms, PEER_IDENTIFY_MS);
    set_number(&options->avoided_ms, PEER_AVOIDED_MS);
}

static enum status create_parts(struct peer_manager *manager)
{
    const struct peer_manager_options *options = &manager->options;
    struct peer_store_options store_options = {
            .capacity = options->store_capacity,
            .backoff_first_ms = options->backoff_first_ms,
            .backoff_max_ms = options->backoff_max_ms,
            .static_backoff_max_ms = options->static_backoff_max_ms,
    };
    enum status status = peer_slots_init(
            &manager->slots, options->connections_max, options->relay_service_ratio);
    if (status == STATUS_OK &&
            RAND_bytes((unsigned char *)&store_options.seed, sizeof(store_options.seed)) != 1) {
        status = STATUS_SYSTEM;
    }
    if (status == STATUS_OK) {
        status = peer_store_create(&manager->store, &store_options);
    }
    if (status == STATUS_OK && options->file != NULL) {
        manager->file = strdup(options->file);
        status = manager->file == NULL ? STATUS_NO_MEMORY : STATUS_OK;
    }
    return status;
}

static void free_parts(struct peer_manager *manager)
{
    peer_connections_fini(&manager->connections);
    peer_store_destroy(&manager->store);
    free(manager->file);
    memory_free(manager);
}

enum status peer_manager_create(
        struct peer_manager **out, const struct peer_manager_options *options)
{
    struct peer_manager *manager = memory_allocate_zeroed(sizeof(*manager));
    if (manager == NULL || peer_connections_init(&manager->connections) != STATUS_OK) {
        memory_free(manager);
        return STATUS_NO_MEMORY;
    }
    manager->options = *options;
    fill_defaults(&manager->options);
    manager->net_switch = options->net_switch;
    manager->loop = switch_control_loop(options->net_switch);
    enum status status = create_parts(manager);
    if (status != STATUS_OK) {
        free_parts(manager);
        return status;
    }
    read_file(manager);
    uv_timer_t *timers[TIMERS] = {&manager->due, &manager->save, &manager->identify};
    for (size_t i = 0; i < TIMERS; i++) {
        /* libuv's documentation: it always succeeds. */
        uv_timer_init(io_loop_uv(manager->loop), timers[i]);
        timers[i]->data = manager;
    }
    if (manager->file != NULL) {
        uv_timer_start(&manager->save, on_save_due, PEER_SAVE_MS, PEER_SAVE_MS);
    }
    uint64_t tick_ms = manager->options.identify_ms < IDENTIFY_TICK_MS
                               ? manager->options.identify_ms
                               : IDENTIFY_TICK_MS;
    uv_timer_start(&manager->identify, on_identify_tick, tick_ms, tick_ms);
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
    uv_timer_t *timers[TIMERS] = {&manager->due, &manager->save, &manager->identify};
    for (size_t i = 0; i < TIMERS; i++) {
        uv_close((uv_handle_t *)timers[i], on_timer_closed);
    }
    while (manager->closed_timers < TIMERS || manager->is_saving) {
        io_loop_run_once(manager->loop);
    }
    free_parts(manager);
    *manager_pointer = NULL;
}
