/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * A lane's gossipsub: which peers are in the mesh of which topic, what is told to whom, and where a
 * message goes. Decides only: what is to be sent comes back as actions.
 *
 * Time is passed in and must not go back; random choices follow from a seed. Peers are named by ids
 * that stay the same when they reconnect, topics are interned. Every peer's state is bounded and is
 * gone when it has left, except backoffs (a minute) and a bad score (ten).
 *
 * Ownership: one reference to each message in the cache; an action that sends a message has its own.
 * Thread:    one (the lane's).
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/attributes.h"
#include "base/status.h"
#include "codec/gossip_rpc.h"
#include "queues/envelope.h"
#include "queues/topic.h"
#include "router/mesh_actions.h"
#include "router/scores.h"
#include "router/topic_scores.h"

/* Whether the lane has accepted that message before; decides which offers are taken up. */
typedef bool mesh_is_known(void *context, const struct topic *topic, const uint8_t *id);

struct mesh_options {
    size_t d, d_low, d_high, d_score, d_out, d_lazy; /* 6, 4, 8, 6, 3, 6 */
    double gossip_factor;                            /* 0.25 of the peers outside the mesh */
    unsigned history;                                /* 6 heartbeats */
    unsigned gossip;                                 /* 3 of them are told of */
    size_t cache_bytes_max;                          /* 32 MiB */
    uint64_t fanout_ns;                              /* 60 s after the last publish */
    uint64_t prune_backoff_ns;                       /* 60 s */
    uint64_t unsubscribe_backoff_ns;                 /* 5 s */
    uint64_t backoff_max_ns;        /* 1 h: a longer one that a peer names counts as this */
    uint64_t backoff_slack_ns;      /* 2 s: we come so much later; they may come so much earlier */
    double gossip_threshold;        /* -100 */
    double publish_threshold;       /* -1,000 */
    double graylist_threshold;      /* -10,000 */
    double opportunistic_threshold; /* 0: a median below it brings better peers in */
    unsigned opportunistic_heartbeats; /* 60 */
    size_t opportunistic_peers;        /* 2 */
    unsigned ihave_messages_max;       /* 10 of a peer in a heartbeat for each topic of ours */
    size_t ids_max;                    /* 5,000 ids told to or asked of a peer in a heartbeat */
    size_t ids_per_action_max;         /* 2,000, so that an RPC stays below 153,600 bytes */
    unsigned retransmissions_max;      /* 3 of a message to a peer that asks */
    uint64_t promise_ns;               /* 3 s for what was asked for to come */
    double promise_penalty;            /* 0.1 for a broken one (P7) */
    double graft_penalty;              /* 0.1 for a GRAFT during its backoff (P7) */
    size_t dont_want_bytes_min;        /* IDONTWANT is sent for messages above 1,024 bytes */
    size_t dont_want_max;              /* 1,000 ids taken of a peer in a heartbeat */
    bool is_flood_publishing;          /* own messages go to every peer of the topic */
    uint64_t seed;                     /* to be drawn at random by the caller */
    mesh_is_known *is_known;           /* NULL: only what is in the cache is known */
    void *context;
};

extern const struct mesh_options mesh_defaults;

/*
 * False: they contradict each other (d_low <= d <= d_high; d_score <= d; d_out < d_low and at most d / 2;
 * graylist <= publish <= gossip threshold; gossip <= history).
 */
bool mesh_options_fit(const struct mesh_options *options);

/* What goes with every event. */
struct mesh_turn {
    uint64_t now_ns; /* monotonic */
    struct mesh_actions *actions;
};

struct mesh;

/* scores are those of the same lane. STATUS_BAD_ARGUMENT: options that contradict each other. */
MUST_USE enum status mesh_create(struct mesh **out, const struct mesh_options *options,
        struct topic_scores *BORROWED scores);
void mesh_destroy(struct mesh **mesh);

/* peer is not 0, which is us; card as for topic_scores_connect (called here). STATUS_ALREADY_THERE. */
MUST_USE enum status mesh_add_peer(struct mesh *mesh, uint64_t peer,
        struct score_card *BORROWED card, bool is_outbound, uint64_t now_ns);
void mesh_remove_peer(struct mesh *mesh, uint64_t peer, uint64_t now_ns);

/* False: its score is so low that nothing of it is to be taken, and it is to be disconnected. */
bool mesh_accepts(const struct mesh *mesh, uint64_t peer);

/* We take part in the topic from now on, or no longer. Telling the peers so is the caller's. */
MUST_USE enum status mesh_join(
        struct mesh *mesh, const struct topic *topic, const struct mesh_turn *turn);
void mesh_leave(struct mesh *mesh, const struct topic *topic, const struct mesh_turn *turn);

/* A peer takes part in a topic, ours or not. */
MUST_USE enum status mesh_peer_subscribes(
        struct mesh *mesh, uint64_t peer, const struct topic *topic);
/*
 * After it: until the first heartbeat behind mesh_join the topic takes who comes, as the join would have
 * if it had known; else what is said in that second finds no way on.
 */
void mesh_invite_early(
        struct mesh *mesh, uint64_t peer, const struct topic *topic, const struct mesh_turn *turn);
void mesh_peer_unsubscribes(
        struct mesh *mesh, uint64_t peer, const struct topic *topic, uint64_t now_ns);

/* Control entries; those of unknown peers are passed over. A backoff_s of 0 is none. */
void mesh_on_graft(
        struct mesh *mesh, uint64_t peer, const struct topic *topic, const struct mesh_turn *turn);
void mesh_on_prune(struct mesh *mesh, uint64_t peer, const struct topic *topic, uint64_t backoff_s,
        uint64_t now_ns);
void mesh_on_ihave(struct mesh *mesh, uint64_t peer, const struct topic *topic,
        struct gossip_items ids, const struct mesh_turn *turn);
void mesh_on_iwant(
        struct mesh *mesh, uint64_t peer, struct gossip_items ids, const struct mesh_turn *turn);
void mesh_on_idontwant(struct mesh *mesh, uint64_t peer, struct gossip_items ids);

/* Where a message goes; reused from message to message, zeroed before the first. */
struct mesh_recipients {
    struct peer_list to;        /* the message itself */
    struct peer_list dont_want; /* IDONTWANT, to be sent first */
};
void mesh_recipients_fini(struct mesh_recipients *recipients);

/*
 * A new message that was accepted: credited to its sender (0: ours; it may have left), kept for those
 * who ask, and sent on. Not to be called for copies. No memory: it goes to fewer peers.
 */
void mesh_accepted(struct mesh *mesh, struct envelope *envelope, uint64_t sender, uint64_t now_ns,
        struct mesh_recipients *out);

/* The sender is to blame for a message that nobody may send. Not for faults of our own. */
void mesh_rejected(struct mesh *mesh, uint64_t sender, const struct topic *topic,
        const uint8_t id[MESSAGE_ID_BYTES], uint64_t now_ns);

/* A message came that is neither: known before, or lost by a fault of ours. It was promised, perhaps. */
void mesh_arrived(struct mesh *mesh, const uint8_t id[MESSAGE_ID_BYTES]);
/* The same, and it would be refused again: for history heartbeats we do not ask for it. */
void mesh_ignored(struct mesh *mesh, const uint8_t id[MESSAGE_ID_BYTES]);
/* False: mesh_arrived has nothing to do, so no id need be computed for it. */
bool mesh_has_promises(const struct mesh *mesh);

/* Once a second. */
void mesh_heartbeat(struct mesh *mesh, const struct mesh_turn *turn);

/* Calls visit for each peer in the mesh of each topic. */
void mesh_visit(const struct mesh *mesh,
        void (*visit)(void *context, const struct topic *topic, uint64_t peer), void *context);

bool mesh_has_peer(const struct mesh *mesh, const struct topic *topic, uint64_t peer);

struct mesh_counts {
    size_t peers;
    size_t topics;
    size_t subscriptions; /* of peers in topics */
    size_t grafted;       /* peers in meshes */
    size_t fanout;        /* peers in fanouts */
    size_t backoffs;
    size_t promises;
    size_t unwanted; /* ids of received IDONTWANT */
    size_t cached;   /* messages */
    size_t cached_bytes;
};
struct mesh_counts mesh_counts(const struct mesh *mesh);

/* The topics that we or a peer take part in, in no particular order: *place is 0 at first. */
struct mesh_topic_counts {
    const struct topic *topic;
    bool is_joined;
    size_t subscribers;
    size_t mesh;
};
MUST_USE bool mesh_next_topic(
        const struct mesh *mesh, size_t *place, struct mesh_topic_counts *out);
size_t mesh_size(const struct mesh *mesh, const struct topic *topic);
