/* SPDX-License-Identifier: MIT */
#include "workers/relay_lane.h"

#include <stdatomic.h>

#include "base/clock.h"
#include "base/memory.h"
#include "hash/message_id.h"
#include "router/peer_scores.h"
#include "router/topic_scores.h"
#include "workers/relay_control.h"
#include "workers/relay_peers.h"

enum {
    EVENTS_A_TURN = 256,
    HEARTBEAT_NS = NANOSECONDS_PER_SECOND
};

/* Who sent a message when that peer has left meanwhile: no peer's number, and not ours (0). */
#define SENDER_GONE UINT64_MAX

struct relay_lane {
    struct relay_lane_options options;
    struct topic_scores *topic_scores;
    struct peer_scores *peer_scores; /* lane 0, NULL elsewhere */
    struct mesh *mesh;
    struct relay_peers peers;
    struct mesh_actions actions;
    struct mesh_recipients recipients;
    uint64_t *connections; /* room for the recipients of one message */
    size_t connection_capacity;
    uint64_t next_heartbeat_ns;
    bool has_posted;
    /* readings for other threads */
    _Atomic uint64_t peer_count;
    _Atomic uint64_t mesh_peer_count;
    _Atomic uint64_t fanout_count;
    _Atomic uint64_t cached;
    _Atomic uint64_t cached_bytes;
    struct {
        _Atomic uint64_t peers;
        _Atomic uint64_t mesh_peers;
    } topics[RELAY_TOPICS_READ];
};

static bool is_known(void *context, const struct topic *topic, const uint8_t *id)
{
    struct relay_lane *relay = context;
    return lane_has_seen(relay->options.lane, topic, id);
}

enum status relay_lane_create(struct relay_lane **out, const struct relay_lane_options *options)
{
    struct relay_lane *relay = memory_allocate_zeroed(sizeof(*relay));
    if (relay == NULL) {
        return STATUS_NO_MEMORY;
    }
    relay->options = *options;
    relay->options.mesh.is_known = is_known;
    relay->options.mesh.context = relay;
    enum status status =
            topic_scores_create(&relay->topic_scores, &options->scores, options->index);
    if (status == STATUS_OK && options->index == 0) {
        status = peer_scores_create(&relay->peer_scores, &options->scores);
    }
    if (status == STATUS_OK) {
        status = mesh_create(&relay->mesh, &relay->options.mesh, relay->topic_scores);
    }
    if (status != STATUS_OK) {
        relay_lane_destroy(&relay);
        return status;
    }
    *out = relay;
    return STATUS_OK;
}

void relay_lane_destroy(struct relay_lane **relay)
{
    if (*relay == NULL) {
        return;
    }
    mesh_destroy(&(*relay)->mesh);
    topic_scores_destroy(&(*relay)->topic_scores);
    peer_scores_destroy(&(*relay)->peer_scores);
    mesh_actions_fini(&(*relay)->actions);
    mesh_recipients_fini(&(*relay)->recipients);
    relay_peers_fini(&(*relay)->peers);
    memory_free((*relay)->connections);
    memory_free(*relay);
    *relay = NULL;
}

static void post_parcel(struct relay_lane *relay, struct relay_parcel *parcel)
{
    if (parcel == NULL) {
        return;
    }
    /* The last ticket's post may free the parcel, so its count is read before. */
    size_t count = parcel->ticket_count;
    for (size_t i = 0; i < count; i++) {
        relay->options.port.post(relay->options.port.context, &parcel->tickets[i]);
    }
    relay->has_posted = true;
}

/* The connections of peers, in relay->connections; returns how many are there. */
static size_t resolve(struct relay_lane *relay, const struct peer_list *list)
{
    if (list->count > relay->connection_capacity) {
        uint64_t *grown = memory_resize(relay->connections, list->count * sizeof(*grown));
        if (grown == NULL) {
            return 0;
        }
        relay->connections = grown;
        relay->connection_capacity = list->count;
    }
    size_t count = 0;
    for (size_t i = 0; i < list->count; i++) {
        uint64_t connection = relay_peers_connection_of(&relay->peers, list->ids[i]);
        if (connection != 0) {
            relay->connections[count++] = connection;
        }
    }
    return count;
}

static void penalise(struct relay_lane *relay, uint64_t peer, double penalty)
{
    if (relay->peer_scores != NULL) {
        peer_scores_penalise(relay->peer_scores, peer, penalty);
        return;
    }
    struct lane_event *event = lane_event_create(LANE_EVENT_PENALISE, peer, NULL);
    if (event != NULL) {
        event->penalty = penalty;
        intake_post_event(relay->options.intake, 0, event);
    }
}

