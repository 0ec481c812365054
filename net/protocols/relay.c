/* SPDX-License-Identifier: MIT */

/* Relay as other threads see it: tasks, inboxes and the timer of each io thread's share. */

#include "net/protocols/relay.h"

#include <assert.h>
#include <openssl/rand.h>
#include <stdalign.h>

#include "base/clock.h"
#include "base/memory.h"
#include "net/protocols/relay_private.h"
#include "net/switch/slot_table.h"

/*
 * Ordering:
 *
 *   POSTED  exchange of is_drain_posted (is_resume_posted) -> store of false before the work is taken.
 *           Whoever finds it set knows that the task has not begun to take yet, so that what was put
 *           in the inbox before is taken by it.
 */

enum {
    DRAIN_TICKETS = 1024, /* in one task; the sockets have their turn between two */
    FRAMES_IN_BUDGET = 2, /* the least that the frame budget must have room for */
    SHARES_IN_BUDGET = 8
};

struct relay_peer *relay_find_peer(const struct relay_shard *shard, uint64_t connection)
{
    struct hash_link *link = hash_table_first(&shard->by_connection, connection);
    while (link != NULL && ((struct relay_peer *)link)->id != connection) {
        link = hash_table_next(link);
    }
    return (struct relay_peer *)link;
}
_Static_assert(offsetof(struct relay_peer, by_connection) == 0, "a peer is found by its link");

struct relay_shard *relay_shard_of(struct relay *relay, uint64_t connection)
{
    size_t index = slot_table_tag_of(connection);
    return index < relay->shard_count ? &relay->shards[index] : NULL;
}

/* Control first: it is what the mesh stands on. */
static struct relay_ticket *next_ticket(struct relay_shard *shard)
{
    struct relay_ticket *ticket = relay_ticket_of(inbox_try_pop(shard->control));
    return ticket != NULL ? ticket : relay_ticket_of(inbox_try_pop(shard->messages));
}

static void post_drain(struct relay_shard *shard)
{
    /* POSTED */
    if (!atomic_exchange_explicit(&shard->is_drain_posted, true, memory_order_acq_rel)) {
        io_loop_post(shard->loop, &shard->drain);
    }
}

static void run_drain(struct io_task *task)
{
    struct relay_shard *shard =
            (struct relay_shard *)((char *)task - offsetof(struct relay_shard, drain));
    /* POSTED: an exchange, so that it has seen what the one before it has */
    atomic_exchange_explicit(&shard->is_drain_posted, false, memory_order_acq_rel);
    struct relay_ticket *ticket = NULL;
    for (size_t i = 0; i < DRAIN_TICKETS; i++) {
        ticket = next_ticket(shard);
        if (ticket == NULL) {
            break;
        }
        relay_take_ticket(shard, ticket);
    }
    if (ticket != NULL) {
        post_drain(shard);
    }
}

static void run_resume(struct io_task *task)
{
    struct relay_shard *shard =
            (struct relay_shard *)((char *)task - offsetof(struct relay_shard, resume));
    atomic_exchange_explicit(&shard->is_resume_posted, false, memory_order_acq_rel); /* POSTED */
    relay_resume_starved(shard);
}

/* The frame budget, or a peer's share of it, has room again. */
void relay_wake_starved(void *context)
{
    struct relay_shard *shard = context;
    /* POSTED */
    if (!atomic_exchange_explicit(&shard->is_resume_posted, true, memory_order_acq_rel)) {
        io_loop_post(shard->loop, &shard->resume);
    }
}

static void on_tick(uv_timer_t *timer)
{
    struct relay_shard *shard = timer->data;
    uint64_t now_ms = clock_monotonic_ns() / NANOSECONDS_PER_MILLISECOND;
    struct relay_peer *peer;
    TAILQ_FOREACH(peer, &shard->peers, link)
    {
        relay_peer_tick(peer, now_ms);
    }
}

static enum status create_queues(struct relay_shard *shard)
{
    enum status status = hash_table_init(&shard->by_connection);
    if (status == STATUS_OK) {
        status = inbox_create(&shard->control);
    }
    if (status == STATUS_OK) {
        status = inbox_create(&shard->messages);
    }
    return status;
}

static void destroy_queues(struct relay_shard *shard)
{
    inbox_destroy(&shard->control);
    inbox_destroy(&shard->messages);
    hash_table_fini(&shard->by_connection);
}

