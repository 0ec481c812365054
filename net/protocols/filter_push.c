/* SPDX-License-Identifier: MIT */

/* From filter threads to the subscribers' io threads: tickets, orders, and each peer's life there. */

#include <assert.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/metrics.h"
#include "net/protocols/filter_stream.h"
#include "net/switch/slot_table.h"

/*
 * Ordering:
 *
 *   POSTED  exchange of is_drain_posted -> exchange to false before the work is taken. Whoever finds
 *           it set knows that the task has not begun to take yet, so that what was put in an inbox
 *           before is taken by it.
 *
 * A filter thread pushes an attaching order before the messages for it. The io thread that has popped
 * such a message without knowing the connection looks for orders again, and finds it.
 */

/*
 * In one task; the sockets have their turn between two. What one peer gets is a quarter of the least
 * queue, or two messages, so that one that takes what it is sent never loses a message to a burst.
 * What waits for a peer beyond its first message leaves with it in one write, so a task takes many
 * messages; each further peer is one more write, so it takes fewer of these.
 */
enum {
    DRAIN_MESSAGES = 1024,
    DRAIN_PEERS = 256,
    DRAIN_BYTES = 1024 * 1024,
    DRAIN_PEER_BYTES = 64 * 1024
};

static struct filter_shard *shard_of(struct filter *filter, uint64_t connection)
{
    size_t index = slot_table_tag_of(connection);
    assert(index < filter->shard_count);
    return &filter->shards[index];
}

static struct filter_peer *find_peer(const struct filter_shard *shard, uint64_t connection)
{
    struct hash_link *link = hash_table_first(&shard->by_connection, connection);
    while (link != NULL && ((struct filter_peer *)link)->id != connection) {
        link = hash_table_next(link);
    }
    return (struct filter_peer *)link;
}
_Static_assert(offsetof(struct filter_peer, by_connection) == 0, "a peer is found by its link");

static void post_drain(struct filter_shard *shard)
{
    /* POSTED */
    if (!atomic_exchange_explicit(&shard->is_drain_posted, true, memory_order_acq_rel)) {
        io_loop_post(shard->loop, &shard->drain);
    }
}

void filter_post_order(struct filter *filter, struct filter_order *order)
{
    struct filter_shard *shard = shard_of(filter, order->connection);
    inbox_push(shard->orders, &order->link);
    post_drain(shard);
}

/* On the filter thread. */

static void refuse_all(const struct subscriber_list *list, enum metric reason)
{
    for (size_t i = 0; i < list->count; i++) {
        if (list->entries[i].context != NULL) {
            filter_subscriber_note(list->entries[i].context, FILTER_PUSH_DROPPED);
            metrics_add(reason, 1);
        }
    }
}

static size_t count_connected(const struct subscriber_list *list)
{
    size_t count = 0;
    for (size_t i = 0; i < list->count; i++) {
        struct filter_subscriber *subscriber = list->entries[i].context;
        metrics_add(LEDGER_FILTER_OUT_RECEIVED, subscriber != NULL);
        count += subscriber != NULL && subscriber->connection != 0;
    }
    return count;
}

static void post_tickets(
        struct filter *filter, const struct subscriber_list *list, struct relay_parcel *parcel)
{
    size_t used = 0;
    for (size_t i = 0; i < list->count; i++) {
        struct filter_subscriber *subscriber = list->entries[i].context;
        if (subscriber == NULL) {
            continue;
        }
        if (subscriber->connection == 0) {
            filter_subscriber_note(subscriber, FILTER_PUSH_NOT_CONNECTED);
            metrics_add(LEDGER_FILTER_OUT_PEER_GONE, 1);
            continue;
        }
        struct relay_ticket *ticket = &parcel->tickets[used++];
        ticket->connection = subscriber->connection;
        inbox_push(shard_of(filter, ticket->connection)->messages, &ticket->link);
    }
}

/* One header and one reference to the bytes as received, for all of them. */
static void push(void *context, const struct subscriber_list *list, struct envelope *envelope)
{
    struct filter *filter = context;
    struct span topic = envelope->topic->name;
    struct relay_parcel *parcel = NULL;
    size_t connected = count_connected(list);
    if (connected > 0) {
        parcel = relay_parcel_behind_header(envelope,
                filter_push_head_size(topic, envelope->message.length), NULL, connected,
                clock_monotonic_ns());
        if (parcel == NULL) {
            refuse_all(list, LEDGER_FILTER_OUT_NO_MEMORY);
            return;
        }
        filter_push_head_write(parcel->header, topic, envelope->message.length);
    }
    post_tickets(filter, list, parcel);
}

static void flush(void *context)
{
    struct filter *filter = context;
    for (size_t i = 0; i < filter->shard_count; i++) {
        if (inbox_depth_estimate(filter->shards[i].messages) > 0) {
            post_drain(&filter->shards[i]);
        }
    }
}

