/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * What the parts of the filter service share: requests (filter.c), the subscribers as the filter
 * threads see them (filter_subscriber.c), and the way to their streams (filter_push.c).
 */

#include <stdatomic.h>
#include <sys/queue.h>
#include <uv.h>

#include "net/protocols/exchange_jobs.h"
#include "net/protocols/filter.h"
#include "net/protocols/filter_message.h"
#include "net/protocols/relay_queue.h"
#include "net/switch/hash_table.h"
#include "router/relay_link.h"

enum {
    FILTER_SECRET_BYTES = 16,
    FILTER_TICK_MS = 1000,
    FILTER_LOW_WATER = 64 * 1024,  /* bytes handed to a stream; what waits behind can be dropped */
    FILTER_SHORT_STREAM_MS = 5000, /* a client that ends it so soon after a message always does */
    FILTER_UNSURE_MS = 2000, /* from a stream's first message; until then its others are kept, */
    FILTER_UNSURE_MAX = 64,  /* so many of them */
    FILTER_UNSURE_BYTES = 64 * 1024,
    FILTER_END_TIMEOUT_MS = 5000, /* for the client to close a stream that we have ended */
    FILTER_REOPEN_MS = 1000,      /* doubles with each stream that is not agreed */
    FILTER_REOPEN_DOUBLINGS = 5
};

/* To the io thread of a connection, before the messages that follow it. */
struct filter_order {
    struct inbox_link link;
    struct filter_subscriber *subscriber; /* one reference */
    uint64_t connection;
    bool is_attach; /* else it is the subscriber's own, which ends */
};

/*
 * One peer with subscriptions. The table holds a reference until its readers have gone, and each
 * connection that it is attached to.
 */
struct filter_subscriber {
    atomic_uint references;
    struct filter *filter;

    /* the filter thread's */
    uint64_t id;
    struct peer_id peer;
    uint64_t connection; /* 0: none */
    uint64_t subscribed_ns;
    struct filter_order detach;

    /* Written by the filter thread and by the io threads, for those who look. */
    _Atomic uint64_t queue_bytes;
    _Atomic uint64_t queue_messages;
    _Atomic uint64_t sent;
    _Atomic uint64_t dropped;
    _Atomic uint64_t last_push_ns;
    atomic_int last_push;
};

TAILQ_HEAD(filter_peer_list, filter_peer);

/* What one io thread owns. */
struct filter_shard {
    struct filter *filter;
    struct io_loop *loop;
    struct hash_table by_connection;
    struct filter_peer_list peers;
    uint64_t drain_number; /* of the task that takes messages */
    uv_timer_t tick;
    bool is_tick_closed;

    /* Written by any thread. */
    struct inbox *orders;
    struct inbox *messages;
    struct io_task drain;
    atomic_bool is_drain_posted;
};

struct filter {
    struct filter_options options;
    struct exchange_limit limit;
    struct exchange_server server;
    struct exchange_jobs jobs;
    struct relay_queue_limits queue_limits;
    _Atomic size_t held;
    uint8_t secret[FILTER_SECRET_BYTES];
    size_t shard_count;
    struct filter_shard shards[];
};

/*
 * What was written to a young stream behind its first message. When the client ends that stream it has
 * read the first one only, as far as anybody knows, and gets these once more.
 */
struct filter_unsure {
    size_t count;
    size_t bytes;
    struct relay_parcel *parcels[FILTER_UNSURE_MAX]; /* one reference each */
};

/* A subscriber's connection, on its io thread. */
struct filter_peer {
    struct hash_link by_connection;
    TAILQ_ENTRY(filter_peer) link;
    struct filter_shard *shard;
    struct connection *connection;
    uint64_t id; /* of the connection */
    struct filter_subscriber *subscriber;
    struct relay_queue queue;
    uint64_t dropped_told; /* of queue.dropped */
    uint64_t drain;        /* the last one with messages for it, and how much that was so far */
    size_t drained_bytes;

    struct stream *stream;          /* NULL: none is open or being opened */
    struct filter_inbound *inbound; /* what the peer pushes to us on it; NULL: nothing so far */
    bool is_agreed;
    bool is_ending;               /* nothing more is written to it */
    uint64_t written;             /* bytes, of this stream */
    uint64_t first_ms;            /* when its first message was written */
    bool is_one_shot;             /* the client ends a stream after each message */
    struct filter_unsure *unsure; /* NULL: there is none */
    uint64_t sure_at_ms;          /* the stream that stays until then is a long-lived one */
    uint64_t reopen_at_ms;        /* 0: whenever there is something to send */
    unsigned reopen_count;        /* since a stream was agreed */

    uint64_t written_before; /* bytes, of earlier streams */
    uint64_t moved;          /* bytes that had left when the tick looked last */
    uint64_t moved_at_ms;
    bool is_behind; /* a message has had to wait since something has moved */
    bool is_condemned;
};

/* filter_subscriber.c */
uint64_t filter_number_of(const struct filter *filter, const struct peer_id *peer);
MUST_USE struct filter_subscriber *filter_subscriber_create(
        struct filter *filter, const struct peer_id *peer, uint64_t now_ns);
void filter_subscriber_ref(struct filter_subscriber *subscriber);
void filter_subscriber_unref(struct filter_subscriber *CONSUMED subscriber);
void filter_subscriber_note(struct filter_subscriber *subscriber, enum filter_push_result result);

/* Thread: the filter thread. Pushes go to this connection from now on. */
void filter_subscriber_attach(struct filter_subscriber *subscriber, uint64_t connection);

/* Thread: the connection's io thread. A connection has come (or gone). */
void filter_post_presence(struct filter *filter, struct connection *connection, bool is_there);

/* Has the filter thread drop the subscription, unless it is on another connection by then. */
MUST_USE bool filter_post_drop(struct filter_subscriber *subscriber, uint64_t connection);

/* filter_push.c */
MUST_USE enum status filter_push_init(struct filter *filter);
void filter_push_fini(struct filter *filter);
void filter_post_order(struct filter *filter, struct filter_order *CONSUMED order);