/* On failure there is nothing to take back. */
static enum status shard_init(struct relay_shard *shard, struct relay *relay, struct io_loop *loop)
{
    shard->relay = relay;
    shard->loop = loop;
    shard->drain.run = run_drain;
    shard->resume.run = run_resume;
    TAILQ_INIT(&shard->peers);
    TAILQ_INIT(&shard->starved);
    atomic_init(&shard->is_drain_posted, false);
    atomic_init(&shard->is_resume_posted, false);
    atomic_init(&shard->joined_count, 0);
    enum status status = create_queues(shard);
    if (status == STATUS_OK) {
        status = frame_budget_add_waker(relay->options.budget, relay_wake_starved, shard);
    }
    if (status != STATUS_OK) {
        destroy_queues(shard);
        return status;
    }
    /* libuv's documentation: both always succeed. */
    uv_timer_init(io_loop_uv(loop), &shard->tick);
    shard->tick.data = shard;
    uv_timer_start(&shard->tick, on_tick, RELAY_TICK_MS, RELAY_TICK_MS);
    return STATUS_OK;
}

static void fill_defaults(struct relay *relay)
{
    struct relay_options *options = &relay->options;
    if (options->queue_bytes_max == 0) {
        options->queue_bytes_max = RELAY_QUEUE_BYTES;
    }
    if (options->outbound_bytes_max == 0) {
        options->outbound_bytes_max = RELAY_OUTBOUND_BYTES;
    }
    if (options->peer_events_max == 0) {
        options->peer_events_max = RELAY_PEER_EVENTS_MAX;
    }
    if (options->peer_bytes_max == 0) {
        options->peer_bytes_max = frame_budget_limit(options->budget) / SHARES_IN_BUDGET;
    }
    if (options->message_age_max_ms == 0) {
        options->message_age_max_ms = RELAY_MESSAGE_AGE_MS;
    }
    relay->limits = (struct relay_queue_limits){
            .message_bytes_max = options->queue_bytes_max,
            .message_overhead = RELAY_TICKET_BYTES,
            .control_bytes_max = RELAY_CONTROL_BYTES,
            .age_max_ns = options->message_age_max_ms * NANOSECONDS_PER_MILLISECOND,
            .reasons = &relay_queue_reasons_of_relay,
            .held = &relay->held,
    };
    relay->own_outbound.bytes_max = options->outbound_bytes_max;
    atomic_init(&relay->own_outbound.bytes, 0);
    relay->outbound = options->outbound != NULL ? options->outbound : &relay->own_outbound;
    atomic_init(&relay->held, 0);
    atomic_init(&relay->topics_version, 1);
}

enum status relay_create(struct relay **out, const struct relay_options *options)
{
    size_t frame = options->max_message_bytes + RELAY_FRAME_SLACK;
    if (frame_budget_limit(options->budget) / 2 < FRAMES_IN_BUDGET * frame_charge(frame)) {
        return STATUS_BAD_ARGUMENT;
    }
    struct relay *relay = memory_allocate_zeroed(
            sizeof(*relay) + options->loop_count * sizeof(struct relay_shard));
    if (relay == NULL) {
        return STATUS_NO_MEMORY;
    }
    relay->options = *options;
    fill_defaults(relay);
    enum status status =
            RAND_bytes(relay->secret, sizeof(relay->secret)) == 1 ? STATUS_OK : STATUS_SYSTEM;
    for (size_t i = 0; status == STATUS_OK && i < options->loop_count; i++) {
        assert(io_loop_index(options->loops[i]) == i);
        status = shard_init(&relay->shards[i], relay, options->loops[i]);
        relay->shard_count = i + (status == STATUS_OK);
    }
    if (status == STATUS_OK) {
        status = relay_peer_register(relay);
    }
    if (status != STATUS_OK) {
        relay_destroy(&relay);
        return status;
    }
    *out = relay;
    return STATUS_OK;
}

static void on_tick_closed(uv_handle_t *handle)
{
    struct relay_shard *shard = handle->data;
    shard->is_tick_closed = true;
}

static void shard_fini(struct relay_shard *shard)
{
    struct relay_ticket *ticket;
    assert(TAILQ_EMPTY(&shard->peers));
    frame_budget_remove_waker(shard->relay->options.budget, shard);
    uv_close((uv_handle_t *)&shard->tick, on_tick_closed);
    while (!shard->is_tick_closed) {
        io_loop_turn(shard->loop);
    }
    while ((ticket = next_ticket(shard)) != NULL) {
        relay_drop_ticket(ticket, LEDGER_RELAY_OUT_PEER_GONE);
    }
    /* relaxed: whoever posted has ended. The loop outlives what it has been given to run. */
    while (atomic_load_explicit(&shard->is_drain_posted, memory_order_relaxed) ||
            atomic_load_explicit(&shard->is_resume_posted, memory_order_relaxed)) {
        io_loop_turn(shard->loop);
    }
    destroy_queues(shard);
}

