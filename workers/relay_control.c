/* SPDX-License-Identifier: MIT */
#include "workers/relay_control.h"

#include <stdlib.h>

#include "base/memory.h"

enum {
    RPC_BYTES_MAX = 150000, /* below the 153,600 bytes that others take in one RPC */
    ID_BYTES = 2 + MESSAGE_ID_BYTES,
    ENTRY_BYTES = 32 /* of tags, lengths and numbers, at most */
};

/* What it adds to an RPC, at most. */
static size_t bytes_of(const struct mesh_action *action)
{
    size_t topic = action->topic != NULL ? action->topic->name.length : 0;
    return ENTRY_BYTES + topic + action->id_count * ID_BYTES;
}

static bool is_control(const struct mesh_action *action)
{
    switch (action->kind) {
    case MESH_GRAFT:
    case MESH_PRUNE:
    case MESH_IHAVE:
    case MESH_IWANT:
        return true;
    case MESH_MESSAGE:
    case MESH_PENALISE:
        return false;
    }
    return false;
}

/* Control before the rest, by peer. Within a peer the RPC has an order of its own. */
static int compare_actions(const void *a, const void *b)
{
    const struct mesh_action *x = a;
    const struct mesh_action *y = b;
    if (is_control(x) != is_control(y)) {
        return is_control(x) ? -1 : 1;
    }
    return (x->peer > y->peer) - (x->peer < y->peer);
}

bool relay_control_next(struct relay_control *control, uint64_t *peer)
{
    struct mesh_actions *actions = control->actions;
    if (!control->is_sorted) {
        if (actions->count > 0) {
            qsort(actions->list, actions->count, sizeof(*actions->list), compare_actions);
        }
        control->is_sorted = true;
    }
    if (control->next >= actions->count || !is_control(&actions->list[control->next])) {
        return false;
    }
    control->first = control->next;
    *peer = actions->list[control->first].peer;
    size_t end = control->first;
    size_t bytes = 0;
    while (end < actions->count && is_control(&actions->list[end]) &&
            actions->list[end].peer == *peer) {
        bytes += bytes_of(&actions->list[end]);
        if (bytes > RPC_BYTES_MAX && end > control->first) {
            break;
        }
        end++;
    }
    control->end = end;
    control->next = end;
    return true;
}

/* Arrays of the RPC, each with room for all actions and all ids of the peer. */
struct control_arrays {
    struct span *graft;
    struct gossip_prune *prune;
    struct gossip_id_list *ihave;
    struct span *ids; /* of IHAVE and IWANT, one list behind the other */
    struct span *iwant;
    size_t id_count;
    size_t iwant_count;
};

static void add_ids(
        const struct relay_control *control, const struct mesh_action *action, struct span *out)
{
    for (size_t i = 0; i < action->id_count; i++) {
        out[i] = span_of(control->actions->ids[action->first_id + i], MESSAGE_ID_BYTES);
    }
}

static void add_action(const struct relay_control *control, struct control_arrays *arrays,
        struct gossip_outgoing *rpc, const struct mesh_action *action)
{
    switch (action->kind) {
    case MESH_GRAFT:
        arrays->graft[rpc->graft_count++] = action->topic->name;
        return;
    case MESH_PRUNE:
        arrays->prune[rpc->prune_count++] =
                (struct gossip_prune){.topic = action->topic->name, .backoff_s = action->backoff_s};
        return;
    case MESH_IHAVE:
        arrays->ihave[rpc->ihave_count++] = (struct gossip_id_list){.topic = action->topic->name,
                .ids = arrays->ids + arrays->id_count,
                .id_count = action->id_count};
        add_ids(control, action, arrays->ids + arrays->id_count);
        arrays->id_count += action->id_count;
        return;
    case MESH_IWANT:
        add_ids(control, action, arrays->iwant + arrays->iwant_count);
        arrays->iwant_count += action->id_count;
        return;
    case MESH_MESSAGE:
    case MESH_PENALISE:
        return;
    }
}

static bool allocate_arrays(struct control_arrays *arrays, size_t actions, size_t ids)
{
    arrays->graft = memory_allocate(actions * sizeof(*arrays->graft));
    arrays->prune = memory_allocate_zeroed(actions * sizeof(*arrays->prune));
    arrays->ihave = memory_allocate(actions * sizeof(*arrays->ihave));
    arrays->ids = memory_allocate((ids + 1) * sizeof(*arrays->ids));
    arrays->iwant = memory_allocate((ids + 1) * sizeof(*arrays->iwant));
    return arrays->graft != NULL && arrays->prune != NULL && arrays->ihave != NULL &&
           arrays->ids != NULL && arrays->iwant != NULL;
}

static void free_arrays(struct control_arrays *arrays)
{
    memory_free(arrays->graft);
    memory_free(arrays->prune);
    memory_free(arrays->ihave);
    memory_free(arrays->ids);
    memory_free(arrays->iwant);
}

struct relay_parcel *relay_control_parcel(const struct relay_control *control, uint64_t connection)
{
    struct control_arrays arrays = {0};
    struct gossip_outgoing rpc = {0};
    struct relay_parcel *parcel = NULL;
    size_t ids = 0;
    for (size_t i = control->first; i < control->end; i++) {
        ids += control->actions->list[i].id_count;
    }
    if (allocate_arrays(&arrays, control->end - control->first, ids)) {
        for (size_t i = control->first; i < control->end; i++) {
            add_action(control, &arrays, &rpc, &control->actions->list[i]);
        }
        rpc.graft = arrays.graft;
        rpc.prune = arrays.prune;
        rpc.ihave = arrays.ihave;
        rpc.iwant = arrays.iwant;
        rpc.iwant_count = arrays.iwant_count;
        parcel = relay_parcel_of_control(&rpc, &connection, 1, control->now_ns);
    }
    free_arrays(&arrays);
    return parcel;
}
