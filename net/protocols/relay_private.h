/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * What the parts of relay share: the protocol and its shares on the io threads (relay.c), a peer's
 * life (relay_peer.c), the way in (relay_inbound.c) and the way out (relay_outbound.c).
 */

#include <stdatomic.h>
#include <sys/queue.h>
#include <uv.h>

#include "net/protocols/relay.h"
#include "net/protocols/relay_queue.h"
#include "net/protocols/relay_reader.h"
#include "net/protocols/relay_topics.h"
#include "net/switch/hash_table.h"
#include "router/scores.h"

enum {
    RELAY_SECRET_BYTES = 16,
    RELAY_TICK_MS = 1000
};

/* Lane events that a lane can do without for a while, and those that say who is where. */
enum relay_event_class {
    RELAY_EVENT_ENTRY,
    RELAY_EVENT_OF_TOPIC,
    RELAY_EVENT_CLASSES
};

/*
 * A score card with those who hold it: the peer, and each lane until it has seen the peer leave. The
 * events that wait are counted here, since the peer's leaving is the last of them.
 */
struct relay_card {
    struct score_card card;
    atomic_uint references;
    atomic_uint waiting[RELAY_EVENT_CLASSES];
};

TAILQ_HEAD(relay_peer_list, relay_peer);

/* What one io thread owns. */
struct relay_shard {
    struct relay *relay;
    struct io_loop *loop;
    struct hash_table by_connection;
    struct relay_peer_list peers;
    struct relay_peer_list starved; /* wait for room in the frame budget, oldest first */
    uv_timer_t tick;
    bool is_tick_closed;

    /* Written by any thread. */
    struct inbox *control;
    struct inbox *messages;
    struct io_task drain;
    struct io_task resume;
    atomic_bool is_drain_posted;
    atomic_bool is_resume_posted;
    _Atomic size_t joined_count; /* written by the io thread */
};

struct relay {
    struct relay_options options; /* without zeros */
    struct relay_queue_limits limits;
    struct relay_budget *outbound;
    struct relay_budget own_outbound; /* where it is not shared */
    _Atomic size_t held;
    _Atomic uint64_t topics_version; /* raised after the registry's marks have changed */
    uint8_t secret[RELAY_SECRET_BYTES];
    size_t shard_count;
    struct relay_shard shards[];
};

/* One a connection, whether it speaks relay or not. */
struct relay_peer {
    struct hash_link by_connection;
    TAILQ_ENTRY(relay_peer) link;
    TAILQ_ENTRY(relay_peer) starved_link;
    struct relay_shard *shard;
    struct connection *connection;
    uint64_t id; /* of the connection */
    uint64_t number;
    struct relay_card *card;                   /* NULL before it has joined */
    struct lane_event *left[INTAKE_LANES_MAX]; /* made when it joins, so that leaving cannot fail */
    bool is_joined;
    bool is_behind; /* a lane has missed what the peer said of its topics */

    struct frame_share *share; /* of the frame budget */
    struct stream *inbound;
    struct relay_reader reader;
    uint64_t starved_since_ms;
    bool is_starved;
    bool has_deadline;
    struct relay_topics topics;

    struct stream *outbound;
    bool is_outbound_agreed;
    uint64_t reopen_at_ms; /* 0: not due */
    unsigned reopen_count; /* since a stream was agreed */
    struct relay_queue queue;
    uint8_t *told; /* bits by topic index: what the peer was told on this stream */
    uint32_t told_count;
    uint64_t told_version;
};

/* relay.c */
struct relay_peer *BORROWED relay_find_peer(const struct relay_shard *shard, uint64_t connection);
struct relay_shard *BORROWED relay_shard_of(struct relay *relay, uint64_t connection);

/* Has the shard (context) try the peers again that wait. Thread: any. */
void relay_wake_starved(void *context);

/* relay_peer.c */
MUST_USE enum status relay_peer_register(struct relay *relay);

/* Tells every lane, once; the connection is closed when that cannot be. */
void relay_peer_join(struct relay_peer *peer);
void relay_peer_open_stream(struct relay_peer *peer);
void relay_peer_tick(struct relay_peer *peer, uint64_t now_ms);

/* relay_inbound.c */
extern const struct stream_events relay_inbound_events;

/* An event of peer to topic's lane, or with NULL to every lane. */
void relay_post_subscription(struct relay_peer *peer, const struct topic *topic, bool subscribes);
void relay_resume_starved(struct relay_shard *shard);

/* Tells the lanes once more which topics the peer takes part in, when one has missed something. */
void relay_repeat_subscriptions(struct relay_peer *peer);
void relay_stop_waiting(struct relay_peer *peer);
void relay_skip_when_late(struct relay_peer *peer, uint64_t now_ms);

/* relay_outbound.c */
extern const struct stream_events relay_outbound_events;
void relay_take_ticket(struct relay_shard *shard, struct relay_ticket *CONSUMED ticket);

/* Gives the stream what it has room for: news about topics, control, messages. */
void relay_pump(struct relay_peer *peer);
void relay_drop_ticket(struct relay_ticket *CONSUMED ticket, enum metric reason);
