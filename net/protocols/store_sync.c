/* SPDX-License-Identifier: MIT */
#include "net/protocols/store_sync.h"

#include <assert.h>

#include "base/clock.h"
#include "base/memory.h"
#include "net/protocols/store_sync_private.h"
#include "net/protocols/transfer_message.h"
#include "net/switch/slot_table.h"

enum {
    SESSION_STREAMS_MAX = 2, /* of a connection, in each direction */
    TRANSFER_STREAMS_MAX = 4,
    OUTGOING_SHARE = 2 /* our payloads may be that part of what we read */
};

uint64_t store_sync_now_ms(void)
{
    return clock_monotonic_ns() / NANOSECONDS_PER_MILLISECOND;
}

struct sync_shard *store_sync_shard_of(struct store_sync *sync, uint64_t connection)
{
    size_t index = slot_table_tag_of(connection);
    assert(index < sync->shard_count);
    return &sync->shards[index];
}

struct sync_peer *store_sync_find_peer(struct sync_shard *shard, uint64_t connection)
{
    struct sync_peer *peer;
    TAILQ_FOREACH(peer, &shard->peers, link)
    {
        if (peer->connection == connection) {
            return peer;
        }
    }
    return NULL;
}

struct sync_peer *store_sync_know_peer(struct sync_shard *shard, uint64_t connection)
{
    struct sync_peer *peer = store_sync_find_peer(shard, connection);
    if (peer != NULL) {
        return peer;
    }
    peer = memory_allocate_zeroed(sizeof(*peer));
    if (peer != NULL) {
        peer->shard = shard;
        peer->connection = connection;
        peer->references = 1;
        peer->outgoing.last = &peer->outgoing.first;
        TAILQ_INSERT_TAIL(&shard->peers, peer, link);
    }
    return peer;
}

void store_sync_ref_peer(struct sync_peer *peer)
{
    peer->references++;
}

void store_sync_unref_peer(struct sync_peer *peer)
{
    if (--peer->references == 0) {
        sync_sent_fini(&peer->outgoing.sent, &peer->shard->sync->sent_account);
        memory_free(peer);
    }
}

void store_sync_begin_job(struct store_sync *sync)
{
    /* relaxed: a number; nothing is read on the strength of it */
    atomic_fetch_add_explicit(&sync->pending, 1, memory_order_relaxed);
}

void store_sync_end_job(struct store_sync *sync)
{
    /* release: who sees that nothing is pending may destroy what jobs have used */
    atomic_fetch_sub_explicit(&sync->pending, 1, memory_order_release);
}

size_t store_sync_pending(const struct store_sync *sync)
{
    return atomic_load_explicit(&sync->pending, memory_order_acquire);
}

void store_sync_identified(
        struct store_sync *sync, struct connection *connection, const struct identify_info *info)
{
    struct sync_shard *shard = store_sync_shard_of(sync, connection_id(connection));
    bool is_wanted = !sync->options.has_preferred_peer ||
                     peer_id_equal(&sync->options.preferred_peer, connection_peer(connection));
    if (!is_wanted || !identify_info_has_protocol(info, RECONCILIATION_PROTOCOL_ID)) {
        return;
    }
    struct sync_peer *peer = store_sync_know_peer(shard, connection_id(connection));
    if (peer == NULL || peer->candidate != NULL) {
        return;
    }
    peer->candidate = memory_allocate_zeroed(sizeof(*peer->candidate));
    if (peer->candidate != NULL) {
        peer->candidate->sync = sync;
        peer->candidate->connection = peer->connection;
        store_sync_add_candidate(peer->candidate);
    }
}

static void on_disconnected(void *context, struct connection *connection, enum close_reason reason)
{
    struct store_sync *sync = context;
    struct sync_shard *shard = store_sync_shard_of(sync, connection_id(connection));
    struct sync_peer *peer = store_sync_find_peer(shard, connection_id(connection));
    (void)reason;
    if (peer == NULL) {
        return;
    }
    if (peer->candidate != NULL) {
        store_sync_remove_candidate(peer->candidate);
        peer->candidate = NULL;
    }
    peer->is_gone = true;
    store_sync_stop_sending(peer);
    store_sync_peer_ended(sync, peer->connection);
    TAILQ_REMOVE(&shard->peers, peer, link);
    store_sync_unref_peer(peer);
}

