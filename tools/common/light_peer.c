/* SPDX-License-Identifier: MIT */
#include "tools/common/light_peer.h"

#include <assert.h>
#include <string.h>

#include "base/memory.h"
#include "codec/gossip_rpc.h"
#include "codec/gossip_writer.h"
#include "hash/message_id.h"
#include "net/protocols/echo.h"
#include "net/protocols/identify.h"
#include "net/protocols/metadata.h"
#include "net/protocols/relay.h"
#include "net/protocols/relay_reader.h"
#include "net/switch/switch.h"

enum {
    SEEN_ROWS = 1 << 13, /* of ids remembered by those who ask, each in the row it falls to */
    SEEN_IN_ROW = 8,
    ASKED_MAX = 256 /* ids in one IWANT */
};

/* What became of a message, in the lowest bits of its slot. */
#define WAS_ASKED_FOR UINT64_C(1)
#define HAS_COME      UINT64_C(2)
#define FATE          (WAS_ASKED_FOR | HAS_COME)

struct light_peer {
    struct light_peer_options options;
    struct identity *identity;
    struct net_switch *net_switch;
    struct identify *identify;
    struct metadata *metadata;
    struct connection *connection; /* NULL before and after it stands */
    struct stream *outbound;
    struct stream *inbound;
    struct relay_reader reader;
    uint64_t *seen; /* rows of beginnings of message ids, newest first; NULL: does not ask */
    uint64_t asked;
    uint64_t topics_joined; /* bits: the other side has announced it */
    uint64_t topics_lost;   /* bits: it has pruned us */
    bool is_agreed;         /* the outbound stream has its protocol */
    bool is_ready;
    bool is_over; /* `ended` has been told */
};

static void end(struct light_peer *peer, const char *reason)
{
    if (peer->is_over) {
        return;
    }
    peer->is_over = true;
    peer->is_ready = false;
    if (peer->options.events->ended != NULL) {
        peer->options.events->ended(peer->options.context, peer, reason);
    }
}

static void send_control(struct light_peer *peer, const struct gossip_outgoing *rpc)
{
    size_t size = gossip_outgoing_size(rpc);
    uint8_t *bytes = memory_allocate(size > 0 ? size : 1);
    if (bytes == NULL || gossip_outgoing_write(bytes, size, rpc) == 0 ||
            light_peer_send(peer, bytes, size) != STATUS_OK) {
        memory_free(bytes);
    }
}

static void announce(struct light_peer *peer)
{
    struct gossip_subscription subscriptions[LIGHT_PEER_TOPICS_MAX];
    for (size_t i = 0; i < peer->options.topic_count; i++) {
        subscriptions[i] =
                (struct gossip_subscription){.topic = peer->options.topics[i], .subscribe = true};
    }
    struct gossip_outgoing rpc = {
            .subscriptions = subscriptions, .subscription_count = peer->options.topic_count};
    send_control(peer, &rpc);
}

static void become_ready(struct light_peer *peer)
{
    size_t count = peer->options.topic_count;
    uint64_t all = count == LIGHT_PEER_TOPICS_MAX ? UINT64_MAX : (1ULL << count) - 1;
    if (peer->is_ready || !peer->is_agreed || peer->topics_joined != all) {
        return;
    }
    if (peer->options.receives) {
        struct gossip_outgoing rpc = {.graft = peer->options.topics, .graft_count = count};
        send_control(peer, &rpc);
    }
    peer->is_ready = true;
    if (peer->options.events->ready != NULL) {
        peer->options.events->ready(peer->options.context, peer);
    }
}

/* The bit of a topic, 0 for one that is none of ours. */
static uint64_t bit_of(const struct light_peer *peer, struct span topic)
{
    for (size_t i = 0; i < peer->options.topic_count; i++) {
        if (span_equal(peer->options.topics[i], topic)) {
            return 1ULL << i;
        }
    }
    return 0;
}

static bool is_of(uint64_t slot, uint64_t beginning)
{
    return (slot & ~FATE) == beginning;
}

