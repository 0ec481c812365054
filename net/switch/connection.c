/* SPDX-License-Identifier: MIT */
#include "net/switch/connection.h"

#include <assert.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/metrics.h"
#include "net/switch/connection_private.h"
#include "net/transport/address.h"

enum {
    CLOSING_MS = 2000,
    AGENT_BYTES_MAX = 128
};

struct connection *connection_create(
        struct switch_shard *shard, struct registry_entry *entry, bool is_outbound)
{
    size_t uses = shard->net_switch->protocol_count * sizeof(struct protocol_use);
    struct connection *connection = memory_allocate_zeroed(sizeof(*connection) + uses);
    if (connection == NULL) {
        return NULL;
    }
    connection->id = slot_table_add(&shard->connections, connection);
    if (connection->id == 0) {
        memory_free(connection);
        return NULL;
    }
    connection->shard = shard;
    connection->entry = entry;
    connection->is_outbound = is_outbound;
    return connection;
}

void connection_mark_dirty(struct connection *connection)
{
    if (!connection->is_dirty) {
        connection->is_dirty = true;
        shard_add_dirty(connection->shard, connection);
    }
}

static void log_end(const struct connection *connection)
{
    static struct log_limit limits[CLOSE_REASON_COUNT];
    enum close_reason reason = connection->reason;
    char remote[MULTIADDR_TEXT_SIZE];
    char peer[PEER_ID_TEXT_SIZE] = "unproven";
    struct multiaddr address;
    enum log_level level = close_reason_is_fault(reason) ? LOG_NOTICE : LOG_DEBUG;
    if (!log_is_enabled(level)) {
        return;
    }
    connection_remote(connection, &address);
    if (connection->has_peer) {
        peer_id_print(peer, &connection->peer);
    }
    log_write_limited(&limits[reason], level, "switch", "connection with %s (%s) ended: %s; %s",
            multiaddr_print(remote, &address), peer, close_reason_text(reason),
            status_text(connection->status));
}

static void enter_end(struct connection *connection, enum connection_state state,
        enum close_reason reason, enum status status)
{
    if (connection->state < CONNECTION_CLOSING) {
        connection->reason = reason;
        connection->status = status;
        metrics_add(close_reason_metric(reason), 1);
        log_end(connection);
    }
    connection->state = state;
    connection_mark_dirty(connection);
}

void connection_fail(struct connection *connection, enum close_reason reason, enum status status)
{
    if (connection->state != CONNECTION_ENDED) {
        enter_end(connection, CONNECTION_ENDED, reason, status);
    }
}

void connection_close(struct connection *connection, enum close_reason reason)
{
    if (connection->state >= CONNECTION_CLOSING) {
        return;
    }
    if (connection->muxer == NULL) {
        connection_fail(connection, reason, STATUS_CLOSED);
        return;
    }
    muxer_go_away(connection->muxer, MUXER_GO_AWAY_NORMAL);
    enter_end(connection, CONNECTION_CLOSING, reason, STATUS_CLOSED);
    connection->deadline_ms = clock_monotonic_ns() / NANOSECONDS_PER_MILLISECOND + CLOSING_MS;
}

/* A breach of the protocol: what the muxer has to say about it still goes out. */
static void close_for(struct connection *connection, enum status status)
{
    bool is_upgraded = connection->muxer != NULL;
    enum close_reason reason = close_reason_from_status(status, is_upgraded);
    if (!is_upgraded || status == STATUS_CLOSED || status == STATUS_RESET) {
        connection_fail(connection, reason, status);
        return;
    }
    enter_end(connection, CONNECTION_CLOSING, reason, status);
    connection->deadline_ms = clock_monotonic_ns() / NANOSECONDS_PER_MILLISECOND + CLOSING_MS;
}

static void on_opened(void *context)
{
    struct connection *connection = context;
    if (connection->state == CONNECTION_OPENING) {
        connection_begin_upgrade(connection);
    }
}

static size_t on_reserve(void *context, uint8_t **to)
{
    return connection_reserve_frame(context, to);
}