struct filter_port filter_port(struct filter *filter)
{
    return (struct filter_port){.push = push, .flush = flush, .context = filter};
}

/* On the io thread. */

static void remove_peer(struct filter_peer *peer)
{
    struct filter_shard *shard = peer->shard;
    hash_table_remove(&shard->by_connection, &peer->by_connection);
    TAILQ_REMOVE(&shard->peers, peer, link);
    filter_stream_end(peer);
    relay_queue_clear(&peer->queue, LEDGER_FILTER_OUT_PEER_GONE);
    filter_stream_tell(peer);
    filter_subscriber_unref(peer->subscriber);
    memory_free(peer);
}

/* NULL: the connection is gone, or there is no memory: then its messages are dropped, counted. */
static struct filter_peer *add_peer(struct filter_shard *shard, const struct filter_order *order)
{
    struct filter *filter = shard->filter;
    struct connection *connection =
            switch_find_connection(filter->options.net_switch, order->connection);
    struct filter_peer *peer =
            connection == NULL ? NULL : memory_allocate_zeroed(sizeof(struct filter_peer));
    if (peer == NULL) {
        return NULL;
    }
    peer->shard = shard;
    peer->connection = connection;
    peer->id = order->connection;
    peer->moved_at_ms = clock_monotonic_ns() / NANOSECONDS_PER_MILLISECOND;
    relay_queue_init(&peer->queue, &filter->queue_limits, filter->options.outbound);
    hash_table_insert(&shard->by_connection, &peer->by_connection, peer->id);
    TAILQ_INSERT_TAIL(&shard->peers, peer, link);
    return peer;
}

/* The peer may have been attached with an earlier subscription, whose end is still to come. */
static void attach(struct filter_shard *shard, struct filter_order *order)
{
    struct filter_peer *peer = find_peer(shard, order->connection);
    bool is_new = peer == NULL;
    if (is_new) {
        peer = add_peer(shard, order);
    } else {
        filter_subscriber_unref(peer->subscriber);
        peer->is_condemned = false;
        peer->is_behind = false;
        peer->moved_at_ms = clock_monotonic_ns() / NANOSECONDS_PER_MILLISECOND;
        peer->dropped_told = peer->queue.dropped;
    }
    if (peer != NULL) {
        peer->subscriber = order->subscriber;
    } else {
        filter_subscriber_note(order->subscriber, FILTER_PUSH_NOT_CONNECTED);
        filter_subscriber_unref(order->subscriber);
    }
    if (peer != NULL && is_new) {
        filter_stream_begin(peer);
    }
    memory_free(order);
}

static void detach(struct filter_shard *shard, const struct filter_order *order)
{
    struct filter_subscriber *subscriber = order->subscriber;
    struct filter_peer *peer = find_peer(shard, order->connection);
    if (peer != NULL && peer->subscriber == subscriber) {
        remove_peer(peer);
    }
    filter_subscriber_unref(subscriber);
}

static void carry_out_orders(struct filter_shard *shard)
{
    struct inbox_link *link;
    while ((link = inbox_try_pop(shard->orders)) != NULL) {
        struct filter_order *order =
                (struct filter_order *)((char *)link - offsetof(struct filter_order, link));
        if (order->is_attach) {
            attach(shard, order);
        } else {
            detach(shard, order);
        }
    }
}

/* NULL: it is gone, or was dropped. */
static struct filter_peer *find_taker(struct filter_shard *shard, uint64_t connection)
{
    struct filter_peer *peer = find_peer(shard, connection);
    if (peer == NULL) {
        carry_out_orders(shard);
        peer = find_peer(shard, connection);
    }
    return peer == NULL || peer->is_condemned ? NULL : peer;
}

/* What a task has taken so far. */
struct drained {
    size_t messages;
    size_t peers;
    size_t bytes;
    bool has_peer_enough;
};

static void take_ticket(
        struct filter_shard *shard, struct relay_ticket *ticket, struct drained *drained)
{
    struct filter_peer *peer = find_taker(shard, ticket->connection);
    size_t bytes = relay_parcel_bytes(ticket->parcel);
    drained->messages++;
    if (peer == NULL) {
        metrics_add(LEDGER_FILTER_OUT_PEER_GONE, 1);
        relay_parcel_unref(ticket->parcel);
        return;
    }
    if (peer->drain != shard->drain_number) {
        peer->drain = shard->drain_number;
        peer->drained_bytes = bytes;
        drained->peers++;
    } else {
        peer->drained_bytes += bytes;
        drained->has_peer_enough = peer->drained_bytes >= DRAIN_PEER_BYTES;
    }
    drained->bytes += bytes;
    filter_stream_take(peer, ticket);
}

static bool is_enough(const struct drained *drained)
{
    return drained->messages == DRAIN_MESSAGES || drained->peers == DRAIN_PEERS ||
           drained->bytes >= DRAIN_BYTES || drained->has_peer_enough;
}