/*
 * Where what became of the message is noted, its id's beginning with the bits of its fate; *is_new:
 * nothing is known of it. The oldest of a row gives way.
 */
static uint64_t *slot_of(struct light_peer *peer, struct span id, bool *is_new)
{
    uint64_t beginning;
    memcpy(&beginning, id.bytes, sizeof(beginning));
    beginning &= ~FATE;
    uint64_t *row = &peer->seen[beginning / (FATE + 1) % SEEN_ROWS * SEEN_IN_ROW];
    for (size_t i = 0; i < SEEN_IN_ROW; i++) {
        if (is_of(row[i], beginning)) {
            *is_new = false;
            return &row[i];
        }
    }
    memmove(row + 1, row, (SEEN_IN_ROW - 1) * sizeof(*row));
    row[0] = beginning;
    *is_new = true;
    return &row[0];
}

/* What was asked for may come by the mesh as well, when the peer is grafted meanwhile. */
static bool is_second_way(struct light_peer *peer, struct span message)
{
    uint8_t id[SHA256_BYTES];
    bool is_new;
    message_id(id, message);
    uint64_t *slot = slot_of(peer, span_of(id, sizeof(id)), &is_new);
    bool is_second = (*slot & FATE) == (WAS_ASKED_FOR | HAS_COME);
    *slot |= HAS_COME;
    return is_second;
}

static void take_message(struct light_peer *peer, const struct gossip_entry *entry)
{
    struct light_message message = {.topic = entry->topic, .bytes = entry->data};
    if (peer->seen != NULL && is_second_way(peer, entry->data)) {
        return;
    }
    if (peer->options.events->message != NULL) {
        peer->options.events->message(peer->options.context, peer, &message);
    }
}

static void send_requests(struct light_peer *peer, const struct span ids[], size_t count)
{
    struct gossip_outgoing rpc = {.iwant = ids, .iwant_count = count};
    if (count > 0) {
        peer->asked += count;
        send_control(peer, &rpc);
    }
}

/* Every id that has not come and was not asked for, in as many IWANT as it takes. */
static void ask(struct light_peer *peer, const struct gossip_entry *entry)
{
    struct span ids[ASKED_MAX];
    struct gossip_items items = entry->items;
    size_t count = 0;
    if (peer->seen == NULL || (bit_of(peer, entry->topic) & peer->topics_lost) == 0) {
        return;
    }
    while (gossip_items_next(&items, &ids[count])) {
        bool is_new = false;
        uint64_t *slot =
                ids[count].length == SHA256_BYTES ? slot_of(peer, ids[count], &is_new) : NULL;
        if (is_new) {
            *slot |= WAS_ASKED_FOR;
            count++;
        }
        if (count == ASKED_MAX) {
            send_requests(peer, ids, count);
            count = 0;
        }
    }
    send_requests(peer, ids, count);
}

static void take_entry(struct light_peer *peer, const struct gossip_entry *entry)
{
    switch (entry->kind) {
    case GOSSIP_PUBLISH:
        take_message(peer, entry);
        break;
    case GOSSIP_SUBSCRIPTION:
        if (entry->subscribe) {
            peer->topics_joined |= bit_of(peer, entry->topic);
            become_ready(peer);
        }
        break;
    case GOSSIP_GRAFT:
        peer->topics_lost &= ~bit_of(peer, entry->topic);
        break;
    case GOSSIP_PRUNE:
        peer->topics_lost |= bit_of(peer, entry->topic);
        break;
    case GOSSIP_IHAVE:
        ask(peer, entry);
        break;
    case GOSSIP_IWANT: /* nothing is kept that could be given */
    case GOSSIP_IDONTWANT:
    case GOSSIP_ENTRY_KINDS:
        break;
    }
}

static void take_rpc(struct light_peer *peer, struct span rpc)
{
    struct gossip_reader reader;
    struct gossip_entry entry;
    if (gossip_reader_init(&reader, rpc, &gossip_limits_default) != STATUS_OK) {
        end(peer, "the other side sent a malformed RPC");
        return;
    }
    while (gossip_reader_next(&reader, &entry)) {
        take_entry(peer, &entry);
    }
}