static void on_received(void *context, struct span bytes)
{
    struct connection *connection = context;
    enum status status = STATUS_OK;
    while (status == STATUS_OK && bytes.length > 0 && connection->state < CONNECTION_CLOSING) {
        if (connection->session == NULL) {
            status = connection_receive_upgrade(connection, &bytes);
        } else {
            status = connection_receive_frames(connection, bytes);
            bytes.length = 0;
        }
    }
    if (status != STATUS_OK && connection->state < CONNECTION_CLOSING) {
        close_for(connection, status);
    }
    shard_account(connection->shard, connection);
}

static void on_writable(void *context)
{
    connection_mark_dirty(context);
}

static void on_channel_closed(void *context, enum status status)
{
    struct connection *connection = context;
    enum close_reason reason = close_reason_from_status(status, connection->muxer != NULL);
    if (connection->state == CONNECTION_OPENING && reason == CLOSE_BAD_HANDSHAKE) {
        reason = CLOSE_BAD_TRANSPORT;
    }
    connection_fail(connection, reason, status);
}

const struct channel_events connection_channel_events = {
        .opened = on_opened,
        .reserve = on_reserve,
        .received = on_received,
        .writable = on_writable,
        .closed = on_channel_closed,
};

void connection_admitted(struct connection *connection, uint64_t admission)
{
    if (connection->state != CONNECTION_ADMISSION) {
        return;
    }
    struct net_switch *net_switch = connection->shard->net_switch;
    connection->state = CONNECTION_OPEN;
    connection->deadline_ms = 0;
    connection->is_connected = true;
    connection->admission = admission;
    metrics_add(
            connection->is_outbound ? METRIC_NET_CONNECTIONS_OUT : METRIC_NET_CONNECTIONS_IN, 1);
    for (size_t i = 0; i < net_switch->observer_count; i++) {
        const struct registered_observer *registered = &net_switch->observers[i];
        if (registered->observer.connected != NULL) {
            registered->observer.connected(registered->context, connection);
        }
    }
    stream_resume_all(connection);
    connection_mark_dirty(connection);
}

void connection_tick(struct connection *connection, uint64_t now_ms)
{
    const struct net_switch *net_switch = connection->shard->net_switch;
    if (connection->deadline_ms != 0 && now_ms >= connection->deadline_ms) {
        bool is_unanswered = connection->is_outbound && connection->state == CONNECTION_OPENING;
        connection_fail(connection, is_unanswered ? CLOSE_UNREACHABLE : CLOSE_UPGRADE_TIMED_OUT,
                STATUS_TIMED_OUT);
        return;
    }
    if (connection->muxer == NULL || connection->state >= CONNECTION_CLOSING) {
        return;
    }
    if (channel_stalled_ms(connection->channel) >= net_switch->options.write_timeout_ms) {
        connection_fail(connection, CLOSE_WRITE_STALLED, STATUS_TIMED_OUT);
        return;
    }
    if (connection->timed_count > 0) {
        stream_tick_all(connection, now_ms);
    }
    enum status status = muxer_tick(connection->muxer, clock_monotonic_ns());
    if (status != STATUS_OK) {
        connection_fail(connection, CLOSE_PING_TIMED_OUT, status);
    } else if (muxer_wants_output(connection->muxer)) {
        connection_mark_dirty(connection);
    }
}

static void tell_disconnected(struct connection *connection)
{
    struct net_switch *net_switch = connection->shard->net_switch;
    if (!connection->is_connected) {
        return;
    }
    connection->is_connected = false;
    for (size_t i = 0; i < net_switch->observer_count; i++) {
        const struct registered_observer *registered = &net_switch->observers[i];
        if (registered->observer.disconnected != NULL) {
            registered->observer.disconnected(registered->context, connection, connection->reason);
        }
    }
}

