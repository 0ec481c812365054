/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * What the parts of store-sync share: peers and assembly (store_sync.c), when a session begins
 * (store_sync_schedule.c), the session (store_sync_session.c), and what is sent (store_sync_send.c)
 * and taken (store_sync_receive.c) by transfer.
 */

#include <stdatomic.h>
#include <sys/queue.h>
#include <uv.h>

#include "net/protocols/store_sync.h"
#include "net/switch/connection.h"
#include "net/transport/io_loop.h"
#include "router/rate_limit.h"
#include "router/reconciliation.h"
#include "router/sync_sent.h"

struct piece_list;
struct sync_sending;
struct sync_receiving;

/* A peer to ask for a session; belongs to the control thread. */
struct sync_candidate {
    TAILQ_ENTRY(sync_candidate) link;
    struct io_task add;
    struct io_task remove;
    struct store_sync *sync;
    uint64_t connection;
};

TAILQ_HEAD(sync_candidate_list, sync_candidate);
TAILQ_HEAD(sync_peer_list, sync_peer);
TAILQ_HEAD(sync_receiving_list, sync_receiving);

/* Ids that a peer lacks, in the order in which they were found. */
struct sync_id_batch {
    struct sync_id_batch *next;
    struct id_key *ids;
    size_t count;
    size_t position;
};

/* What is sent to a peer. */
struct sync_outgoing {
    struct sync_id_batch *first;
    struct sync_id_batch **last;
    size_t queued;         /* ids in the batches */
    struct stream *stream; /* NULL: none */
    struct sync_sent sent; /* what is not to be sent again yet, queued or gone out */
    bool is_agreed;
    bool is_reading;           /* a job is at the query thread */
    struct piece_list *pieces; /* being written */
};

/* A connection that store-sync is about; belongs to its io thread. */
struct sync_peer {
    TAILQ_ENTRY(sync_peer) link;
    struct sync_shard *shard;
    uint64_t connection;
    unsigned references; /* the list's, the sessions', the jobs' */
    bool is_gone;
    struct sync_candidate *candidate; /* NULL: it did not say that it speaks reconciliation */
    size_t session_count;
    uint64_t grace_end_ms;  /* transfers are taken until then */
    size_t incoming_left;   /* and so many messages */
    size_t awaited;         /* of those that it was found to have, not here yet */
    size_t receiving_count; /* transfer streams of the peer */
    uint64_t last_incoming_ms;
    struct sync_outgoing outgoing;
};

/* What one io thread owns. */
struct sync_shard {
    struct store_sync *sync;
    struct io_loop *loop;
    struct sync_peer_list peers;
    struct sync_receiving_list waiting; /* for room */
    uv_timer_t retry;                   /* runs while somebody waits */
    bool is_retry_closed;
};

struct store_sync {
    struct store_sync_options options;
    struct reconciliation_limits limits;
    atomic_size_t pending;
    atomic_size_t session_count;
    struct sync_sent_account sent_account;
    struct rate_limiter *peer_sessions; /* NULL: no limit */

    /* control thread */
    struct sync_candidate_list candidates; /* the next to be asked is the first */
    uv_timer_t tick;
    bool is_tick_closed;
    bool is_asking; /* a session of ours is on */
    uint64_t due_ms;
    enum status outcome; /* of that session, before over is posted */
    struct io_task over;

    atomic_bool is_wanted;
    size_t shard_count;
    struct sync_shard shards[];
};

uint64_t store_sync_now_ms(void);

/* store_sync.c */
struct sync_shard *BORROWED store_sync_shard_of(struct store_sync *sync, uint64_t connection);
struct sync_peer *BORROWED store_sync_find_peer(struct sync_shard *shard, uint64_t connection);

/* Makes it known when it is not; NULL: no memory. Its reference belongs to the list. */
struct sync_peer *BORROWED store_sync_know_peer(struct sync_shard *shard, uint64_t connection);
void store_sync_ref_peer(struct sync_peer *peer);
void store_sync_unref_peer(struct sync_peer *CONSUMED peer);
void store_sync_begin_job(struct store_sync *sync);
void store_sync_end_job(struct store_sync *sync);

/* store_sync_schedule.c */
void store_sync_schedule_init(struct store_sync *sync);
void store_sync_schedule_fini(struct store_sync *sync);
void store_sync_add_candidate(struct sync_candidate *CONSUMED candidate);
void store_sync_remove_candidate(struct sync_candidate *CONSUMED candidate);

/* The session that was asked for is over. Thread: any, once a session. */
void store_sync_session_over(struct store_sync *sync, enum status status);

/* store_sync_session.c */
extern const struct stream_events store_sync_session_events;
/* Opens a session of ours; store_sync_session_over follows. connection NULL: it is gone. */
void store_sync_begin_session(void *sync, struct connection *connection);

/* store_sync_send.c: takes the ids. */
void store_sync_send(struct sync_peer *peer, struct sync_ids *CONSUMED ids);
/* Sends what there is, or ends the stream when nothing more will come. */
void store_sync_pump(struct sync_peer *peer);
void store_sync_stop_sending(struct sync_peer *peer);

/* store_sync_receive.c */
extern const struct stream_events store_sync_receive_events;

/* Nothing more comes from that connection: what was to come may be asked of others. */
void store_sync_peer_ended(struct store_sync *sync, uint64_t connection);
