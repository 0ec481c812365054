/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "router/mesh.h"
#include "router/mesh_private.h"

/* As many actions as ids need at the allowed number each; all share the list's ids. */
static void add_id_actions(const struct mesh *mesh, struct mesh_actions *actions,
        struct mesh_action action, size_t id_count)
{
    size_t end = action.first_id + id_count;
    while (action.first_id < end) {
        size_t left = end - action.first_id;
        action.id_count =
                left < mesh->options.ids_per_action_max ? left : mesh->options.ids_per_action_max;
        mesh_actions_add(actions, action);
        action.first_id += action.id_count;
    }
}

/* Subscribers outside of the mesh whose score allows it, in random order. */
static struct peer_set *find_listeners(struct mesh *mesh, const struct mesh_topic *topic)
{
    struct peer_set *listeners = &mesh->candidates;
    listeners->count = 0;
    for (size_t i = 0; i < topic->subscribers.count; i++) {
        struct mesh_peer *peer = topic->subscribers.peers[i];
        if (mesh_score(peer) >= mesh->options.gossip_threshold &&
                !peer_set_has(&topic->mesh, peer) && !peer_set_has(&topic->fanout, peer) &&
                !peer_set_add(listeners, peer)) {
            break;
        }
    }
    mesh_shuffle(mesh, listeners);
    return listeners;
}

void mesh_gossip(struct mesh *mesh, const struct mesh_topic *topic, struct mesh_actions *actions)
{
    if (message_cache_count(mesh->cache) == 0) {
        return;
    }
    const struct peer_set *listeners = find_listeners(mesh, topic);
    if (listeners->count == 0) {
        return;
    }
    size_t max = message_cache_count(mesh->cache);
    max = max < mesh->options.ids_max ? max : mesh->options.ids_max;
    uint8_t(*ids)[MESSAGE_ID_BYTES] = mesh_actions_reserve_ids(actions, max);
    if (ids == NULL) {
        return;
    }
    struct mesh_action ihave = {
            .kind = MESH_IHAVE,
            .topic = topic->topic,
            .first_id = actions->id_count,
    };
    size_t count = message_cache_list(mesh->cache, topic->topic, ids, max);
    actions->id_count += count;
    size_t wanted = (size_t)(mesh->options.gossip_factor * (double)listeners->count);
    wanted = wanted > mesh->options.d_lazy ? wanted : mesh->options.d_lazy;
    for (size_t i = 0; i < listeners->count && i < wanted; i++) {
        ihave.peer = listeners->peers[i]->id;
        add_id_actions(mesh, actions, ihave, count);
    }
}

static bool is_known(const struct mesh *mesh, const struct topic *topic, const uint8_t *id)
{
    return message_cache_contains(mesh->cache, topic, id) ||
           unwanted_ids_contain(&mesh->refused, id) ||
           (mesh->options.is_known != NULL &&
                   mesh->options.is_known(mesh->options.context, topic, id));
}

/* Copies up to max ids that are news to us into ids; returns how many. */
static size_t take_unknown(const struct mesh *mesh, const struct topic *topic,
        struct gossip_items *items, uint8_t (*ids)[MESSAGE_ID_BYTES], size_t max)
{
    size_t count = 0;
    struct span id;
    while (count < max && gossip_items_next(items, &id)) {
        if (id.length == MESSAGE_ID_BYTES && !is_known(mesh, topic, id.bytes)) {
            memcpy(ids[count++], id.bytes, MESSAGE_ID_BYTES);
        }
    }
    return count;
}

/*
 * NULL: its offers are not listened to (now). Others count the RPCs, in each of which stands an entry
 * for every topic.
 */
static struct mesh_peer *find_offerer(
        const struct mesh *mesh, uint64_t peer, const struct topic *topic)
{
    struct mesh_peer *offerer = mesh_find_peer(mesh, peer);
    const struct mesh_topic *offered = mesh_find_topic(mesh, topic);
    if (offerer == NULL || offered == NULL || !offered->is_joined ||
            mesh_score(offerer) < mesh->options.gossip_threshold ||
            offerer->ihave_messages / mesh->options.ihave_messages_max >= mesh->joined_count ||
            offerer->ids_asked_of == mesh->options.ids_max) {
        return NULL;
    }
    offerer->ihave_messages++;
    return offerer;
}

void mesh_on_ihave(struct mesh *mesh, uint64_t peer, const struct topic *topic,
        struct gossip_items items, const struct mesh_turn *turn)
{
    struct mesh_peer *offerer = find_offerer(mesh, peer, topic);
    if (offerer == NULL || items.count == 0) {
        return;
    }
    struct mesh_actions *actions = turn->actions;
    size_t max = mesh->options.ids_max - offerer->ids_asked_of;
    max = items.count < max ? items.count : max;
    uint8_t(*ids)[MESSAGE_ID_BYTES] = mesh_actions_reserve_ids(actions, max);
    if (ids == NULL) {
        return;
    }
    struct mesh_action iwant = {
            .kind = MESH_IWANT,
            .peer = peer,
            .first_id = actions->id_count,
    };
    size_t count = take_unknown(mesh, topic, &items, ids, max);
    if (count == 0) {
        return;
    }
    offerer->ids_asked_of += count;
    actions->id_count += count;
    /* One of them, which the peer cannot guess, stands for all. */
    promises_add(&mesh->promises, peer, ids[mesh_random_below(mesh, count)],
            turn->now_ns + mesh->options.promise_ns);
    add_id_actions(mesh, actions, iwant, count);
}

void mesh_on_iwant(
        struct mesh *mesh, uint64_t peer, struct gossip_items items, const struct mesh_turn *turn)
{
    struct mesh_peer *asker = mesh_find_peer(mesh, peer);
    if (asker == NULL || mesh_score(asker) < mesh->options.gossip_threshold) {
        return;
    }
    struct span id;
    while (asker->ids_asked_by < mesh->options.ids_max && gossip_items_next(&items, &id)) {
        asker->ids_asked_by++;
        size_t step = 0;
        struct envelope *envelope = NULL;
        if (id.length == MESSAGE_ID_BYTES && !unwanted_ids_contain(&asker->unwanted, id.bytes)) {
            envelope = message_cache_ask(mesh->cache, id.bytes, peer, &step);
        }
        while (envelope != NULL) {
            mesh_actions_add(turn->actions, (struct mesh_action){.kind = MESH_MESSAGE,
                                                    .peer = peer,
                                                    .topic = envelope->topic,
                                                    .envelope = envelope});
            envelope = message_cache_ask(mesh->cache, id.bytes, peer, &step);
        }
    }
}

void mesh_on_idontwant(struct mesh *mesh, uint64_t peer, struct gossip_items items)
{
    struct mesh_peer *decliner = mesh_find_peer(mesh, peer);
    struct span id;
    bool has_room = decliner != NULL;
    while (has_room && gossip_items_next(&items, &id)) {
        has_room = id.length != MESSAGE_ID_BYTES ||
                   unwanted_ids_add(&decliner->unwanted, id.bytes, mesh->options.dont_want_max);
    }
}