static void run_drain(struct io_task *task)
{
    struct filter_shard *shard =
            (struct filter_shard *)((char *)task - offsetof(struct filter_shard, drain));
    struct drained drained = {0};
    atomic_exchange_explicit(&shard->is_drain_posted, false, memory_order_acq_rel); /* POSTED */
    shard->drain_number++;
    carry_out_orders(shard);
    while (!is_enough(&drained)) {
        struct relay_ticket *ticket = relay_ticket_of(inbox_try_pop(shard->messages));
        if (ticket == NULL) {
            return;
        }
        take_ticket(shard, ticket, &drained);
    }
    post_drain(shard);
}

static void on_tick(uv_timer_t *timer)
{
    struct filter_shard *shard = timer->data;
    uint64_t now_ms = clock_monotonic_ns() / NANOSECONDS_PER_MILLISECOND;
    struct filter_peer *peer;
    TAILQ_FOREACH(peer, &shard->peers, link)
    {
        filter_stream_tick(peer, now_ms);
    }
}

static void on_connected(void *context, struct connection *connection)
{
    filter_post_presence(context, connection, true);
}

/* Its streams are gone already. */
static void on_disconnected(void *context, struct connection *connection, enum close_reason reason)
{
    (void)reason;
    struct filter *filter = context;
    struct filter_peer *peer =
            find_peer(shard_of(filter, connection_id(connection)), connection_id(connection));
    if (peer != NULL) {
        assert(peer->stream == NULL);
        remove_peer(peer);
    }
    filter_post_presence(filter, connection, false);
}

static enum status shard_init(
        struct filter_shard *shard, struct filter *filter, struct io_loop *loop)
{
    shard->filter = filter;
    shard->loop = loop;
    shard->drain.run = run_drain;
    TAILQ_INIT(&shard->peers);
    atomic_init(&shard->is_drain_posted, false);
    enum status status = hash_table_init(&shard->by_connection);
    if (status == STATUS_OK) {
        status = inbox_create(&shard->orders);
    }
    if (status == STATUS_OK) {
        status = inbox_create(&shard->messages);
    }
    if (status == STATUS_OK) {
        /* libuv's documentation: both always succeed. */
        uv_timer_init(io_loop_uv(loop), &shard->tick);
        shard->tick.data = shard;
        uv_timer_start(&shard->tick, on_tick, FILTER_TICK_MS, FILTER_TICK_MS);
    }
    return status;
}

enum status filter_push_init(struct filter *filter)
{
    static const struct switch_observer observer = {
            .connected = on_connected, .disconnected = on_disconnected};
    const struct filter_options *options = &filter->options;
    filter->queue_limits = (struct relay_queue_limits){
            .message_bytes_max = options->queue_bytes_max,
            .message_overhead = RELAY_TICKET_BYTES,
            .age_max_ns = options->queue_age_max_ms * NANOSECONDS_PER_MILLISECOND,
            .reasons = &relay_queue_reasons_of_filter,
            .held = &filter->held,
    };
    atomic_init(&filter->held, 0);
    enum status status = STATUS_OK;
    for (size_t i = 0; status == STATUS_OK && i < options->loop_count; i++) {
        assert(io_loop_index(options->loops[i]) == i);
        status = shard_init(&filter->shards[i], filter, options->loops[i]);
        filter->shard_count = i + (status == STATUS_OK);
    }
    return status == STATUS_OK ? switch_add_observer(options->net_switch, &observer, filter)
                               : status;
}

static void on_tick_closed(uv_handle_t *handle)
{
    struct filter_shard *shard = handle->data;
    shard->is_tick_closed = true;
}

static void shard_fini(struct filter_shard *shard)
{
    assert(TAILQ_EMPTY(&shard->peers));
    uv_close((uv_handle_t *)&shard->tick, on_tick_closed);
    post_drain(shard);
    /* relaxed: whoever posted has ended. Without connections what is left is dropped, counted. */
    while (!shard->is_tick_closed ||
            atomic_load_explicit(&shard->is_drain_posted, memory_order_relaxed)) {
        io_loop_turn(shard->loop);
    }
    inbox_destroy(&shard->orders);
    inbox_destroy(&shard->messages);
    hash_table_fini(&shard->by_connection);
}

void filter_push_fini(struct filter *filter)
{
    for (size_t i = 0; i < filter->shard_count; i++) {
        shard_fini(&filter->shards[i]);
    }
}

uint64_t filter_held(const struct filter *filter)
{
    /* relaxed: a reading */
    uint64_t held = atomic_load_explicit(&filter->held, memory_order_relaxed);
    for (size_t i = 0; i < filter->shard_count; i++) {
        held += inbox_depth_estimate(filter->shards[i].messages);
    }
    return held;
}
