/* SPDX-License-Identifier: MIT */
#pragma once

/* What the mesh wants to be sent, as a list that the caller carries out, in order, and clears. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/attributes.h"
#include "queues/envelope.h"
#include "queues/topic.h"

enum mesh_action_kind {
    MESH_GRAFT,
    MESH_PRUNE,   /* with backoff_s */
    MESH_IHAVE,   /* ids of the topic */
    MESH_IWANT,   /* ids */
    MESH_MESSAGE, /* what the peer asked for */
    MESH_PENALISE /* nothing to send: P7 of the peer rises by penalty (lane 0 keeps it) */
};

struct mesh_action {
    enum mesh_action_kind kind;
    uint64_t peer;
    const struct topic *topic; /* GRAFT, PRUNE, IHAVE */
    uint64_t backoff_s;
    size_t first_id; /* IHAVE, IWANT: in ids of the list; several actions may share them */
    size_t id_count;
    struct envelope *envelope; /* MESSAGE: a reference of its own */
    double penalty;
};

/* All zero is empty. */
struct mesh_actions {
    struct mesh_action *list;
    size_t count;
    size_t capacity;
    uint8_t (*ids)[MESSAGE_ID_BYTES];
    size_t id_count;
    size_t id_capacity;
    size_t lost; /* for want of memory, since the last clear */
};

void mesh_actions_fini(struct mesh_actions *actions);
void mesh_actions_clear(struct mesh_actions *actions);

/* An envelope in action is referenced. */
void mesh_actions_add(struct mesh_actions *actions, struct mesh_action action);

/* Room for count more ids behind id_count; NULL: no memory. */
MUST_USE uint8_t (
        *mesh_actions_reserve_ids(struct mesh_actions *actions, size_t count))[MESSAGE_ID_BYTES];

/* A list of peers that grows. */
struct peer_list {
    uint64_t *ids;
    size_t count;
    size_t capacity;
};

void peer_list_fini(struct peer_list *list);
bool peer_list_add(struct peer_list *list, uint64_t peer);
bool peer_list_has(const struct peer_list *list, uint64_t peer);