static enum status on_inbound_opened(struct stream *stream)
{
    struct light_peer *peer = stream_context(stream);
    if (peer->inbound != NULL) {
        return STATUS_BUSY;
    }
    peer->inbound = stream;
    relay_reader_init(
            &peer->reader, NULL, NULL, peer->options.max_message_bytes + RELAY_FRAME_SLACK);
    return STATUS_OK;
}

static size_t on_inbound_reserve(struct stream *stream, size_t wanted, uint8_t **to)
{
    struct light_peer *peer = stream_context(stream);
    return relay_reader_reserve(&peer->reader, wanted, to);
}

static void on_inbound_commit(struct stream *stream, size_t n)
{
    struct light_peer *peer = stream_context(stream);
    struct frame *frame = NULL;
    stream_consumed(stream, n);
    if (relay_reader_commit(&peer->reader, n, &frame) != STATUS_OK) {
        stream_reset(stream, STATUS_BAD_FRAME);
        return;
    }
    if (frame != NULL) {
        take_rpc(peer, span_of(frame_bytes(frame), frame_length(frame)));
        frame_unref(frame);
    }
}

static void on_inbound_closed(struct stream *stream, enum status reason)
{
    (void)reason;
    struct light_peer *peer = stream_context(stream);
    if (peer->inbound != stream) {
        return;
    }
    relay_reader_reset(&peer->reader);
    peer->inbound = NULL; /* the other side may open another one */
}

static const struct stream_events inbound_events = {
        .opened = on_inbound_opened,
        .reserve = on_inbound_reserve,
        .commit = on_inbound_commit,
        .closed = on_inbound_closed,
};

static enum status on_outbound_opened(struct stream *stream)
{
    struct light_peer *peer = stream_context(stream);
    peer->is_agreed = true;
    if (peer->options.receives) {
        announce(peer);
    }
    become_ready(peer);
    return STATUS_OK;
}

static void on_outbound_writable(struct stream *stream)
{
    struct light_peer *peer = stream_context(stream);
    if (peer->options.events->writable != NULL) {
        peer->options.events->writable(peer->options.context, peer);
    }
}

static void on_outbound_closed(struct stream *stream, enum status reason)
{
    struct light_peer *peer = stream_context(stream);
    peer->outbound = NULL;
    peer->is_agreed = false;
    end(peer, reason == STATUS_OK ? "the other side closed the relay stream" : status_text(reason));
}

static const struct stream_events outbound_events = {
        .opened = on_outbound_opened,
        .writable = on_outbound_writable,
        .closed = on_outbound_closed,
};

static void on_connected(void *context, struct connection *connection)
{
    static const char *const ids[] = {RELAY_PROTOCOL_ID};
    struct light_peer *peer = context;
    struct stream_request request = {
            .protocols = ids, .protocol_count = 1, .events = &outbound_events, .context = peer};
    if (peer->connection != NULL) {
        return;
    }
    peer->connection = connection;
    enum status status = connection_open_stream(connection, &request, &peer->outbound);
    if (status != STATUS_OK) {
        end(peer, status_text(status));
    }
}

static void on_disconnected(void *context, struct connection *connection, enum close_reason reason)
{
    struct light_peer *peer = context;
    if (peer->connection == connection) {
        peer->connection = NULL;
        end(peer, close_reason_text(reason));
    }
}

static void on_dialled(void *context, enum status status, uint64_t connection)
{
    (void)connection;
    if (status != STATUS_OK) {
        end(context, status_text(status));
    }
}

static enum status add_metadata(struct light_peer *peer)
{
    uint32_t shards[LIGHT_PEER_SHARDS_MAX];
    for (size_t i = 0; i < peer->options.topic_count; i++) {
        shards[i] = (uint32_t)i;
    }
    struct metadata_options options = {.net_switch = peer->net_switch,
            .cluster_id = peer->options.cluster,
            .shards = shards,
            .shard_count = peer->options.topic_count};
    return metadata_create(&peer->metadata, &options);
}

