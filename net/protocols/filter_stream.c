/* SPDX-License-Identifier: MIT */
#include "net/protocols/filter_stream.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/metrics.h"
#include "net/protocols/filter_client.h"

static uint64_t now_ms(void)
{
    return clock_monotonic_ns() / NANOSECONDS_PER_MILLISECOND;
}

void filter_stream_tell(struct filter_peer *peer)
{
    struct filter_subscriber *subscriber = peer->subscriber;
    const struct relay_queue *queue = &peer->queue;
    /* relaxed: readings */
    atomic_store_explicit(&subscriber->queue_bytes, queue->messages.bytes, memory_order_relaxed);
    atomic_store_explicit(&subscriber->queue_messages, queue->messages.count, memory_order_relaxed);
    if (queue->dropped != peer->dropped_told) {
        uint64_t more = queue->dropped - peer->dropped_told;
        atomic_fetch_add_explicit(&subscriber->dropped, more, memory_order_relaxed);
        filter_subscriber_note(subscriber, FILTER_PUSH_DROPPED);
        peer->dropped_told = queue->dropped;
    }
}

static void log_slow(const struct filter_peer *peer)
{
    static struct log_limit limit;
    char text[PEER_ID_TEXT_SIZE];
    log_write_limited(&limit, LOG_NOTICE, "filter",
            "subscriber %s is slow: %zu messages (%zu bytes) wait for it, %llu were dropped",
            peer_id_print(text, &peer->subscriber->peer), peer->queue.messages.count,
            peer->queue.messages.bytes, (unsigned long long)peer->queue.dropped);
}

/* The stream. */

static const struct stream_events events;

static void open_later(struct filter_peer *peer)
{
    unsigned doublings = peer->reopen_count < FILTER_REOPEN_DOUBLINGS ? peer->reopen_count
                                                                      : FILTER_REOPEN_DOUBLINGS;
    peer->reopen_at_ms = now_ms() + ((uint64_t)FILTER_REOPEN_MS << doublings);
    peer->reopen_count++;
}

static void open_stream(struct filter_peer *peer)
{
    static const char *const ids[] = {FILTER_PUSH_PROTOCOL_ID};
    struct stream_request request = {
            .protocols = ids, .protocol_count = 1, .events = &events, .context = peer};
    if (peer->reopen_at_ms > now_ms()) {
        return;
    }
    peer->reopen_at_ms = 0;
    if (connection_open_stream(peer->connection, &request, &peer->stream) != STATUS_OK) {
        peer->stream = NULL;
        open_later(peer);
    }
}

void filter_stream_begin(struct filter_peer *peer)
{
    open_stream(peer);
}

/* What is written leaves; the client has to close its side, too, within the timeout. */
static void end_stream(struct filter_peer *peer)
{
    if (!peer->is_ending) {
        peer->is_ending = true;
        stream_set_timeout(peer->stream, FILTER_END_TIMEOUT_MS);
        stream_close_write(peer->stream);
    }
}

static void release_parcel(void *owner)
{
    relay_parcel_unref(owner);
}

static void forget_unsure(struct filter_peer *peer)
{
    for (size_t i = 0; peer->unsure != NULL && i < peer->unsure->count; i++) {
        relay_parcel_unref(peer->unsure->parcels[i]);
    }
    memory_free(peer->unsure);
    peer->unsure = NULL;
}

/* Whether the next message is to be kept. Without memory, or with too many, it is not. */
static bool is_unsure(struct filter_peer *peer, size_t bytes)
{
    if (peer->is_one_shot || peer->written == 0 || now_ms() >= peer->sure_at_ms) {
        return false;
    }
    if (peer->unsure == NULL) {
        peer->unsure = memory_allocate_zeroed(sizeof(*peer->unsure));
    }
    return peer->unsure != NULL && peer->unsure->count < FILTER_UNSURE_MAX &&
           peer->unsure->bytes + bytes <= FILTER_UNSURE_BYTES;
}

static void keep_unsure(struct filter_unsure *unsure, struct relay_parcel *parcel)
{
    relay_parcel_ref(parcel);
    unsure->parcels[unsure->count++] = parcel;
    unsure->bytes += relay_parcel_bytes(parcel);
}

/* They go before what waits, in their order, one a stream. */
static void push_again(struct filter_peer *peer)
{
    struct filter_unsure *unsure = peer->unsure;
    for (size_t i = unsure == NULL ? 0 : unsure->count; i > 0; i--) {
        struct relay_ticket *again = relay_parcel_ticket_again(unsure->parcels[i - 1], peer->id);
        if (again != NULL) {
            metrics_add(METRIC_FILTER_REPEATED, 1);
            metrics_add(LEDGER_FILTER_OUT_RECEIVED, 1);
            relay_queue_put_back(&peer->queue, again);
        }
    }
    forget_unsure(peer);
}