void relay_destroy(struct relay **relay)
{
    if (*relay == NULL) {
        return;
    }
    for (size_t i = 0; i < (*relay)->shard_count; i++) {
        shard_fini(&(*relay)->shards[i]);
    }
    memory_free(*relay);
    *relay = NULL;
}

static void post(void *context, struct relay_ticket *ticket)
{
    struct relay *relay = context;
    struct relay_shard *shard = relay_shard_of(relay, ticket->connection);
    assert(shard != NULL);
    if (ticket->parcel->is_control) {
        inbox_push(shard->control, &ticket->link);
        return;
    }
    metrics_add(LEDGER_RELAY_OUT_RECEIVED, 1);
    inbox_push(shard->messages, &ticket->link);
}

static void flush(void *context)
{
    struct relay *relay = context;
    for (size_t i = 0; i < relay->shard_count; i++) {
        struct relay_shard *shard = &relay->shards[i];
        if (inbox_depth_estimate(shard->control) + inbox_depth_estimate(shard->messages) > 0) {
            post_drain(shard);
        }
    }
}

static void disconnect(void *context, uint64_t connection)
{
    struct relay *relay = context;
    switch_close_connection(relay->options.net_switch, connection, CLOSE_GRAYLISTED);
}

struct relay_port relay_port(struct relay *relay)
{
    return (struct relay_port){
            .post = post, .flush = flush, .disconnect = disconnect, .context = relay};
}

struct topic_task {
    struct io_task task;
    struct relay_shard *shard;
    const struct topic *topic;
};

static void run_topic(struct io_task *task)
{
    struct topic_task *work = (struct topic_task *)task;
    struct relay *relay = work->shard->relay;
    bool is_subscribed = topic_registry_is_subscribed(relay->options.intake->topics, work->topic);
    struct relay_peer *peer;
    TAILQ_FOREACH(peer, &work->shard->peers, link)
    {
        if (peer->is_joined && is_subscribed &&
                relay_topics_has(&peer->topics, work->topic->name)) {
            relay_post_subscription(peer, work->topic, true);
        }
        relay_pump(peer);
    }
    memory_free(work);
}

void relay_topic_changed(struct relay *relay, const struct topic *topic)
{
    /* release: who sees the new version sees the registry's mark; the loads are acquire */
    atomic_fetch_add_explicit(&relay->topics_version, 1, memory_order_release);
    for (size_t i = 0; i < relay->shard_count; i++) {
        struct topic_task *work = memory_allocate(sizeof(*work));
        if (work == NULL) {
            return; /* the peers hear of it with the next thing that is sent to them */
        }
        *work = (struct topic_task){
                .task.run = run_topic, .shard = &relay->shards[i], .topic = topic};
        io_loop_post(relay->shards[i].loop, &work->task);
    }
}

uint64_t relay_held(const struct relay *relay)
{
    /* relaxed: a reading */
    uint64_t held = atomic_load_explicit(&relay->held, memory_order_relaxed);
    for (size_t i = 0; i < relay->shard_count; i++) {
        held += inbox_depth_estimate(relay->shards[i].messages);
    }
    return held;
}

struct relay_outbound relay_outbound(const struct relay *relay)
{
    const struct relay_budget *budget = relay->outbound;
    /* relaxed: readings */
    return (struct relay_outbound){
            .messages = atomic_load_explicit(&relay->held, memory_order_relaxed),
            .bytes = atomic_load_explicit(&budget->bytes, memory_order_relaxed),
            .bytes_max = budget->bytes_max,
    };
}

bool relay_standing_of(
        struct relay *relay, const struct connection *connection, struct relay_standing *out)
{
    uint64_t id = connection_id(connection);
    const struct relay_peer *peer = relay_find_peer(relay_shard_of(relay, id), id);
    if (peer == NULL || !peer->is_joined) {
        return false;
    }
    *out = (struct relay_standing){
            .peer = peer->number, .score = score_card_total(&peer->card->card)};
    return true;
}

size_t relay_peer_count(const struct relay *relay)
{
    size_t count = 0;
    for (size_t i = 0; i < relay->shard_count; i++) {
        /* relaxed: a reading */
        count += atomic_load_explicit(&relay->shards[i].joined_count, memory_order_relaxed);
    }
    return count;
}
