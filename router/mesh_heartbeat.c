/* SPDX-License-Identifier: MIT */
#include "router/mesh.h"
#include "router/mesh_private.h"

static void renew_budgets(struct mesh *mesh)
{
    struct peer_slot *slot;
    unwanted_ids_shift(&mesh->refused, mesh->options.history);
    for (size_t i = 0; (slot = peer_map_next(&mesh->peers, &i)) != NULL;) {
        struct mesh_peer *peer = slot->value;
        peer->ihave_messages = 0;
        peer->ids_asked_of = 0;
        peer->ids_asked_by = 0;
        unwanted_ids_shift(&peer->unwanted, mesh->options.history);
    }
}

static void blame_for_broken_promises(struct mesh *mesh, const struct mesh_turn *turn)
{
    uint64_t peer = 0;
    while (promises_take_broken(&mesh->promises, turn->now_ns, &peer)) {
        if (mesh_find_peer(mesh, peer) != NULL) {
            mesh_actions_add(turn->actions, (struct mesh_action){.kind = MESH_PENALISE,
                                                    .peer = peer,
                                                    .penalty = mesh->options.promise_penalty});
        }
    }
}

static void dismiss_bad_peers(
        struct mesh *mesh, struct mesh_topic *topic, const struct mesh_turn *turn)
{
    for (size_t i = topic->mesh.count; i-- > 0;) {
        if (mesh_score(topic->mesh.peers[i]) < 0) {
            mesh_dismiss(mesh, topic, topic->mesh.peers[i], turn);
        }
    }
}

static void invite_up_to(
        struct mesh *mesh, struct mesh_topic *topic, size_t wanted, const struct mesh_turn *turn)
{
    size_t missing = wanted - topic->mesh.count;
    const struct peer_set *candidates = mesh_find_candidates(mesh, topic, missing, turn->now_ns);
    for (size_t i = 0; i < candidates->count && i < missing; i++) {
        mesh_invite(mesh, topic, candidates->peers[i], turn);
    }
}

static void swap(struct peer_set *set, size_t a, size_t b)
{
    struct mesh_peer *peer = set->peers[a];
    set->peers[a] = set->peers[b];
    set->peers[b] = peer;
}

/* Brings outbound peers from behind the kept ones to among them until there are d_out. */
static void keep_outbound(struct peer_set *set, size_t kept, size_t d_out)
{
    size_t outbound = 0;
    for (size_t i = 0; i < kept; i++) {
        outbound += set->peers[i]->is_outbound;
    }
    size_t place = kept;
    for (size_t i = kept; i < set->count && outbound < d_out; i++) {
        if (!set->peers[i]->is_outbound) {
            continue;
        }
        /* the worst of the kept that is not outbound */
        do {
            place--;
        } while (place > 0 && set->peers[place]->is_outbound);
        swap(set, i, place);
        outbound++;
    }
}

/* The best d_score stay, then at random, with d_out outbound ones among those that stay. */
static void dismiss_down_to_d(
        struct mesh *mesh, struct mesh_topic *topic, const struct mesh_turn *turn)
{
    struct peer_set *set = &topic->mesh;
    mesh_shuffle(mesh, set);
    peer_set_best_first(set, mesh->options.d_score);
    keep_outbound(set, mesh->options.d, mesh->options.d_out);
    while (set->count > mesh->options.d) {
        mesh_dismiss(mesh, topic, set->peers[set->count - 1], turn);
    }
}

static void invite_outbound(
        struct mesh *mesh, struct mesh_topic *topic, const struct mesh_turn *turn)
{
    size_t outbound = peer_set_outbound_count(&topic->mesh);
    if (outbound >= mesh->options.d_out) {
        return;
    }
    const struct peer_set *candidates = mesh_find_candidates(mesh, topic, SIZE_MAX, turn->now_ns);
    for (size_t i = 0; i < candidates->count && outbound < mesh->options.d_out; i++) {
        if (candidates->peers[i]->is_outbound) {
            mesh_invite(mesh, topic, candidates->peers[i], turn);
            outbound++;
        }
    }
}