static void shard_init(struct sync_shard *shard, struct store_sync *sync, struct io_loop *loop)
{
    shard->sync = sync;
    shard->loop = loop;
    TAILQ_INIT(&shard->peers);
    TAILQ_INIT(&shard->waiting);
    /* libuv's documentation: it always succeeds. */
    uv_timer_init(io_loop_uv(loop), &shard->retry);
    shard->retry.data = shard;
}

static void on_retry_closed(uv_handle_t *handle)
{
    struct sync_shard *shard = handle->data;
    shard->is_retry_closed = true;
}

static void shard_fini(struct sync_shard *shard)
{
    assert(TAILQ_EMPTY(&shard->peers) && TAILQ_EMPTY(&shard->waiting));
    uv_close((uv_handle_t *)&shard->retry, on_retry_closed);
    while (!shard->is_retry_closed) {
        io_loop_turn(shard->loop);
    }
}

static enum status add_to_switch(struct store_sync *sync)
{
    static const struct switch_observer observer = {.disconnected = on_disconnected};
    struct protocol session = {.id = RECONCILIATION_PROTOCOL_ID,
            .events = &store_sync_session_events,
            .context = sync,
            .inbound_max = SESSION_STREAMS_MAX,
            .outbound_max = SESSION_STREAMS_MAX};
    struct protocol transfer = {.id = TRANSFER_PROTOCOL_ID,
            .events = &store_sync_receive_events,
            .context = sync,
            .inbound_max = TRANSFER_STREAMS_MAX,
            .outbound_max = TRANSFER_STREAMS_MAX};
    struct net_switch *net_switch = sync->options.net_switch;
    enum status status = switch_add_protocol(net_switch, &session);
    if (status == STATUS_OK) {
        status = switch_add_protocol(net_switch, &transfer);
    }
    return status == STATUS_OK ? switch_add_observer(net_switch, &observer, sync) : status;
}

enum status store_sync_create(struct store_sync **out, const struct store_sync_options *options)
{
    struct store_sync *sync =
            memory_allocate_zeroed(sizeof(*sync) + options->loop_count * sizeof(struct sync_shard));
    if (sync == NULL) {
        return STATUS_NO_MEMORY;
    }
    sync->options = *options;
    sync->options.loops = NULL;
    sync->limits = reconciliation_defaults;
    sync->limits.incoming_bytes_max = options->payload_bytes_max;
    sync->limits.list_max = SIZE_MAX; /* who asks for a list wants to know what will come */
    sync->limits.outgoing_bytes_aim = options->payload_bytes_max / OUTGOING_SHARE;
    atomic_init(&sync->pending, 0);
    atomic_init(&sync->session_count, 0);
    atomic_init(&sync->sent_account.count, 0);
    sync->sent_account.max = options->under_way_max;
    sync->sent_account.patience_ms = options->patience_ms;
    atomic_init(&sync->is_wanted, false);
    for (size_t i = 0; i < options->loop_count; i++) {
        assert(io_loop_index(options->loops[i]) == i);
        shard_init(&sync->shards[i], sync, options->loops[i]);
        sync->shard_count = i + 1;
    }
    store_sync_schedule_init(sync);
    enum status status = rate_limiter_create(
            &sync->peer_sessions, (struct rate_limit){.volume = options->peer_sessions_max,
                                          .period_ns = (uint64_t)60 * NANOSECONDS_PER_SECOND});
    if (status == STATUS_OK) {
        status = add_to_switch(sync);
    }
    if (status != STATUS_OK) {
        store_sync_destroy(&sync);
        return status;
    }
    *out = sync;
    return STATUS_OK;
}

void store_sync_destroy(struct store_sync **sync)
{
    if (*sync == NULL) {
        return;
    }
    assert(store_sync_pending(*sync) == 0);
    for (size_t i = 0; i < (*sync)->shard_count; i++) {
        shard_fini(&(*sync)->shards[i]);
    }
    store_sync_schedule_fini(*sync);
    rate_limiter_destroy(&(*sync)->peer_sessions);
    memory_free(*sync);
    *sync = NULL;
}
