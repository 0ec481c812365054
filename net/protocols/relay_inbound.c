/* SPDX-License-Identifier: MIT */

/* From a peer's stream to the lanes: frames to the intake, everything else as lane events. */

#include <assert.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/metrics.h"
#include "net/protocols/relay_private.h"

enum {
    LATE_MS = 5 * 1000 /* mplex: a peer that waits longer loses frames, so that pings go on */
};

/* What one RPC has posted. */
struct posting {
    struct relay_peer *peer;
    struct frame *frame;
    uint32_t lanes; /* to be woken */
};
_Static_assert(INTAKE_LANES_MAX <= 32, "lanes to be woken are the bits of a uint32_t");

static const size_t lane_max[RELAY_EVENT_CLASSES] = {
        [RELAY_EVENT_ENTRY] = RELAY_EVENTS_MAX, [RELAY_EVENT_OF_TOPIC] = RELAY_TOPIC_EVENTS_MAX};

/*
 * A peer that floods the lane uses up its own share first, and one that has little waiting is heard
 * whatever others do.
 */
static bool has_room(const struct posting *posting, enum relay_event_class class, size_t lane)
{
    const struct relay_options *options = &posting->peer->shard->relay->options;
    size_t peer_max =
            class == RELAY_EVENT_ENTRY ? options->peer_events_max : RELAY_PEER_TOPIC_EVENTS_MAX;
    /* relaxed: what a lane has just taken may still count */
    unsigned waiting =
            atomic_load_explicit(&posting->peer->card->waiting[class], memory_order_relaxed);
    if (waiting >= peer_max) {
        metrics_add(METRIC_RELAY_EVENTS_OVER_SHARE, 1);
        return false;
    }
    if (waiting >= RELAY_PEER_EVENTS_SURE &&
            inbox_depth_estimate(options->intake->events[lane]) >= lane_max[class]) {
        metrics_add(METRIC_RELAY_EVENTS_DROPPED, 1);
        return false;
    }
    return true;
}

static void uncount_event(void *owner)
{
    atomic_uint *waiting = owner;
    /* relaxed: a count; the card it stands in is kept by the peer's LEFT, which comes later */
    atomic_fetch_sub_explicit(waiting, 1, memory_order_relaxed);
}

static struct lane_event *make_event(struct posting *posting, enum lane_event_kind kind,
        enum relay_event_class class, size_t lane)
{
    if (!has_room(posting, class, lane)) {
        return NULL;
    }
    struct lane_event *event = lane_event_create(kind, posting->peer->number, posting->frame);
    if (event == NULL) {
        metrics_add(METRIC_RELAY_EVENTS_DROPPED, 1);
        return NULL;
    }
    atomic_uint *waiting = &posting->peer->card->waiting[class];
    /* relaxed: see uncount_event */
    atomic_fetch_add_explicit(waiting, 1, memory_order_relaxed);
    event->connection = posting->peer->id;
    event->release = uncount_event;
    event->owner = waiting;
    return event;
}

static void push_event(struct posting *posting, size_t lane, struct lane_event *event)
{
    inbox_push(posting->peer->shard->relay->options.intake->events[lane], &event->link);
    posting->lanes |= 1U << lane;
}

static void wake_lanes(const struct posting *posting)
{
    const struct intake *intake = posting->peer->shard->relay->options.intake;
    for (size_t i = 0; i < intake->lane_count; i++) {
        if ((posting->lanes >> i & 1) != 0) {
            inbox_wake(intake->lanes[i]);
        }
    }
}

static void post_subscription(struct posting *posting, const struct topic *topic, bool subscribes)
{
    enum lane_event_kind kind = subscribes ? LANE_EVENT_SUBSCRIBE : LANE_EVENT_UNSUBSCRIBE;
    struct lane_event *event = make_event(posting, kind, RELAY_EVENT_OF_TOPIC, topic->lane);
    if (event == NULL) {
        posting->peer->is_behind = true;
        return;
    }
    event->topic = topic;
    push_event(posting, topic->lane, event);
}

void relay_post_subscription(struct relay_peer *peer, const struct topic *topic, bool subscribes)
{
    struct posting posting = {.peer = peer};
    post_subscription(&posting, topic, subscribes);
    wake_lanes(&posting);
}

void relay_repeat_subscriptions(struct relay_peer *peer)
{
    const struct topic_registry *topics = peer->shard->relay->options.intake->topics;
    struct posting posting = {.peer = peer};
    uint32_t count = peer->is_behind ? topic_registry_count(topics) : 0;
    peer->is_behind = false;
    for (uint32_t i = 0; i < count && !peer->is_behind; i++) {
        const struct topic *topic = topic_registry_at(topics, i);
        post_subscription(&posting, topic, relay_topics_has(&peer->topics, topic->name));
    }
    wake_lanes(&posting);
}

