/* SPDX-License-Identifier: MIT */
#pragma once

/* What the files of the mesh share: its peers, its topics and the choice among peers. */

#include "router/backoffs.h"
#include "router/mesh.h"
#include "router/message_cache.h"
#include "router/peer_map.h"
#include "router/promises.h"
#include "router/unwanted_ids.h"

struct mesh_peer {
    uint64_t id;
    struct score_card *card;
    bool is_outbound;
    unsigned ihave_messages; /* these three in this heartbeat */
    size_t ids_asked_of;     /* IWANT that we sent it */
    size_t ids_asked_by;     /* IWANT that it sent us */
    struct unwanted_ids unwanted;
};

struct peer_set {
    struct mesh_peer **peers;
    size_t count;
    size_t capacity;
};

struct mesh_topic {
    const struct topic *topic;
    bool is_joined;
    uint64_t joined_in; /* heartbeat in which it was joined */
    struct peer_set subscribers;
    struct peer_set mesh;   /* empty unless joined */
    struct peer_set fanout; /* empty when joined */
    uint64_t fanout_until_ns;
    struct backoffs backoffs;
};

struct mesh {
    struct mesh_options options;
    struct topic_scores *scores;
    struct peer_map peers;  /* id -> mesh_peer */
    struct peer_map topics; /* index -> mesh_topic */
    size_t joined_count;
    struct message_cache *cache;
    struct promises promises;
    struct unwanted_ids refused; /* by us: others may offer them all the same */
    uint64_t random;
    uint64_t heartbeat;
    struct peer_set candidates; /* scratch of one decision */
};

struct mesh_peer *BORROWED mesh_find_peer(const struct mesh *mesh, uint64_t peer);
struct mesh_topic *BORROWED mesh_find_topic(const struct mesh *mesh, const struct topic *topic);

/* Frees what neither we nor any peer has to do with. */
void mesh_drop_topic_if_unused(struct mesh *mesh, struct mesh_topic *topic);

double mesh_score(const struct mesh_peer *peer);

/* Both tell the scores and nobody else. False: no memory, or in the mesh already. */
bool mesh_graft(
        struct mesh *mesh, struct mesh_topic *topic, struct mesh_peer *peer, uint64_t now_ns);
void mesh_prune(
        struct mesh *mesh, struct mesh_topic *topic, struct mesh_peer *peer, uint64_t now_ns);

/* Takes the peer into the mesh and says so. */
void mesh_invite(struct mesh *mesh, struct mesh_topic *topic, struct mesh_peer *peer,
        const struct mesh_turn *turn);
/* Says that it is not in the mesh and shall not come back before the backoff is over. */
void mesh_dismiss(struct mesh *mesh, struct mesh_topic *topic, struct mesh_peer *peer,
        const struct mesh_turn *turn);

bool peer_set_has(const struct peer_set *set, const struct mesh_peer *peer);
bool peer_set_add(struct peer_set *set, struct mesh_peer *peer);
bool peer_set_remove(struct peer_set *set, const struct mesh_peer *peer);
void peer_set_fini(struct peer_set *set);
size_t peer_set_outbound_count(const struct peer_set *set);

/* A random number below bound. */
size_t mesh_random_below(struct mesh *mesh, size_t bound);
void mesh_shuffle(struct mesh *mesh, struct peer_set *set);

/* The count best by score come first, best of all first; of equals the one that stood first. */
void peer_set_best_first(struct peer_set *set, size_t count);

/*
 * Subscribers that may be brought into the mesh, in random order but the wanted best first; good until
 * the next call.
 */
struct peer_set *BORROWED mesh_find_candidates(
        struct mesh *mesh, const struct mesh_topic *topic, size_t wanted, uint64_t now_ns);

/* IHAVE for one topic, at the end of a heartbeat. */
void mesh_gossip(struct mesh *mesh, const struct mesh_topic *topic, struct mesh_actions *actions);

/* Chooses the peers that publishing goes to without taking part. */
void mesh_fill_fanout(struct mesh *mesh, struct mesh_topic *topic);