static void free_connection(struct connection *connection)
{
    struct switch_shard *shard = connection->shard;
    /* Resets the streams that are left; each lands in the shard's list of closed ones. */
    muxer_destroy(&connection->muxer);
    shard_finish_streams(shard);
    assert(connection->streams == NULL);
    tell_disconnected(connection);
    if (connection->reason == CLOSE_WRITE_STALLED || connection->status == STATUS_RESET) {
        channel_abort(&connection->channel);
    } else {
        channel_close(&connection->channel);
    }
    multistream_destroy(&connection->negotiation);
    noise_handshake_destroy(&connection->handshake);
    noise_session_destroy(&connection->session);
    shard->buffered_bytes -= connection->buffered_bytes;
    slot_table_remove(&shard->connections, connection->id);
    registry_report_closed(connection->entry, connection->reason, connection->status);
    memory_free(connection->frame);
    memory_free(connection->agent);
    memory_free(connection);
    shard_connection_gone(shard);
}

bool connection_finish_turn(struct connection *connection)
{
    bool has_more = false;
    if (connection->state != CONNECTION_ENDED && connection->muxer != NULL) {
        has_more = connection_flush(connection);
        shard_account(connection->shard, connection);
    }
    if (connection->state == CONNECTION_CLOSING && channel_is_writable(connection->channel) &&
            !muxer_wants_output(connection->muxer)) {
        connection->state = CONNECTION_ENDED;
    }
    if (connection->state == CONNECTION_ENDED) {
        free_connection(connection);
        return false;
    }
    connection->is_dirty = false;
    return has_more;
}

uint64_t connection_id(const struct connection *connection)
{
    return connection->id;
}

struct net_switch *connection_switch(const struct connection *connection)
{
    return connection->shard->net_switch;
}

struct io_loop *connection_loop(const struct connection *connection)
{
    return connection->shard->loop;
}

const struct peer_id *connection_peer(const struct connection *connection)
{
    return &connection->peer;
}

bool connection_is_outbound(const struct connection *connection)
{
    return connection->is_outbound;
}

const char *connection_security(const struct connection *connection)
{
    (void)connection;
    return "/noise";
}

uint64_t connection_admission(const struct connection *connection)
{
    return connection->admission;
}

uint64_t connection_round_trip_ns(const struct connection *connection)
{
    return connection->muxer == NULL ? UINT64_MAX : muxer_rtt_ns(connection->muxer);
}

const char *connection_muxer(const struct connection *connection)
{
    return connection->muxer == NULL ? NULL : muxer_protocol_id(connection->muxer_kind);
}

const char *connection_agent(const struct connection *connection)
{
    return connection->agent == NULL ? "" : connection->agent;
}

void connection_set_agent(struct connection *connection, struct span agent)
{
    size_t length = agent.length < AGENT_BYTES_MAX ? agent.length : AGENT_BYTES_MAX;
    char *text = memory_allocate(length + 1);
    if (text == NULL) {
        return;
    }
    for (size_t i = 0; i < length; i++) {
        /* It ends up in logs and on terminals. */
        bool is_printable = agent.bytes[i] >= ' ' && agent.bytes[i] < 127;
        text[i] = '?';
        if (is_printable) {
            memcpy(text + i, agent.bytes + i, 1);
        }
    }
    text[length] = '\0';
    memory_free(connection->agent);
    connection->agent = text;
}

static void print_address(const struct sockaddr_storage *address, struct multiaddr *out)
{
    struct multiaddr_endpoint endpoint = {0};
    out->length = 0;
    if (address->ss_family != AF_INET && address->ss_family != AF_INET6) {
        return;
    }
    address_to_endpoint(&endpoint, address);
    if (multiaddr_from_endpoint(out, &endpoint) != STATUS_OK) {
        out->length = 0;
    }
}

void connection_remote(const struct connection *connection, struct multiaddr *out)
{
    struct sockaddr_storage address = {0};
    if (connection->channel != NULL) {
        channel_remote_address(connection->channel, &address);
    }
    print_address(&address, out);
}

void connection_local(const struct connection *connection, struct multiaddr *out)
{
    struct sockaddr_storage address = {0};
    if (connection->channel != NULL) {
        channel_local_address(connection->channel, &address);
    }
    print_address(&address, out);
}

size_t connection_stream_count(const struct connection *connection)
{
    return connection->stream_count;
}
