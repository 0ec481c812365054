/* SPDX-License-Identifier: MIT */

/* From tickets to a peer's stream: header and message as they are, one after the other. */

#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "codec/varint.h"
#include "net/protocols/relay_private.h"

enum {
    NEWS_TOPICS = 64,      /* subscriptions in one RPC at most */
    NEWS_BYTES = 64 * 1024 /* and bytes of their names */
};

void relay_drop_ticket(struct relay_ticket *ticket, enum metric reason)
{
    metrics_add(ticket->parcel->is_control ? METRIC_RELAY_CONTROL_DROPPED : reason, 1);
    relay_parcel_unref(ticket->parcel);
}

static void release_parcel(void *owner)
{
    relay_parcel_unref(owner);
}

static enum metric reason_of(enum status status)
{
    return status == STATUS_CLOSED ? LEDGER_RELAY_OUT_PEER_GONE : LEDGER_RELAY_OUT_NO_MEMORY;
}

/* The header's memory goes with the parcel, which the last piece releases. */
static void write_ticket(struct relay_peer *peer, struct relay_ticket *ticket)
{
    struct relay_parcel *parcel = ticket->parcel;
    struct muxer_piece pieces[2] = {{.bytes = span_of(parcel->header, parcel->header_length)}};
    size_t count = 1;
    if (parcel->envelope != NULL) {
        pieces[count++].bytes = parcel->envelope->message;
    }
    pieces[count - 1].release = release_parcel;
    pieces[count - 1].owner = parcel;
    enum status status = stream_write(peer->outbound, pieces, count);
    if (status != STATUS_OK) {
        relay_drop_ticket(ticket, reason_of(status));
    } else {
        metrics_add(
                count == 1 ? METRIC_RELAY_CONTROL_OUT : (enum metric)LEDGER_RELAY_OUT_DELIVERED, 1);
    }
}

static bool is_told(const struct relay_peer *peer, uint32_t index)
{
    return index < peer->told_count && (peer->told[index / 8] >> index % 8 & 1) != 0;
}

static bool grow_told(struct relay_peer *peer, uint32_t count)
{
    size_t before = (peer->told_count + 7) / 8;
    size_t after = (count + 7) / 8;
    if (after > before) {
        uint8_t *told = memory_resize(peer->told, after);
        if (told == NULL) {
            return false;
        }
        memset(told + before, 0, after - before);
        peer->told = told;
    }
    peer->told_count = count;
    return true;
}

/* Some of the news, from topic *next on. */
static size_t collect_news(
        const struct relay_peer *peer, struct gossip_subscription news[], uint32_t *next)
{
    const struct topic_registry *topics = peer->shard->relay->options.intake->topics;
    size_t count = 0;
    size_t bytes = 0;
    while (*next < peer->told_count && count < NEWS_TOPICS && bytes < NEWS_BYTES) {
        const struct topic *topic = topic_registry_at(topics, *next);
        bool is_subscribed = topic_registry_is_subscribed(topics, topic);
        if (is_subscribed != is_told(peer, *next)) {
            news[count++] =
                    (struct gossip_subscription){.topic = topic->name, .subscribe = is_subscribed};
            bytes += topic->name.length;
            peer->told[*next / 8] ^= (uint8_t)(1U << *next % 8);
        }
        ++*next;
    }
    return count;
}

static bool write_news(
        struct relay_peer *peer, const struct gossip_subscription news[], size_t count)
{
    struct gossip_outgoing rpc = {.subscriptions = news, .subscription_count = count};
    size_t size = gossip_outgoing_size(&rpc);
    uint8_t *bytes = memory_allocate(size);
    if (bytes == NULL) {
        return false;
    }
    struct muxer_piece piece = {.bytes = span_of(bytes, gossip_outgoing_write(bytes, size, &rpc)),
            .release = memory_free,
            .owner = bytes};
    if (stream_write(peer->outbound, &piece, 1) != STATUS_OK) {
        memory_free(bytes);
        return false;
    }
    return true;
}

/*
 * Which topics we take part in, as far as the peer does not know. Not queued but made when it is
 * sent, so that it is never lost or stale. False: no memory; what the peer knows is unclear then.
 */
static bool tell_news(struct relay_peer *peer)
{
    struct relay *relay = peer->shard->relay;
    struct gossip_subscription news[NEWS_TOPICS];
    uint64_t version = atomic_load_explicit(&relay->topics_version, memory_order_acquire);
    uint32_t next = 0;
    if (peer->told_version == version) {
        return true;
    }
    if (!grow_told(peer, topic_registry_count(relay->options.intake->topics))) {
        return false;
    }
    size_t count;
    while ((count = collect_news(peer, news, &next)) > 0) {
        if (!write_news(peer, news, count)) {
            return false;
        }
    }
    peer->told_version = version;
    return true;
}

/* False: not now. */
static bool has_room(struct relay_peer *peer)
{
    if (!peer->is_outbound_agreed) {
        return false;
    }
    if (!tell_news(peer)) {
        peer->is_outbound_agreed = false;
        stream_reset(peer->outbound, STATUS_NO_MEMORY);
        return false;
    }
    return stream_queued(peer->outbound) < RELAY_LOW_WATER;
}

static void log_slow(const struct relay_peer *peer)
{
    static struct log_limit limit;
    char text[PEER_ID_TEXT_SIZE];
    log_write_limited(&limit, LOG_NOTICE, "relay",
            "%s is slow: %zu messages (%zu bytes) wait for it, %llu were dropped",
            peer_id_print(text, connection_peer(peer->connection)), peer->queue.messages.count,
            peer->queue.messages.bytes, (unsigned long long)peer->queue.dropped);
}

void relay_pump(struct relay_peer *peer)
{
    uint64_t dropped = peer->queue.dropped;
    uint64_t now_ns = clock_monotonic_ns();
    while (has_room(peer)) {
        struct relay_ticket *ticket = relay_queue_try_pop(&peer->queue, now_ns);
        if (ticket == NULL) {
            break;
        }
        write_ticket(peer, ticket);
    }
    if (peer->queue.dropped != dropped) {
        log_slow(peer);
    }
}

/* The length that the header names is that of the RPC. */
static bool is_too_large(const struct relay *relay, const struct relay_parcel *parcel)
{
    uint64_t length;
    struct span header = span_of(parcel->header, parcel->header_length);
    return varint_read(&length, &header) == STATUS_OK && length > relay->options.max_message_bytes;
}

static void queue_ticket(struct relay_peer *peer, struct relay_ticket *ticket)
{
    uint64_t dropped = peer->queue.dropped;
    relay_queue_push(&peer->queue, ticket, clock_monotonic_ns());
    if (peer->queue.dropped != dropped) {
        log_slow(peer);
    }
}

void relay_take_ticket(struct relay_shard *shard, struct relay_ticket *ticket)
{
    struct relay_peer *peer = relay_find_peer(shard, ticket->connection);
    if (peer == NULL) {
        relay_drop_ticket(ticket, LEDGER_RELAY_OUT_PEER_GONE);
        return;
    }
    if (!ticket->parcel->is_control && is_too_large(shard->relay, ticket->parcel)) {
        relay_drop_ticket(ticket, LEDGER_RELAY_OUT_TOO_LARGE);
        return;
    }
    bool is_first = relay_queue_is_empty(&peer->queue) &&
                    !relay_queue_is_stale(&peer->queue, ticket, clock_monotonic_ns());
    if (is_first && has_room(peer)) {
        write_ticket(peer, ticket);
    } else {
        queue_ticket(peer, ticket);
    }
}
