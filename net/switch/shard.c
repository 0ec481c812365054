/* SPDX-License-Identifier: MIT */

/* The share of the switch on one io thread: its connections, its clock and the end of its turns. */

#include <assert.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/metrics.h"
#include "net/switch/connection_private.h"
#include "net/switch/stream_private.h"

void shard_add_dirty(struct switch_shard *shard, struct connection *connection)
{
    connection->next_dirty = NULL;
    *shard->dirty_end = connection;
    shard->dirty_end = &connection->next_dirty;
}

/* Who has waited longest comes first. Those that have more go behind *later_end. */
static bool flush_dirty(struct switch_shard *shard, struct connection ***later_end)
{
    struct connection *connection = shard->dirty;
    if (connection == NULL) {
        return false;
    }
    shard->dirty = NULL;
    shard->dirty_end = &shard->dirty;
    while (connection != NULL) {
        struct connection *next = connection->next_dirty;
        if (connection_finish_turn(connection)) {
            connection->is_dirty = true;
            connection->next_dirty = NULL;
            **later_end = connection;
            *later_end = &connection->next_dirty;
        }
        connection = next;
    }
    return true;
}

static void on_turn_end(uv_check_t *handle)
{
    struct switch_shard *shard = handle->data;
    struct connection *later = NULL;
    struct connection **later_end = &later;
    do {
        shard_finish_streams(shard);
    } while (flush_dirty(shard, &later_end));
    if (later != NULL) {
        shard->dirty = later;
        shard->dirty_end = later_end;
        io_loop_wake(shard->loop);
    }
}

static void on_tick(uv_timer_t *handle)
{
    struct switch_shard *shard = handle->data;
    uint64_t now_ms = clock_monotonic_ns() / NANOSECONDS_PER_MILLISECOND;
    for (uint32_t i = 0; i < shard->connections.capacity; i++) {
        struct connection *connection = slot_table_at(&shard->connections, i);
        if (connection != NULL) {
            connection_tick(connection, now_ms);
            shard_account(shard, connection);
        }
    }
}

void shard_init(struct switch_shard *shard, struct net_switch *net_switch, struct io_loop *loop)
{
    uv_loop_t *uv = io_loop_uv(loop);
    shard->net_switch = net_switch;
    shard->loop = loop;
    shard->dirty_end = &shard->dirty;
    shard->connections.tag = (uint8_t)io_loop_index(loop);
    shard->streams.tag = shard->connections.tag;
    /* libuv's documentation: these always succeed. */
    uv_timer_init(uv, &shard->tick);
    uv_check_init(uv, &shard->turn_end);
    shard->tick.data = shard;
    shard->turn_end.data = shard;
    shard->handles = 2;
    uv_check_start(&shard->turn_end, on_turn_end);
}

void shard_fini(struct switch_shard *shard)
{
    assert(shard->handles == 0);
    slot_table_fini(&shard->connections);
    slot_table_fini(&shard->streams);
}

static void run_stopped(struct io_task *task)
{
    struct switch_shard *shard =
            (struct switch_shard *)((char *)task - offsetof(struct switch_shard, stopped));
    switch_shard_stopped(shard->net_switch);
}

static void on_handle_closed(uv_handle_t *handle)
{
    struct switch_shard *shard = handle->data;
    shard->handles--;
    if (shard->handles > 0) {
        return;
    }
    shard->stopped.run = run_stopped;
    io_loop_post(shard->net_switch->shards[0].loop, &shard->stopped);
}

static void close_handles_when_idle(struct switch_shard *shard)
{
    if (shard->is_stopping && shard->connections.count == 0 && !shard->is_closing_handles) {
        shard->is_closing_handles = true;
        uv_close((uv_handle_t *)&shard->tick, on_handle_closed);
        uv_close((uv_handle_t *)&shard->turn_end, on_handle_closed);
    }
}

void shard_stop(struct switch_shard *shard)
{
    shard->is_stopping = true;
    for (uint32_t i = 0; i < shard->connections.capacity; i++) {
        struct connection *connection = slot_table_at(&shard->connections, i);
        if (connection != NULL) {
            connection_close(connection, CLOSE_STOPPING);
        }
    }
    close_handles_when_idle(shard);
}

void shard_connection_gone(struct switch_shard *shard)
{
    if (shard->connections.count == 0 && !shard->is_closing_handles) {
        uv_timer_stop(&shard->tick);
    }
    close_handles_when_idle(shard);
}

void shard_add_closed(struct switch_shard *shard, struct stream *stream)
{
    stream->next_closed = shard->closed_streams;
    shard->closed_streams = stream;
}

