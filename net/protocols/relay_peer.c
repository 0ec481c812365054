/* SPDX-License-Identifier: MIT */

/* A connection's life as a relay peer: joining, its outbound stream, leaving. */

#include <assert.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "hash/sha256.h"
#include "net/protocols/relay_private.h"
#include "net/transport/address.h"

enum {
    INBOUND_STREAMS_MAX = 4, /* the newest is read; the older ones are reset when it is agreed */
    OUTBOUND_STREAMS_MAX = 2,
    REOPEN_MS = 1000, /* doubles with each stream that is not agreed */
    REOPEN_DOUBLINGS = 5
};

/*
 * LAST: release decrement -> acquire decrement that finds the last one, before the card is freed.
 */
static void unref_card(void *owner)
{
    struct relay_card *card = owner;
    /* LAST */
    if (atomic_fetch_sub_explicit(&card->references, 1, memory_order_acq_rel) == 1) {
        memory_free(card);
    }
}

/* The same for a peer whenever it comes; who does not know the secret cannot aim at another's. */
static uint64_t number_of(const struct relay *relay, const struct peer_id *id)
{
    uint8_t digest[SHA256_BYTES];
    uint64_t number;
    struct span pieces[] = {
            span_of(relay->secret, sizeof(relay->secret)), span_of(id->bytes, id->length)};
    sha256(digest, (struct sha256_pieces){pieces, 2});
    memcpy(&number, digest, sizeof(number));
    return number == 0 ? 1 : number;
}

static uint64_t group_of(const struct connection *connection)
{
    struct multiaddr remote;
    struct multiaddr_endpoint endpoint;
    struct sockaddr_storage address;
    connection_remote(connection, &remote);
    if (multiaddr_endpoint(&endpoint, &remote) != STATUS_OK ||
            address_from_endpoint(&address, &endpoint) != STATUS_OK) {
        return 0;
    }
    return address_group(&address);
}

static struct lane_event *make_event(const struct relay_peer *peer, enum lane_event_kind kind)
{
    struct lane_event *event = lane_event_create(kind, peer->number, NULL);
    if (event != NULL) {
        event->connection = peer->id;
    }
    return event;
}

/* Everything that joining and leaving need, or nothing. */
static bool prepare_events(
        struct relay_peer *peer, struct lane_event *joined[INTAKE_LANES_MAX], size_t lane_count)
{
    bool is_complete = true;
    peer->card = memory_allocate_zeroed(sizeof(*peer->card));
    for (size_t i = 0; i < lane_count; i++) {
        joined[i] = make_event(peer, LANE_EVENT_PEER_JOINED);
        peer->left[i] = make_event(peer, LANE_EVENT_PEER_LEFT);
        is_complete = is_complete && joined[i] != NULL && peer->left[i] != NULL;
    }
    if (peer->card != NULL && is_complete) {
        return true;
    }
    for (size_t i = 0; i < lane_count; i++) {
        if (joined[i] != NULL) {
            lane_event_destroy(joined[i]);
        }
        if (peer->left[i] != NULL) {
            lane_event_destroy(peer->left[i]);
            peer->left[i] = NULL;
        }
    }
    memory_free(peer->card);
    peer->card = NULL;
    return false;
}

static void count_joined(struct relay_shard *shard, bool has_joined)
{
    metrics_add(has_joined ? METRIC_RELAY_PEERS_JOINED : METRIC_RELAY_PEERS_LEFT, 1);
    /* relaxed: only this thread writes it */
    size_t count = atomic_load_explicit(&shard->joined_count, memory_order_relaxed);
    count = has_joined ? count + 1 : count - 1;
    atomic_store_explicit(&shard->joined_count, count, memory_order_relaxed);
}

void relay_peer_join(struct relay_peer *peer)
{
    struct relay *relay = peer->shard->relay;
    struct lane_event *joined[INTAKE_LANES_MAX];
    if (peer->is_joined) {
        return;
    }
    if (!prepare_events(peer, joined, relay->options.intake->lane_count)) {
        connection_close(peer->connection, CLOSE_NO_MEMORY);
        return;
    }
    uint64_t address = group_of(peer->connection);
    atomic_init(&peer->card->references, (unsigned)relay->options.intake->lane_count + 1);
    peer->is_joined = true;
    count_joined(peer->shard, true);
    for (size_t i = 0; i < relay->options.intake->lane_count; i++) {
        peer->left[i]->release = unref_card;
        peer->left[i]->owner = peer->card;
        joined[i]->card = &peer->card->card;
        joined[i]->address = address;
        joined[i]->admission = connection_admission(peer->connection);
        joined[i]->is_outbound = connection_is_outbound(peer->connection);
        intake_post_event(relay->options.intake, (uint32_t)i, joined[i]);
    }
}

static void leave(struct relay_peer *peer)
{
    struct relay *relay = peer->shard->relay;
    if (!peer->is_joined) {
        return;
    }
    count_joined(peer->shard, false);
    for (size_t i = 0; i < relay->options.intake->lane_count; i++) {
        intake_post_event(relay->options.intake, (uint32_t)i, peer->left[i]);
    }
    unref_card(peer->card);
}

static uint64_t now_ms(void)
{
    return clock_monotonic_ns() / NANOSECONDS_PER_MILLISECOND;
}

static void open_later(struct relay_peer *peer)
{
    unsigned doublings =
            peer->reopen_count < REOPEN_DOUBLINGS ? peer->reopen_count : REOPEN_DOUBLINGS;
    peer->reopen_at_ms = now_ms() + ((uint64_t)REOPEN_MS << doublings);
    peer->reopen_count++;
}