static void carry_out(struct relay_lane *relay, uint64_t now_ns)
{
    struct mesh_actions *actions = &relay->actions;
    for (size_t i = 0; i < actions->count; i++) {
        const struct mesh_action *action = &actions->list[i];
        uint64_t connection = relay_peers_connection_of(&relay->peers, action->peer);
        if (action->kind == MESH_PENALISE) {
            penalise(relay, action->peer, action->penalty);
        } else if (action->kind == MESH_MESSAGE && connection != 0) {
            post_parcel(relay, relay_parcel_of_message(action->envelope, &connection, 1, now_ns));
        }
        metrics_add(METRIC_RELAY_IWANT_OUT, action->kind == MESH_IWANT);
    }
    /* What is said to one peer goes out as one RPC. */
    struct relay_control control = {.actions = actions, .now_ns = now_ns};
    uint64_t peer;
    while (relay_control_next(&control, &peer)) {
        uint64_t connection = relay_peers_connection_of(&relay->peers, peer);
        if (connection != 0) {
            post_parcel(relay, relay_control_parcel(&control, connection));
        }
    }
    mesh_actions_clear(actions);
}

static void forget_peer(struct relay_lane *relay, uint64_t peer, uint64_t now_ns)
{
    relay_peers_remove(&relay->peers, peer);
    mesh_remove_peer(relay->mesh, peer, now_ns);
    if (relay->peer_scores != NULL) {
        peer_scores_disconnect(relay->peer_scores, peer, now_ns);
    }
}

/* A peer that is there already begins anew with its new connection and card; bad scores stay. */
static void peer_joined(struct relay_lane *relay, const struct lane_event *event, uint64_t now_ns)
{
    if (relay_peers_connection_of(&relay->peers, event->peer) != 0) {
        if (event->admission < relay_peers_admission_of(&relay->peers, event->peer)) {
            return; /* the older of two, which is about to end */
        }
        forget_peer(relay, event->peer, now_ns);
    }
    if (!relay_peers_add(&relay->peers, event->peer, event->connection, event->admission)) {
        return; /* without memory we do not talk to it */
    }
    enum status status =
            mesh_add_peer(relay->mesh, event->peer, event->card, event->is_outbound, now_ns);
    if (status == STATUS_OK && relay->peer_scores != NULL) {
        status = peer_scores_connect(relay->peer_scores, event->peer, event->address, event->card);
    }
    if (status != STATUS_OK) {
        forget_peer(relay, event->peer, now_ns);
    }
}

static void peer_left(struct relay_lane *relay, const struct lane_event *event, uint64_t now_ns)
{
    if (relay_peers_connection_of(&relay->peers, event->peer) == event->connection) {
        forget_peer(relay, event->peer, now_ns);
    } /* else it has come again by another connection */
}

/* What another connection of that peer said is passed over; events without one come from the node. */
static bool is_of_another_connection(const struct relay_lane *relay, const struct lane_event *event)
{
    return event->kind != LANE_EVENT_PEER_JOINED && event->kind != LANE_EVENT_PEER_LEFT &&
           event->connection != 0 &&
           event->connection != relay_peers_connection_of(&relay->peers, event->peer);
}

static void take_event(struct relay_lane *relay, const struct lane_event *event, uint64_t now_ns)
{
    struct mesh_turn turn = {.now_ns = now_ns, .actions = &relay->actions};
    if (is_of_another_connection(relay, event)) {
        return;
    }
    switch (event->kind) {
    case LANE_EVENT_PEER_JOINED:
        peer_joined(relay, event, now_ns);
        return;
    case LANE_EVENT_PEER_LEFT:
        peer_left(relay, event, now_ns);
        return;
    case LANE_EVENT_SUBSCRIBE:
        /* Without memory the peer gets nothing of that topic from us. */
        (void)!mesh_peer_subscribes(relay->mesh, event->peer, event->topic);
        mesh_invite_early(relay->mesh, event->peer, event->topic, &turn);
        return;
    case LANE_EVENT_UNSUBSCRIBE:
        mesh_peer_unsubscribes(relay->mesh, event->peer, event->topic, now_ns);
        return;
    case LANE_EVENT_GRAFT:
        mesh_on_graft(relay->mesh, event->peer, event->topic, &turn);
        return;
    case LANE_EVENT_PRUNE:
        mesh_on_prune(relay->mesh, event->peer, event->topic, event->backoff_s, now_ns);
        return;
    case LANE_EVENT_IHAVE:
        mesh_on_ihave(relay->mesh, event->peer, event->topic, event->items, &turn);
        return;
    case LANE_EVENT_IWANT:
        metrics_add(METRIC_RELAY_IWANT_IN, relay->options.index == 0); /* every lane hears it */
        mesh_on_iwant(relay->mesh, event->peer, event->items, &turn);
        return;
    case LANE_EVENT_IDONTWANT:
        mesh_on_idontwant(relay->mesh, event->peer, event->items);
        return;
    case LANE_EVENT_PENALISE:
        penalise(relay, event->peer, event->penalty);
        return;
    case LANE_EVENT_JOIN_TOPIC:
        (void)!mesh_join(relay->mesh, event->topic, &turn);
        return;
    case LANE_EVENT_LEAVE_TOPIC:
        mesh_leave(relay->mesh, event->topic, &turn);
        return;
    case LANE_EVENT_LIST_MESH:
        mesh_visit(relay->mesh, event->visit, event->owner);
        return;
    }
}