/* Of topics that we never took part in, only what the peer's set has room for is remembered. */
static void take_subscription(struct posting *posting, const struct gossip_entry *entry)
{
    struct relay_peer *peer = posting->peer;
    const struct topic_registry *topics = peer->shard->relay->options.intake->topics;
    bool is_possible = entry->topic.length > 0 && entry->topic.length <= TOPIC_NAME_MAX_BYTES;
    if (!entry->subscribe) {
        relay_topics_remove(&peer->topics, entry->topic);
    } else if (!is_possible || !relay_topics_add(&peer->topics, entry->topic)) {
        metrics_add(METRIC_RELAY_TOPICS_OVER_CAP, 1);
    }
    const struct topic *topic = topic_registry_find_interned(topics, entry->topic);
    if (topic != NULL) {
        post_subscription(posting, topic, entry->subscribe);
    }
}

static void post_of_topic(
        struct posting *posting, enum lane_event_kind kind, const struct gossip_entry *entry)
{
    enum relay_event_class class =
            kind == LANE_EVENT_IHAVE ? RELAY_EVENT_ENTRY : RELAY_EVENT_OF_TOPIC;
    const struct topic_registry *topics = posting->peer->shard->relay->options.intake->topics;
    const struct topic *topic = topic_registry_find_interned(topics, entry->topic);
    struct lane_event *event = topic == NULL ? NULL : make_event(posting, kind, class, topic->lane);
    if (event != NULL) {
        event->topic = topic;
        event->items = entry->items;
        event->backoff_s = entry->has_backoff ? entry->backoff_s : 0;
        push_event(posting, topic->lane, event);
    }
}

/* Ids that name no topic: whoever has the message answers. */
static void post_to_all(
        struct posting *posting, enum lane_event_kind kind, const struct gossip_entry *entry)
{
    size_t lane_count = posting->peer->shard->relay->options.intake->lane_count;
    for (size_t i = 0; i < lane_count; i++) {
        struct lane_event *event = make_event(posting, kind, RELAY_EVENT_ENTRY, i);
        if (event != NULL) {
            event->items = entry->items;
            push_event(posting, i, event);
        }
    }
}

static void take_entry(void *context, const struct gossip_entry *entry)
{
    struct posting *posting = context;
    switch (entry->kind) {
    case GOSSIP_SUBSCRIPTION:
        take_subscription(posting, entry);
        break;
    case GOSSIP_GRAFT:
        post_of_topic(posting, LANE_EVENT_GRAFT, entry);
        break;
    case GOSSIP_PRUNE:
        post_of_topic(posting, LANE_EVENT_PRUNE, entry);
        break;
    case GOSSIP_IHAVE:
        post_of_topic(posting, LANE_EVENT_IHAVE, entry);
        break;
    case GOSSIP_IWANT:
        post_to_all(posting, LANE_EVENT_IWANT, entry);
        break;
    case GOSSIP_IDONTWANT:
        post_to_all(posting, LANE_EVENT_IDONTWANT, entry);
        break;
    case GOSSIP_PUBLISH:
    case GOSSIP_ENTRY_KINDS:
        break;
    }
}

static enum status post_frame(struct relay_peer *peer, struct frame *frame)
{
    struct relay *relay = peer->shard->relay;
    struct posting posting = {.peer = peer, .frame = frame};
    struct intake_source source = {
            .received_ns = clock_wall_ns(),
            .received_monotonic_ns = clock_monotonic_ns(),
            .connection = peer->id,
            .origin = ORIGIN_MESH,
            .control = take_entry,
            .control_context = &posting,
    };
    size_t posted;
    enum status status = intake_post_rpc(relay->options.intake, frame, &source, &posted);
    wake_lanes(&posting);
    return status;
}

/* Half a peer is worse than none: what cannot be read on ends the whole connection. */
static void end_connection(struct relay_peer *peer, enum status status)
{
    static struct log_limit limit;
    char text[PEER_ID_TEXT_SIZE];
    bool is_too_large = status == STATUS_TOO_LARGE;
    metrics_add(is_too_large ? METRIC_RELAY_FRAMES_TOO_LARGE : METRIC_RELAY_FRAMES_MALFORMED, 1);
    log_write_limited(&limit, LOG_NOTICE, "relay", "frame of %s refused: %s",
            peer_id_print(text, connection_peer(peer->connection)), status_text(status));
    connection_close(peer->connection, CLOSE_RELAY_FRAME);
}

void relay_stop_waiting(struct relay_peer *peer)
{
    if (peer->is_starved) {
        TAILQ_REMOVE(&peer->shard->starved, peer, starved_link);
        peer->is_starved = false;
    }
}