void shard_finish_streams(struct switch_shard *shard)
{
    while (shard->closed_streams != NULL) {
        struct stream *stream = shard->closed_streams;
        shard->closed_streams = stream->next_closed;
        stream_finish(stream);
    }
}

static void close_largest(struct switch_shard *shard)
{
    struct connection *largest = NULL;
    for (uint32_t i = 0; i < shard->connections.capacity; i++) {
        struct connection *connection = slot_table_at(&shard->connections, i);
        bool is_candidate = connection != NULL && connection->state < CONNECTION_CLOSING;
        if (is_candidate &&
                (largest == NULL || connection->buffered_bytes > largest->buffered_bytes)) {
            largest = connection;
        }
    }
    if (largest != NULL) {
        connection_fail(largest, CLOSE_BUFFERED_MAX, STATUS_LIMIT_REACHED);
    }
}

void shard_account(struct switch_shard *shard, struct connection *connection)
{
    size_t bytes = connection->frame == NULL ? 0 : connection->frame_length;
    if (connection->channel != NULL) {
        bytes += channel_bytes_in_flight(connection->channel);
    }
    if (connection->muxer != NULL) {
        bytes += muxer_held(connection->muxer) + muxer_queued(connection->muxer);
    }
    bool has_grown = bytes > connection->buffered_bytes;
    shard->buffered_bytes += bytes;
    shard->buffered_bytes -= connection->buffered_bytes;
    connection->buffered_bytes = bytes;
    const struct net_switch *net_switch = shard->net_switch;
    if (has_grown && shard->buffered_bytes >
                             net_switch->options.buffered_bytes_max / net_switch->shard_count) {
        close_largest(shard);
    }
}

static struct connection *begin(
        struct switch_shard *shard, struct registry_entry *entry, bool is_outbound)
{
    struct connection *connection = connection_create(shard, entry, is_outbound);
    if (connection == NULL) {
        metrics_add(METRIC_NET_CLOSED_NO_MEMORY, 1);
        registry_report_closed(entry, CLOSE_NO_MEMORY, STATUS_NO_MEMORY);
        return NULL;
    }
    registry_report_started(entry, connection->id);
    if (shard->connections.count == 1) {
        uv_timer_start(&shard->tick, on_tick, SWITCH_TICK_MS, SWITCH_TICK_MS);
    }
    return connection;
}

void shard_begin_inbound(struct switch_shard *shard, struct registry_entry *entry, int descriptor,
        const struct switch_listener *listener)
{
    struct net_switch *net_switch = shard->net_switch;
    struct connection *connection = begin(shard, entry, false);
    if (connection == NULL) {
        close(descriptor);
        return;
    }
    connection->deadline_ms =
            registry_entry_started_ms(entry) + net_switch->options.upgrade_timeout_ms;
    struct channel_options options = {
            .loop = shard->loop,
            .events = &connection_channel_events,
            .context = connection,
            .is_websocket = listener->is_websocket,
            .tls = listener->is_secure ? net_switch->options.tls_server : NULL,
    };
    enum status status = channel_accept(&connection->channel, descriptor, &options);
    if (status != STATUS_OK) {
        connection_fail(connection, CLOSE_NO_MEMORY, status);
    }
}

static enum status dial(struct connection *connection, const struct multiaddr *address)
{
    struct multiaddr_endpoint endpoint;
    enum status status = multiaddr_endpoint(&endpoint, address);
    if (status != STATUS_OK) {
        return status;
    }
    if (endpoint.has_peer) {
        connection->has_expected_peer = true;
        connection->peer = endpoint.peer;
    }
    struct channel_options options = {
            .loop = connection->shard->loop,
            .events = &connection_channel_events,
            .context = connection,
            .is_websocket = endpoint.is_websocket,
            .tls = endpoint.is_secure ? connection->shard->net_switch->tls_client : NULL,
    };
    return channel_dial(&connection->channel, &endpoint, &options);
}

void shard_begin_outbound(
        struct switch_shard *shard, struct registry_entry *entry, const struct switch_dial *request)
{
    struct connection *connection = begin(shard, entry, true);
    if (connection == NULL) {
        return;
    }
    uint64_t timeout_ms = request->timeout_ms != 0 ? request->timeout_ms
                                                   : shard->net_switch->options.upgrade_timeout_ms;
    connection->deadline_ms = registry_entry_started_ms(entry) + timeout_ms;
    enum status status = dial(connection, &request->address);
    if (status != STATUS_OK) {
        connection_fail(connection, CLOSE_UNREACHABLE, status);
    }
}