void relay_peer_open_stream(struct relay_peer *peer)
{
    static const char *const ids[] = {RELAY_PROTOCOL_ID};
    struct stream_request request = {.protocols = ids,
            .protocol_count = 1,
            .events = &relay_outbound_events,
            .context = peer};
    if (peer->outbound != NULL) {
        return;
    }
    peer->reopen_at_ms = 0;
    if (connection_open_stream(peer->connection, &request, &peer->outbound) != STATUS_OK) {
        peer->outbound = NULL;
        open_later(peer);
    }
}

static enum status on_outbound_agreed(struct stream *stream)
{
    struct relay_peer *peer = stream_context(stream);
    peer->outbound = stream;
    peer->is_outbound_agreed = true;
    peer->reopen_count = 0;
    relay_peer_join(peer);
    relay_pump(peer);
    return STATUS_OK;
}

static void on_outbound_writable(struct stream *stream)
{
    relay_pump(stream_context(stream));
}

/* The peer knows nothing of what was told on a stream that is gone. */
static void on_outbound_closed(struct stream *stream, enum status reason)
{
    struct relay_peer *peer = stream_context(stream);
    peer->outbound = NULL;
    peer->is_outbound_agreed = false;
    memory_free(peer->told);
    peer->told = NULL;
    peer->told_count = 0;
    peer->told_version = 0;
    bool speaks_relay = reason != STATUS_NO_COMMON_PROTOCOL || peer->inbound != NULL;
    if (speaks_relay) {
        open_later(peer);
    }
}

/* Nothing is read on a stream of ours: the peer answers on its own. */
const struct stream_events relay_outbound_events = {
        .opened = on_outbound_agreed,
        .writable = on_outbound_writable,
        .closed = on_outbound_closed,
};

void relay_peer_tick(struct relay_peer *peer, uint64_t time_ms)
{
    relay_queue_expire(&peer->queue, clock_monotonic_ns());
    relay_queue_settle(&peer->queue);
    relay_repeat_subscriptions(peer);
    relay_skip_when_late(peer, time_ms);
    if (peer->reopen_at_ms != 0 && time_ms >= peer->reopen_at_ms) {
        relay_peer_open_stream(peer);
    }
}

static void on_connected(void *context, struct connection *connection)
{
    struct relay *relay = context;
    struct relay_shard *shard = relay_shard_of(relay, connection_id(connection));
    struct relay_peer *peer = memory_allocate_zeroed(sizeof(*peer));
    if (peer == NULL || frame_share_create(&peer->share, relay->options.peer_bytes_max,
                                relay_wake_starved, shard) != STATUS_OK) {
        memory_free(peer);
        connection_close(connection, CLOSE_NO_MEMORY);
        return;
    }
    peer->shard = shard;
    peer->connection = connection;
    peer->id = connection_id(connection);
    peer->number = number_of(relay, connection_peer(connection));
    relay_reader_init(&peer->reader, relay->options.budget, peer->share,
            relay->options.max_message_bytes + RELAY_FRAME_SLACK);
    relay_queue_init(&peer->queue, &relay->limits, relay->outbound);
    hash_table_insert(&shard->by_connection, &peer->by_connection, peer->id);
    TAILQ_INSERT_TAIL(&shard->peers, peer, link);
    relay_peer_open_stream(peer);
}

static void log_drops(const struct relay_peer *peer)
{
    static struct log_limit limit;
    char text[PEER_ID_TEXT_SIZE];
    if (peer->queue.dropped > 0) {
        log_write_limited(&limit, LOG_INFO, "relay",
                "%s left; %llu messages for it were dropped because it was slow",
                peer_id_print(text, connection_peer(peer->connection)),
                (unsigned long long)peer->queue.dropped);
    }
}

/* Its streams are gone already. */
static void on_disconnected(void *context, struct connection *connection, enum close_reason reason)
{
    (void)reason;
    struct relay *relay = context;
    struct relay_shard *shard = relay_shard_of(relay, connection_id(connection));
    struct relay_peer *peer = relay_find_peer(shard, connection_id(connection));
    if (peer == NULL) {
        return;
    }
    assert(peer->inbound == NULL && peer->outbound == NULL);
    log_drops(peer);
    hash_table_remove(&shard->by_connection, &peer->by_connection);
    TAILQ_REMOVE(&shard->peers, peer, link);
    relay_stop_waiting(peer);
    relay_reader_reset(&peer->reader);
    relay_queue_clear(&peer->queue, LEDGER_RELAY_OUT_PEER_GONE);
    relay_topics_fini(&peer->topics);
    leave(peer);
    frame_share_drop(&peer->share);
    memory_free(peer->told);
    memory_free(peer);
}

enum status relay_peer_register(struct relay *relay)
{
    static const struct switch_observer observer = {
            .connected = on_connected, .disconnected = on_disconnected};
    struct net_switch *net_switch = relay->options.net_switch;
    struct protocol protocol = {.id = RELAY_PROTOCOL_ID,
            .events = &relay_inbound_events,
            .context = relay,
            .inbound_max = INBOUND_STREAMS_MAX,
            .outbound_max = OUTBOUND_STREAMS_MAX};
    enum status status = switch_add_protocol(net_switch, &protocol);
    return status == STATUS_OK ? switch_add_observer(net_switch, &observer, relay) : status;
}