static void publish_topics(struct relay_lane *relay)
{
    struct relay_topic_reading sums[RELAY_TOPICS_READ] = {{0}};
    struct mesh_topic_counts counts;
    for (size_t place = 0; mesh_next_topic(relay->mesh, &place, &counts);) {
        uint32_t index = counts.topic->index;
        index = index < RELAY_TOPICS_READ - 1 ? index : RELAY_TOPICS_READ - 1;
        sums[index].peers += counts.subscribers;
        sums[index].mesh_peers += counts.mesh;
    }
    for (size_t i = 0; i < RELAY_TOPICS_READ; i++) {
        /* relaxed: readings */
        atomic_store_explicit(&relay->topics[i].peers, sums[i].peers, memory_order_relaxed);
        atomic_store_explicit(
                &relay->topics[i].mesh_peers, sums[i].mesh_peers, memory_order_relaxed);
    }
}

struct relay_topic_reading relay_topic_reading(const struct relay_lane *relay, uint32_t index)
{
    index = index < RELAY_TOPICS_READ - 1 ? index : RELAY_TOPICS_READ - 1;
    /* relaxed: readings */
    return (struct relay_topic_reading){
            .peers = atomic_load_explicit(&relay->topics[index].peers, memory_order_relaxed),
            .mesh_peers =
                    atomic_load_explicit(&relay->topics[index].mesh_peers, memory_order_relaxed),
    };
}

static void publish_reading(struct relay_lane *relay)
{
    struct mesh_counts counts = mesh_counts(relay->mesh);
    /* relaxed: readings */
    atomic_store_explicit(&relay->peer_count, counts.peers, memory_order_relaxed);
    atomic_store_explicit(&relay->mesh_peer_count, counts.grafted, memory_order_relaxed);
    atomic_store_explicit(&relay->fanout_count, counts.fanout, memory_order_relaxed);
    atomic_store_explicit(&relay->cached, counts.cached, memory_order_relaxed);
    atomic_store_explicit(&relay->cached_bytes, counts.cached_bytes, memory_order_relaxed);
    publish_topics(relay);
}

struct relay_lane_reading relay_lane_reading(const struct relay_lane *relay)
{
    /* relaxed: readings */
    return (struct relay_lane_reading){
            .peers = atomic_load_explicit(&relay->peer_count, memory_order_relaxed),
            .mesh_peers = atomic_load_explicit(&relay->mesh_peer_count, memory_order_relaxed),
            .fanout_peers = atomic_load_explicit(&relay->fanout_count, memory_order_relaxed),
            .cached = atomic_load_explicit(&relay->cached, memory_order_relaxed),
            .cached_bytes = atomic_load_explicit(&relay->cached_bytes, memory_order_relaxed),
    };
}

/* Lane 0 speaks for all: its card holds what every lane published. */
static void disconnect_graylisted(struct relay_lane *relay)
{
    for (size_t i = 0; relay->peer_scores != NULL && i < relay->peers.count; i++) {
        struct relay_peer peer = relay->peers.by_peer[i];
        if (!mesh_accepts(relay->mesh, peer.key)) {
            relay->options.port.disconnect(relay->options.port.context, peer.value);
        }
    }
}

static void beat(struct relay_lane *relay, uint64_t now_ns)
{
    struct mesh_turn turn = {.now_ns = now_ns, .actions = &relay->actions};
    topic_scores_tick(relay->topic_scores, now_ns);
    if (relay->peer_scores != NULL) {
        peer_scores_tick(relay->peer_scores, now_ns);
    }
    mesh_heartbeat(relay->mesh, &turn);
    disconnect_graylisted(relay);
    publish_reading(relay);
    relay->next_heartbeat_ns = now_ns + HEARTBEAT_NS;
}