static void begin_waiting(struct relay_peer *peer)
{
    if (!peer->is_starved) {
        metrics_add(METRIC_RELAY_WAITS, 1);
        peer->is_starved = true;
        peer->starved_since_ms = clock_monotonic_ns() / NANOSECONDS_PER_MILLISECOND;
        TAILQ_INSERT_TAIL(&peer->shard->starved, peer, starved_link);
    }
}

/* Those that find no room again go back behind the others. */
void relay_resume_starved(struct relay_shard *shard)
{
    struct relay_peer *last = TAILQ_LAST(&shard->starved, relay_peer_list);
    struct relay_peer *peer = NULL;
    while (peer != last) {
        peer = TAILQ_FIRST(&shard->starved);
        uint64_t since_ms = peer->starved_since_ms;
        relay_stop_waiting(peer);
        stream_resume(peer->inbound);
        if (peer->is_starved) {
            peer->starved_since_ms = since_ms;
        }
    }
}

/* With mplex nothing but the whole socket can wait, and pings with it. */
void relay_skip_when_late(struct relay_peer *peer, uint64_t now_ms)
{
    if (!peer->is_starved || now_ms - peer->starved_since_ms < LATE_MS ||
            strcmp(connection_muxer(peer->connection), muxer_protocol_id(MUXER_MPLEX)) != 0) {
        return;
    }
    metrics_add(METRIC_RELAY_FRAMES_SKIPPED, 1);
    relay_reader_skip(&peer->reader);
    relay_stop_waiting(peer);
    stream_resume(peer->inbound);
}

/* A frame that has begun has a deadline; one that waits for us has none. */
static void update_deadline(struct relay_peer *peer)
{
    bool is_inside = relay_reader_is_inside(&peer->reader);
    if (is_inside != peer->has_deadline) {
        peer->has_deadline = is_inside;
        stream_set_timeout(peer->inbound, is_inside ? RELAY_FRAME_TIMEOUT_MS : 0);
    }
}

static enum status on_agreed(struct stream *stream)
{
    struct relay *relay = stream_context(stream);
    uint64_t connection = connection_id(stream_connection(stream));
    struct relay_peer *peer = relay_find_peer(relay_shard_of(relay, connection), connection);
    stream_set_context(stream, peer);
    if (peer == NULL) {
        return STATUS_CLOSED;
    }
    struct stream *older = peer->inbound;
    relay_stop_waiting(peer);
    relay_reader_reset(&peer->reader);
    peer->has_deadline = false;
    peer->inbound = stream;
    if (older != NULL) {
        stream_reset(older, STATUS_CLOSED);
    }
    relay_peer_join(peer);
    if (peer->reopen_at_ms == 0) {
        relay_peer_open_stream(peer);
    }
    return STATUS_OK;
}

static struct relay_peer *reading_peer(struct stream *stream)
{
    struct relay_peer *peer = stream_context(stream);
    return peer != NULL && peer->inbound == stream ? peer : NULL;
}

static size_t on_reserve(struct stream *stream, size_t wanted, uint8_t **to)
{
    struct relay_peer *peer = reading_peer(stream);
    if (peer == NULL) {
        return 0;
    }
    size_t n = relay_reader_reserve(&peer->reader, wanted, to);
    if (n == 0) {
        begin_waiting(peer);
    }
    return n;
}

/* It is not heard until the next heartbeat, which would end it as well. */
static bool is_graylisted(const struct relay_peer *peer)
{
    return peer->card != NULL &&
           score_card_total(&peer->card->card) < peer->shard->relay->options.graylist_threshold;
}

static void on_commit(struct stream *stream, size_t n)
{
    struct relay_peer *peer = reading_peer(stream);
    struct frame *frame;
    stream_consumed(stream, n);
    enum status status = relay_reader_commit(&peer->reader, n, &frame);
    if (frame != NULL && is_graylisted(peer)) {
        metrics_add(METRIC_RELAY_FRAMES_GRAYLISTED, 1);
        frame_unref(frame);
        connection_close(peer->connection, CLOSE_GRAYLISTED);
        return;
    }
    if (frame != NULL) {
        status = post_frame(peer, frame);
    }
    if (status != STATUS_OK) {
        end_connection(peer, status);
        return;
    }
    update_deadline(peer);
}

static void on_remote_closed(struct stream *stream)
{
    stream_close_write(stream);
}

static void on_closed(struct stream *stream, enum status reason)
{
    (void)reason;
    struct relay_peer *peer = reading_peer(stream);
    if (peer != NULL) {
        relay_stop_waiting(peer);
        relay_reader_reset(&peer->reader);
        peer->has_deadline = false;
        peer->inbound = NULL;
    }
}

const struct stream_events relay_inbound_events = {
        .opened = on_agreed,
        .reserve = on_reserve,
        .commit = on_commit,
        .remote_closed = on_remote_closed,
        .closed = on_closed,
};