static enum status add_protocols(struct light_peer *peer)
{
    static const struct switch_observer observer = {
            .connected = on_connected, .disconnected = on_disconnected};
    struct identify_options identify_options = {.net_switch = peer->net_switch};
    struct protocol relay = {
            .id = RELAY_PROTOCOL_ID, .events = &inbound_events, .context = peer, .inbound_max = 2};
    enum status status = identify_create(&peer->identify, &identify_options);
    if (status == STATUS_OK) {
        status = ping_register(peer->net_switch);
    }
    if (status == STATUS_OK) {
        status = add_metadata(peer);
    }
    if (status == STATUS_OK) {
        status = switch_add_protocol(peer->net_switch, &relay);
    }
    return status == STATUS_OK ? switch_add_observer(peer->net_switch, &observer, peer) : status;
}

enum status light_peer_create(struct light_peer **out, const struct light_peer_options *options)
{
    assert(options->topic_count > 0 && options->topic_count <= LIGHT_PEER_TOPICS_MAX);
    struct light_peer *peer = memory_allocate_zeroed(sizeof(*peer));
    if (peer == NULL) {
        return STATUS_NO_MEMORY;
    }
    peer->options = *options;
    enum status status = identity_create(&peer->identity, KEY_TYPE_ED25519);
    if (status == STATUS_OK && options->asks) {
        peer->seen = memory_allocate_zeroed((size_t)SEEN_ROWS * SEEN_IN_ROW * sizeof(*peer->seen));
        status = peer->seen == NULL ? STATUS_NO_MEMORY : STATUS_OK;
    }
    if (status == STATUS_OK) {
        struct switch_options switch_options = {
                .identity = peer->identity, .loops = &peer->options.loop, .loop_count = 1};
        status = switch_create(&peer->net_switch, &switch_options);
    }
    if (status == STATUS_OK) {
        status = add_protocols(peer);
    }
    if (status != STATUS_OK) {
        light_peer_stop(peer);
        while (!light_peer_is_stopped(peer)) {
            io_loop_turn(options->loop);
        }
        light_peer_destroy(&peer);
        return status;
    }
    *out = peer;
    return STATUS_OK;
}

enum status light_peer_dial(struct light_peer *peer, const char *address)
{
    struct switch_dial dial = {.done = on_dialled, .context = peer};
    enum status status = multiaddr_parse(&dial.address, span_of_text(address));
    return status == STATUS_OK ? switch_dial(peer->net_switch, &dial) : status;
}

enum status light_peer_send(struct light_peer *peer, uint8_t *frame, size_t length)
{
    struct muxer_piece piece = {
            .bytes = span_of(frame, length), .release = memory_free, .owner = frame};
    if (peer->outbound == NULL || !peer->is_agreed) {
        return STATUS_CLOSED;
    }
    return stream_write(peer->outbound, &piece, 1);
}

size_t light_peer_queued(const struct light_peer *peer)
{
    return peer->outbound != NULL ? stream_queued(peer->outbound) : 0;
}

bool light_peer_is_ready(const struct light_peer *peer)
{
    return peer->is_ready;
}

uint64_t light_peer_asked(const struct light_peer *peer)
{
    return peer->asked;
}

void light_peer_stop(struct light_peer *peer)
{
    peer->is_over = true;
    if (peer->net_switch != NULL) {
        switch_stop(peer->net_switch);
    }
}

bool light_peer_is_stopped(const struct light_peer *peer)
{
    return peer->net_switch == NULL || switch_is_stopped(peer->net_switch);
}

void light_peer_destroy(struct light_peer **peer_pointer)
{
    struct light_peer *peer = *peer_pointer;
    if (peer == NULL) {
        return;
    }
    switch_destroy(&peer->net_switch);
    metadata_destroy(&peer->metadata);
    identify_destroy(&peer->identify);
    identity_destroy(&peer->identity);
    memory_free(peer->seen);
    memory_free(peer);
    *peer_pointer = NULL;
}