size_t relay_lane_turn(struct relay_lane *relay, uint64_t now_ns)
{
    size_t done = 0;
    struct lane_event *event;
    while (done < EVENTS_A_TURN &&
            (event = lane_event_of(inbox_try_pop(relay->options.events))) != NULL) {
        take_event(relay, event, now_ns);
        lane_event_destroy(event);
        done++;
    }
    if (now_ns >= relay->next_heartbeat_ns) {
        beat(relay, now_ns);
        done++;
    }
    if (relay->actions.count > 0) {
        carry_out(relay, now_ns);
    }
    return done;
}

void relay_lane_flush(struct relay_lane *relay)
{
    if (relay->has_posted) {
        relay->has_posted = false;
        relay->options.port.flush(relay->options.port.context);
    }
}

bool relay_lane_has_work(struct relay_lane *relay)
{
    return !inbox_is_empty(relay->options.events);
}

uint64_t relay_lane_deadline(const struct relay_lane *relay)
{
    return relay->next_heartbeat_ns;
}

static void send_dont_want(
        struct relay_lane *relay, const struct envelope *envelope, uint64_t now_ns)
{
    size_t count = resolve(relay, &relay->recipients.dont_want);
    if (count > 0) {
        struct span id = span_of(envelope->id, sizeof(envelope->id));
        struct gossip_outgoing rpc = {.idontwant = &id, .idontwant_count = 1};
        post_parcel(relay, relay_parcel_of_control(&rpc, relay->connections, count, now_ns));
    }
}

static uint64_t sender_of(const struct relay_lane *relay, const struct envelope *envelope)
{
    if (envelope->origin != ORIGIN_MESH) {
        return 0;
    }
    uint64_t sender = relay_peers_peer_of(&relay->peers, envelope->connection);
    return sender != 0 ? sender : SENDER_GONE;
}

/* parcel: NULL when there was no memory for it. */
static void set_pace(
        struct relay_lane *relay, const struct envelope *envelope, struct relay_parcel *parcel)
{
    struct relay_pace *pace = relay->options.intake->pace;
    if (pace == NULL || !message_origin_is_publisher(envelope->origin)) {
        return;
    }
    if (parcel != NULL) {
        relay_parcel_set_pace(parcel, pace);
    } else {
        relay_pace_remove(pace, envelope->message.length);
    }
}

size_t relay_lane_accepted(struct relay_lane *relay, struct envelope *envelope, uint64_t now_ns)
{
    uint64_t sender = sender_of(relay, envelope);
    mesh_accepted(relay->mesh, envelope, sender, now_ns, &relay->recipients);
    send_dont_want(relay, envelope, now_ns);
    size_t count = resolve(relay, &relay->recipients.to);
    if (count > 0) {
        struct relay_parcel *parcel =
                relay_parcel_of_message(envelope, relay->connections, count, now_ns);
        set_pace(relay, envelope, parcel);
        post_parcel(relay, parcel);
    }
    return count;
}

/*
 * What only a faulty or hostile peer sends: the others refuse it as well. An empty or strange content
 * topic is not among it, since some implementations forward such messages.
 */
static bool is_sender_to_blame(enum metric reason)
{
    return reason == LEDGER_INTAKE_NOT_DECODABLE || reason == LEDGER_INTAKE_PAYLOAD_MISSING ||
           reason == LEDGER_INTAKE_META_TOO_LONG || reason == LEDGER_INTAKE_NOT_SIGNED;
}

void relay_lane_refused(struct relay_lane *relay, const struct frame_part *part, enum metric reason,
        uint64_t now_ns)
{
    uint64_t sender = relay_peers_peer_of(&relay->peers, part->connection);
    bool is_blamed = is_sender_to_blame(reason);
    if (part->origin != ORIGIN_MESH || sender == 0 ||
            (!is_blamed && !mesh_has_promises(relay->mesh))) {
        return;
    }
    uint8_t id[MESSAGE_ID_BYTES];
    message_id(id, part->message);
    if (is_blamed) {
        mesh_rejected(relay->mesh, sender, part->topic, id, now_ns);
    } else if (reason == LEDGER_INTAKE_NO_MEMORY) {
        mesh_arrived(relay->mesh, id);
    } else {
        mesh_ignored(relay->mesh, id);
    }
}