/* The header's memory goes with the parcel, which the last piece releases. */
static void write_ticket(struct filter_peer *peer, struct relay_ticket *ticket)
{
    bool is_kept = is_unsure(peer, relay_parcel_bytes(ticket->parcel));
    struct relay_parcel *parcel = (is_kept ? relay_ticket_settle(ticket) : ticket)->parcel;
    struct muxer_piece pieces[2] = {{.bytes = span_of(parcel->header, parcel->header_length)},
            {.bytes = parcel->envelope->message, .release = release_parcel, .owner = parcel}};
    size_t bytes = relay_parcel_bytes(parcel);
    enum status status = stream_write(peer->stream, pieces, 2);
    if (status != STATUS_OK) {
        metrics_add(
                status == STATUS_CLOSED ? LEDGER_FILTER_OUT_PEER_GONE : LEDGER_FILTER_OUT_NO_MEMORY,
                1);
        peer->queue.dropped++;
        relay_parcel_unref(parcel);
        return;
    }
    if (is_kept) {
        keep_unsure(peer->unsure, parcel);
    } else if (peer->written == 0) {
        peer->first_ms = now_ms();
        peer->sure_at_ms = peer->first_ms + FILTER_UNSURE_MS;
    }
    peer->written += bytes;
    filter_subscriber_note(peer->subscriber, FILTER_PUSH_SENT);
    metrics_add(LEDGER_FILTER_OUT_DELIVERED, 1);
}

static bool has_room(struct filter_peer *peer)
{
    if (!peer->is_agreed || peer->is_ending || (peer->is_one_shot && peer->written > 0)) {
        return false;
    }
    return stream_queued(peer->stream) < FILTER_LOW_WATER;
}

static void pump(struct filter_peer *peer)
{
    uint64_t now_ns = clock_monotonic_ns();
    while (has_room(peer)) {
        struct relay_ticket *ticket = relay_queue_try_pop(&peer->queue, now_ns);
        if (ticket == NULL) {
            break;
        }
        write_ticket(peer, ticket);
    }
    if (peer->is_agreed && peer->is_one_shot && peer->written > 0) {
        end_stream(peer);
    }
    if (peer->stream == NULL && !relay_queue_is_empty(&peer->queue) && !peer->is_condemned) {
        open_stream(peer);
    }
    filter_stream_tell(peer);
}

static enum status on_opened(struct stream *stream)
{
    struct filter_peer *peer = stream_context(stream);
    if (peer == NULL) {
        return STATUS_CLOSED;
    }
    peer->is_agreed = true;
    peer->reopen_count = 0;
    metrics_add(METRIC_FILTER_STREAMS, 1);
    pump(peer);
    return STATUS_OK;
}

static void on_writable(struct stream *stream)
{
    struct filter_peer *peer = stream_context(stream);
    if (peer != NULL) {
        pump(peer);
    }
}

/* Whether the client ends its streams by itself after a message. */
static void judge_end(struct filter_peer *peer)
{
    if (peer->written > 0 && !peer->is_ending && !peer->is_condemned &&
            now_ms() - peer->first_ms < FILTER_SHORT_STREAM_MS) {
        peer->is_one_shot = true;
        push_again(peer);
    }
}

/* It writes nothing, so its end may mean that it reads no more: what follows goes by another stream. */
static void on_remote_closed(struct stream *stream)
{
    struct filter_peer *peer = stream_context(stream);
    if (peer != NULL) {
        judge_end(peer);
        end_stream(peer);
    }
}

static void on_closed(struct stream *stream, enum status reason)
{
    struct filter_peer *peer = stream_context(stream);
    if (peer == NULL) {
        return;
    }
    bool was_agreed = peer->is_agreed;
    if (was_agreed && reason != STATUS_CLOSED) {
        judge_end(peer);
    }
    forget_unsure(peer);
    filter_client_drop(&peer->inbound);
    peer->written_before += peer->written;
    peer->stream = NULL;
    peer->is_agreed = false;
    peer->is_ending = false;
    peer->written = 0;
    if (!was_agreed) {
        metrics_add(METRIC_FILTER_STREAMS_REFUSED, reason == STATUS_NO_COMMON_PROTOCOL);
    }
    /* With nothing to send it was opened before its time: the first message asks once more. */
    if (!was_agreed && !relay_queue_is_empty(&peer->queue)) {
        open_later(peer);
    }
    if (reason != STATUS_CLOSED) {
        pump(peer);
    }
}