/* When even the middle of the mesh is bad, better peers from outside are let in. */
static void invite_better(struct mesh *mesh, struct mesh_topic *topic, const struct mesh_turn *turn)
{
    if (topic->mesh.count <= 1) {
        return;
    }
    peer_set_best_first(&topic->mesh, topic->mesh.count);
    double median = mesh_score(topic->mesh.peers[topic->mesh.count / 2]);
    if (median >= mesh->options.opportunistic_threshold) {
        return;
    }
    size_t wanted = mesh->options.opportunistic_peers;
    const struct peer_set *candidates = mesh_find_candidates(mesh, topic, wanted, turn->now_ns);
    for (size_t i = 0; i < candidates->count && i < wanted; i++) {
        if (mesh_score(candidates->peers[i]) > median) {
            mesh_invite(mesh, topic, candidates->peers[i], turn);
        }
    }
}

static void balance(struct mesh *mesh, struct mesh_topic *topic, const struct mesh_turn *turn)
{
    dismiss_bad_peers(mesh, topic, turn);
    if (topic->mesh.count < mesh->options.d_low) {
        invite_up_to(mesh, topic, mesh->options.d, turn);
    }
    if (topic->mesh.count > mesh->options.d_high) {
        dismiss_down_to_d(mesh, topic, turn);
    }
    if (topic->mesh.count >= mesh->options.d_low) {
        invite_outbound(mesh, topic, turn);
    }
    if (mesh->heartbeat % mesh->options.opportunistic_heartbeats == 0) {
        invite_better(mesh, topic, turn);
    }
}

void mesh_fill_fanout(struct mesh *mesh, struct mesh_topic *topic)
{
    struct peer_set *candidates = &mesh->candidates;
    if (topic->fanout.count >= mesh->options.d) {
        return;
    }
    candidates->count = 0;
    for (size_t i = 0; i < topic->subscribers.count; i++) {
        struct mesh_peer *peer = topic->subscribers.peers[i];
        if (mesh_score(peer) >= mesh->options.publish_threshold &&
                !peer_set_has(&topic->fanout, peer) && !peer_set_add(candidates, peer)) {
            break;
        }
    }
    mesh_shuffle(mesh, candidates);
    for (size_t i = 0; i < candidates->count && topic->fanout.count < mesh->options.d; i++) {
        peer_set_add(&topic->fanout, candidates->peers[i]);
    }
}

static void keep_fanout(struct mesh *mesh, struct mesh_topic *topic, uint64_t now_ns)
{
    if (topic->fanout.count == 0) {
        return;
    }
    if (now_ns >= topic->fanout_until_ns) {
        peer_set_fini(&topic->fanout);
        return;
    }
    for (size_t i = topic->fanout.count; i-- > 0;) {
        if (mesh_score(topic->fanout.peers[i]) < mesh->options.publish_threshold) {
            peer_set_remove(&topic->fanout, topic->fanout.peers[i]);
        }
    }
    mesh_fill_fanout(mesh, topic);
}

static void keep_topic(struct mesh *mesh, struct mesh_topic *topic, const struct mesh_turn *turn)
{
    backoffs_expire(&topic->backoffs, turn->now_ns > mesh->options.backoff_slack_ns
                                              ? turn->now_ns - mesh->options.backoff_slack_ns
                                              : 0);
    if (topic->is_joined) {
        balance(mesh, topic, turn);
    } else {
        keep_fanout(mesh, topic, turn->now_ns);
    }
    if (topic->is_joined || topic->fanout.count > 0) {
        mesh_gossip(mesh, topic, turn->actions);
    }
    mesh_drop_topic_if_unused(mesh, topic);
}

void mesh_heartbeat(struct mesh *mesh, const struct mesh_turn *turn)
{
    mesh->heartbeat++;
    topic_scores_tick(mesh->scores, turn->now_ns);
    renew_budgets(mesh);
    blame_for_broken_promises(mesh, turn);
    struct peer_slot *slot;
    for (size_t i = 0; (slot = peer_map_next(&mesh->topics, &i)) != NULL;) {
        size_t topic_count = mesh->topics.count;
        keep_topic(mesh, slot->value, turn);
        if (mesh->topics.count < topic_count) {
            peer_map_step_back(&i);
        }
    }
    message_cache_shift(mesh->cache);
}