static size_t on_reserve(struct stream *stream, size_t wanted, uint8_t **to)
{
    struct filter_peer *peer = stream_context(stream);
    return peer == NULL ? stream_reserve_waste(stream, wanted, to)
                        : filter_client_reserve(peer->shard->filter->options.client, &peer->inbound,
                                  stream, wanted, to);
}

static void on_commit(struct stream *stream, size_t n)
{
    struct filter_peer *peer = stream_context(stream);
    bool is_good = filter_client_commit(peer == NULL ? NULL : peer->inbound, stream, n);
    (void)is_good; /* else it is closed, as by the peer */
}

static const struct stream_events events = {
        .opened = on_opened,
        .reserve = on_reserve,
        .commit = on_commit,
        .writable = on_writable,
        .remote_closed = on_remote_closed,
        .closed = on_closed,
};

void filter_stream_end(struct filter_peer *peer)
{
    forget_unsure(peer);
    filter_client_drop(&peer->inbound);
    if (peer->stream != NULL) {
        struct stream *stream = peer->stream;
        stream_set_context(stream, NULL);
        peer->stream = NULL;
        if (peer->is_agreed) {
            stream_set_timeout(stream, FILTER_END_TIMEOUT_MS);
            stream_close_write(stream);
        } else {
            stream_reset(stream, STATUS_CLOSED);
        }
    }
}

/* The queue. */

void filter_stream_take(struct filter_peer *peer, struct relay_ticket *ticket)
{
    uint64_t dropped = peer->queue.dropped;
    uint64_t now_ns = clock_monotonic_ns();
    bool is_next = relay_queue_is_empty(&peer->queue) && has_room(peer) &&
                   !relay_queue_is_stale(&peer->queue, ticket, now_ns);
    if (is_next) {
        write_ticket(peer, ticket);
    } else {
        filter_subscriber_note(peer->subscriber, FILTER_PUSH_WAITING);
        relay_queue_push(&peer->queue, ticket, now_ns);
    }
    if (!is_next || peer->is_one_shot) {
        pump(peer);
    }
    peer->is_behind = peer->is_behind || !relay_queue_is_empty(&peer->queue);
    if (peer->queue.dropped != dropped) {
        log_slow(peer);
    }
}

static bool is_waiting(const struct filter_peer *peer)
{
    return peer->is_behind || !relay_queue_is_empty(&peer->queue) ||
           (peer->stream != NULL && peer->is_agreed && stream_queued(peer->stream) > 0);
}

static uint64_t bytes_moved(const struct filter_peer *peer)
{
    size_t queued = peer->stream != NULL && peer->is_agreed ? stream_queued(peer->stream) : 0;
    uint64_t written = peer->written_before + peer->written;
    return written - (queued < written ? queued : written);
}

static bool is_stuck(struct filter_peer *peer, uint64_t time_ms)
{
    uint64_t moved = bytes_moved(peer);
    if (moved != peer->moved) {
        peer->moved = moved;
        peer->is_behind = false;
        peer->moved_at_ms = time_ms;
    } else if (!is_waiting(peer)) {
        peer->moved_at_ms = time_ms;
    }
    return time_ms - peer->moved_at_ms >= peer->shard->filter->options.stuck_timeout_ms;
}

/* Its subscription ends on the filter thread; nothing is kept for it until then. */
static void condemn(struct filter_peer *peer, uint64_t time_ms)
{
    char text[PEER_ID_TEXT_SIZE];
    if (!filter_post_drop(peer->subscriber, peer->id)) {
        return;
    }
    log_write(LOG_NOTICE, "filter",
            "subscriber %s is dropped: it has taken nothing for %llu ms; %zu messages wait, %llu "
            "were dropped",
            peer_id_print(text, &peer->subscriber->peer),
            (unsigned long long)(time_ms - peer->moved_at_ms), peer->queue.messages.count,
            (unsigned long long)peer->queue.dropped);
    metrics_add(METRIC_FILTER_STUCK, 1);
    peer->is_condemned = true;
    relay_queue_clear(&peer->queue, LEDGER_FILTER_OUT_STALE);
    filter_stream_tell(peer);
    if (peer->stream != NULL) {
        stream_reset(peer->stream, STATUS_TIMED_OUT);
    }
}

void filter_stream_tick(struct filter_peer *peer, uint64_t time_ms)
{
    relay_queue_expire(&peer->queue, clock_monotonic_ns());
    pump(peer);
    relay_queue_settle(&peer->queue);
    if (peer->unsure != NULL && time_ms >= peer->sure_at_ms) {
        forget_unsure(peer);
    }
    if (is_stuck(peer, time_ms) && !peer->is_condemned) {
        condemn(peer, time_ms);
    }
}
