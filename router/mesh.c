/* SPDX-License-Identifier: MIT */
#include "router/mesh.h"

#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "router/mesh_private.h"

enum {
    MEBIBYTE = 1024 * 1024,
    ASKERS_MAX = 1024 /* of one message, which counts in the cache's bytes */
};

const struct mesh_options mesh_defaults = {
        .d = 6,
        .d_low = 4,
        .d_high = 8,
        .d_score = 6,
        .d_out = 3,
        .d_lazy = 6,
        .gossip_factor = 0.25,
        .history = 6,
        .gossip = 3,
        .cache_bytes_max = (size_t)32 * MEBIBYTE,
        .fanout_ns = (uint64_t)60 * NANOSECONDS_PER_SECOND,
        .prune_backoff_ns = (uint64_t)60 * NANOSECONDS_PER_SECOND,
        .unsubscribe_backoff_ns = (uint64_t)5 * NANOSECONDS_PER_SECOND,
        .backoff_max_ns = (uint64_t)3600 * NANOSECONDS_PER_SECOND,
        .backoff_slack_ns = (uint64_t)2 * NANOSECONDS_PER_SECOND,
        .gossip_threshold = -100,
        .publish_threshold = -1000,
        .graylist_threshold = -10000,
        .opportunistic_threshold = 0,
        .opportunistic_heartbeats = 60,
        .opportunistic_peers = 2,
        .ihave_messages_max = 10,
        .ids_max = 5000,
        .ids_per_action_max = 2000,
        .retransmissions_max = 3,
        .promise_ns = (uint64_t)3 * NANOSECONDS_PER_SECOND,
        .promise_penalty = 0.1,
        .graft_penalty = 0.1,
        .dont_want_bytes_min = 1024,
        .dont_want_max = 1000,
        .is_flood_publishing = true,
};

bool mesh_options_fit(const struct mesh_options *options)
{
    bool has_degrees = options->d_low <= options->d && options->d <= options->d_high &&
                       options->d_score <= options->d && options->d > 0;
    bool has_outbound = options->d_out < options->d_low && options->d_out <= options->d / 2;
    bool has_thresholds = options->publish_threshold <= options->gossip_threshold &&
                          options->graylist_threshold <= options->publish_threshold;
    return has_degrees && (has_outbound || options->d_out == 0) && has_thresholds &&
           options->history > 0 && options->gossip <= options->history &&
           options->opportunistic_heartbeats > 0 && options->ids_per_action_max > 0;
}

enum status mesh_create(
        struct mesh **out, const struct mesh_options *options, struct topic_scores *scores)
{
    struct message_cache_options cache_options = {
            .history = options->history,
            .gossip = options->gossip,
            .bytes_max = options->cache_bytes_max,
            .asks_max = options->retransmissions_max,
            .askers_max = ASKERS_MAX,
    };
    if (!mesh_options_fit(options)) {
        return STATUS_BAD_ARGUMENT;
    }
    struct mesh *mesh = memory_allocate_zeroed(sizeof(*mesh));
    if (mesh == NULL) {
        return STATUS_NO_MEMORY;
    }
    enum status status = message_cache_create(&mesh->cache, &cache_options);
    if (status != STATUS_OK) {
        memory_free(mesh);
        return status;
    }
    mesh->options = *options;
    mesh->scores = scores;
    mesh->random = options->seed;
    *out = mesh;
    return STATUS_OK;
}

static void free_topic(struct mesh_topic *topic)
{
    peer_set_fini(&topic->subscribers);
    peer_set_fini(&topic->mesh);
    peer_set_fini(&topic->fanout);
    backoffs_fini(&topic->backoffs);
    memory_free(topic);
}

static void free_peer(struct mesh_peer *peer)
{
    unwanted_ids_fini(&peer->unwanted);
    memory_free(peer);
}

void mesh_destroy(struct mesh **mesh)
{
    struct mesh *old = *mesh;
    if (old == NULL) {
        return;
    }
    struct peer_slot *slot;
    for (size_t i = 0; (slot = peer_map_next(&old->topics, &i)) != NULL;) {
        free_topic(slot->value);
    }
    for (size_t i = 0; (slot = peer_map_next(&old->peers, &i)) != NULL;) {
        free_peer(slot->value);
    }
    peer_map_fini(&old->topics);
    peer_map_fini(&old->peers);
    promises_fini(&old->promises);
    unwanted_ids_fini(&old->refused);
    peer_set_fini(&old->candidates);
    message_cache_destroy(&old->cache);
    memory_free(old);
    *mesh = NULL;
}

struct mesh_peer *mesh_find_peer(const struct mesh *mesh, uint64_t peer)
{
    return peer_map_find(&mesh->peers, peer);
}

struct mesh_topic *mesh_find_topic(const struct mesh *mesh, const struct topic *topic)
{
    return peer_map_find(&mesh->topics, topic->index);
}

static struct mesh_topic *find_or_add_topic(struct mesh *mesh, const struct topic *topic)
{
    struct mesh_topic *found = mesh_find_topic(mesh, topic);
    if (found == NULL) {
        found = memory_allocate_zeroed(sizeof(*found));
        if (found == NULL || !peer_map_put(&mesh->topics, topic->index, found)) {
            memory_free(found);
            return NULL;
        }
        found->topic = topic;
    }
    return found;
}

void mesh_drop_topic_if_unused(struct mesh *mesh, struct mesh_topic *topic)
{
    if (!topic->is_joined && topic->subscribers.count == 0 && topic->fanout.count == 0 &&
            topic->backoffs.until_ms.count == 0) {
        (void)peer_map_take(&mesh->topics, topic->topic->index);
        free_topic(topic);
    }
}

enum status mesh_add_peer(struct mesh *mesh, uint64_t peer, struct score_card *card,
        bool is_outbound, uint64_t now_ns)
{
    if (peer == 0) {
        return STATUS_BAD_ARGUMENT;
    }
    if (mesh_find_peer(mesh, peer) != NULL) {
        return STATUS_ALREADY_THERE;
    }
    struct mesh_peer *added = memory_allocate_zeroed(sizeof(*added));
    if (added == NULL || !peer_map_put(&mesh->peers, peer, added)) {
        memory_free(added);
        return STATUS_NO_MEMORY;
    }
    added->id = peer;
    added->card = card;
    added->is_outbound = is_outbound;
    enum status status = topic_scores_connect(mesh->scores, peer, card, now_ns);
    if (status != STATUS_OK) {
        (void)peer_map_take(&mesh->peers, peer);
        free_peer(added);
    }
    return status;
}

/* What a peer that left may make wait for longer is no longer than what we would have asked. */
static void remove_from_topic(
        struct mesh *mesh, struct mesh_topic *topic, struct mesh_peer *peer, uint64_t now_ns)
{
    peer_set_remove(&topic->subscribers, peer);
    peer_set_remove(&topic->mesh, peer);
    peer_set_remove(&topic->fanout, peer);
    backoffs_shorten(&topic->backoffs, peer->id, now_ns + mesh->options.prune_backoff_ns);
}

void mesh_remove_peer(struct mesh *mesh, uint64_t peer, uint64_t now_ns)
{
    struct mesh_peer *removed = peer_map_take(&mesh->peers, peer);
    if (removed == NULL) {
        return;
    }
    struct peer_slot *slot;
    for (size_t i = 0; (slot = peer_map_next(&mesh->topics, &i)) != NULL;) {
        struct mesh_topic *topic = slot->value;
        size_t topic_count = mesh->topics.count;
        remove_from_topic(mesh, topic, removed, now_ns);
        mesh_drop_topic_if_unused(mesh, topic);
        if (mesh->topics.count < topic_count) {
            peer_map_step_back(&i);
        }
    }
    topic_scores_disconnect(mesh->scores, peer, now_ns);
    free_peer(removed);
}

bool mesh_accepts(const struct mesh *mesh, uint64_t peer)
{
    const struct mesh_peer *found = mesh_find_peer(mesh, peer);
    return found != NULL && mesh_score(found) >= mesh->options.graylist_threshold;
}

bool mesh_graft(
        struct mesh *mesh, struct mesh_topic *topic, struct mesh_peer *peer, uint64_t now_ns)
{
    if (peer_set_has(&topic->mesh, peer) || !peer_set_add(&topic->mesh, peer)) {
        return false;
    }
    topic_scores_grafted(mesh->scores, peer->id, topic->topic->index, now_ns);
    return true;
}

void mesh_prune(
        struct mesh *mesh, struct mesh_topic *topic, struct mesh_peer *peer, uint64_t now_ns)
{
    if (peer_set_remove(&topic->mesh, peer)) {
        topic_scores_pruned(mesh->scores, peer->id, topic->topic->index, now_ns);
    }
}

void mesh_invite(struct mesh *mesh, struct mesh_topic *topic, struct mesh_peer *peer,
        const struct mesh_turn *turn)
{
    if (mesh_graft(mesh, topic, peer, turn->now_ns)) {
        mesh_actions_add(turn->actions,
                (struct mesh_action){.kind = MESH_GRAFT, .peer = peer->id, .topic = topic->topic});
    }
}

static void say_prune(struct mesh_topic *topic, struct mesh_peer *peer, uint64_t backoff_ns,
        const struct mesh_turn *turn)
{
    backoffs_add(&topic->backoffs, peer->id, turn->now_ns + backoff_ns);
    mesh_actions_add(turn->actions, (struct mesh_action){.kind = MESH_PRUNE,
                                            .peer = peer->id,
                                            .topic = topic->topic,
                                            .backoff_s = backoff_ns / NANOSECONDS_PER_SECOND});
}

void mesh_dismiss(struct mesh *mesh, struct mesh_topic *topic, struct mesh_peer *peer,
        const struct mesh_turn *turn)
{
    mesh_prune(mesh, topic, peer, turn->now_ns);
    say_prune(topic, peer, mesh->options.prune_backoff_ns, turn);
}

static bool may_invite(const struct mesh *mesh, const struct mesh_topic *topic,
        const struct mesh_peer *peer, uint64_t now_ns)
{
    uint64_t until_ns = backoffs_until(&topic->backoffs, peer->id);
    bool is_in_backoff = until_ns > 0 && now_ns < until_ns + mesh->options.backoff_slack_ns;
    return !is_in_backoff && mesh_score(peer) >= 0 && !peer_set_has(&topic->mesh, peer);
}

struct peer_set *mesh_find_candidates(
        struct mesh *mesh, const struct mesh_topic *topic, size_t wanted, uint64_t now_ns)
{
    struct peer_set *candidates = &mesh->candidates;
    candidates->count = 0;
    for (size_t i = 0; i < topic->subscribers.count; i++) {
        struct mesh_peer *peer = topic->subscribers.peers[i];
        if (may_invite(mesh, topic, peer, now_ns) && !peer_set_add(candidates, peer)) {
            break; /* no memory: choose among those found */
        }
    }
    mesh_shuffle(mesh, candidates);
    peer_set_best_first(candidates, wanted);
    return candidates;
}

enum status mesh_join(struct mesh *mesh, const struct topic *topic, const struct mesh_turn *turn)
{
    struct mesh_topic *joined = find_or_add_topic(mesh, topic);
    if (joined == NULL) {
        return STATUS_NO_MEMORY;
    }
    if (joined->is_joined) {
        return STATUS_OK;
    }
    joined->is_joined = true;
    joined->joined_in = mesh->heartbeat;
    mesh->joined_count++;
    const struct peer_set *candidates =
            mesh_find_candidates(mesh, joined, mesh->options.d, turn->now_ns);
    /* Peers that we published to know us as a source of the topic already. */
    for (size_t i = 0; i < candidates->count && joined->mesh.count < mesh->options.d; i++) {
        if (peer_set_has(&joined->fanout, candidates->peers[i])) {
            mesh_invite(mesh, joined, candidates->peers[i], turn);
        }
    }
    for (size_t i = 0; i < candidates->count && joined->mesh.count < mesh->options.d; i++) {
        mesh_invite(mesh, joined, candidates->peers[i], turn);
    }
    peer_set_fini(&joined->fanout);
    return STATUS_OK;
}

void mesh_leave(struct mesh *mesh, const struct topic *topic, const struct mesh_turn *turn)
{
    struct mesh_topic *left = mesh_find_topic(mesh, topic);
    if (left == NULL || !left->is_joined) {
        return;
    }
    while (left->mesh.count > 0) {
        struct mesh_peer *peer = left->mesh.peers[left->mesh.count - 1];
        mesh_prune(mesh, left, peer, turn->now_ns);
        say_prune(left, peer, mesh->options.unsubscribe_backoff_ns, turn);
    }
    left->is_joined = false;
    mesh->joined_count--;
    mesh_drop_topic_if_unused(mesh, left);
}

enum status mesh_peer_subscribes(struct mesh *mesh, uint64_t peer, const struct topic *topic)
{
    struct mesh_peer *subscriber = mesh_find_peer(mesh, peer);
    if (subscriber == NULL) {
        return STATUS_NOT_FOUND;
    }
    struct mesh_topic *subscribed = find_or_add_topic(mesh, topic);
    if (subscribed == NULL) {
        return STATUS_NO_MEMORY;
    }
    if (peer_set_has(&subscribed->subscribers, subscriber)) {
        return STATUS_OK;
    }
    bool is_added = peer_set_add(&subscribed->subscribers, subscriber);
    mesh_drop_topic_if_unused(mesh, subscribed);
    return is_added ? STATUS_OK : STATUS_NO_MEMORY;
}

void mesh_invite_early(
        struct mesh *mesh, uint64_t peer, const struct topic *topic, const struct mesh_turn *turn)
{
    struct mesh_topic *joined = mesh_find_topic(mesh, topic);
    struct mesh_peer *subscriber = mesh_find_peer(mesh, peer);
    if (joined == NULL || subscriber == NULL || !joined->is_joined ||
            joined->joined_in != mesh->heartbeat || joined->mesh.count >= mesh->options.d) {
        return;
    }
    if (peer_set_has(&joined->subscribers, subscriber) &&
            may_invite(mesh, joined, subscriber, turn->now_ns)) {
        mesh_invite(mesh, joined, subscriber, turn);
    }
}

void mesh_peer_unsubscribes(
        struct mesh *mesh, uint64_t peer, const struct topic *topic, uint64_t now_ns)
{
    struct mesh_peer *subscriber = mesh_find_peer(mesh, peer);
    struct mesh_topic *left = mesh_find_topic(mesh, topic);
    if (subscriber == NULL || left == NULL) {
        return;
    }
    peer_set_remove(&left->subscribers, subscriber);
    peer_set_remove(&left->fanout, subscriber);
    mesh_prune(mesh, left, subscriber, now_ns);
    mesh_drop_topic_if_unused(mesh, left);
}

static bool has_room_for(
        const struct mesh *mesh, const struct mesh_topic *topic, const struct mesh_peer *peer)
{
    /* Peers that we chose to connect to may come in on top, up to d_out of them. */
    return topic->mesh.count < mesh->options.d_high ||
           (peer->is_outbound && peer_set_outbound_count(&topic->mesh) < mesh->options.d_out);
}

void mesh_on_graft(
        struct mesh *mesh, uint64_t peer, const struct topic *topic, const struct mesh_turn *turn)
{
    struct mesh_peer *grafter = mesh_find_peer(mesh, peer);
    struct mesh_topic *grafted = mesh_find_topic(mesh, topic);
    /* What is not ours is not answered: or a PRUNE could be had for any name. */
    if (grafter == NULL || grafted == NULL || !grafted->is_joined ||
            peer_set_has(&grafted->mesh, grafter)) {
        return;
    }
    uint64_t until_ns = backoffs_until(&grafted->backoffs, peer);
    bool is_too_early = until_ns > turn->now_ns + 2 * mesh->options.backoff_slack_ns;
    if (is_too_early) {
        mesh_actions_add(turn->actions, (struct mesh_action){.kind = MESH_PENALISE,
                                                .peer = peer,
                                                .penalty = mesh->options.graft_penalty});
    }
    if (is_too_early || mesh_score(grafter) < 0 || !has_room_for(mesh, grafted, grafter) ||
            !mesh_graft(mesh, grafted, grafter, turn->now_ns)) {
        mesh_dismiss(mesh, grafted, grafter, turn);
    }
}

void mesh_on_prune(struct mesh *mesh, uint64_t peer, const struct topic *topic, uint64_t backoff_s,
        uint64_t now_ns)
{
    struct mesh_peer *pruner = mesh_find_peer(mesh, peer);
    struct mesh_topic *pruned = mesh_find_topic(mesh, topic);
    if (pruner == NULL || pruned == NULL || !pruned->is_joined) {
        return;
    }
    uint64_t max_s = mesh->options.backoff_max_ns / NANOSECONDS_PER_SECOND;
    uint64_t backoff_ns = mesh->options.prune_backoff_ns;
    if (backoff_s > 0) {
        backoff_ns = (backoff_s < max_s ? backoff_s : max_s) * NANOSECONDS_PER_SECOND;
    }
    mesh_prune(mesh, pruned, pruner, now_ns);
    backoffs_add(&pruned->backoffs, peer, now_ns + backoff_ns);
}

void mesh_visit(const struct mesh *mesh,
        void (*visit)(void *context, const struct topic *topic, uint64_t peer), void *context)
{
    struct peer_slot *slot;
    for (size_t i = 0; (slot = peer_map_next(&mesh->topics, &i)) != NULL;) {
        const struct mesh_topic *topic = slot->value;
        for (size_t j = 0; j < topic->mesh.count; j++) {
            visit(context, topic->topic, topic->mesh.peers[j]->id);
        }
    }
}

bool mesh_has_peer(const struct mesh *mesh, const struct topic *topic, uint64_t peer)
{
    const struct mesh_topic *found = mesh_find_topic(mesh, topic);
    const struct mesh_peer *member = mesh_find_peer(mesh, peer);
    return found != NULL && member != NULL && peer_set_has(&found->mesh, member);
}

size_t mesh_size(const struct mesh *mesh, const struct topic *topic)
{
    const struct mesh_topic *found = mesh_find_topic(mesh, topic);
    return found == NULL ? 0 : found->mesh.count;
}

bool mesh_next_topic(const struct mesh *mesh, size_t *place, struct mesh_topic_counts *out)
{
    const struct peer_slot *slot = peer_map_next(&mesh->topics, place);
    if (slot == NULL) {
        return false;
    }
    const struct mesh_topic *topic = slot->value;
    *out = (struct mesh_topic_counts){.topic = topic->topic,
            .is_joined = topic->is_joined,
            .subscribers = topic->subscribers.count,
            .mesh = topic->mesh.count};
    return true;
}

struct mesh_counts mesh_counts(const struct mesh *mesh)
{
    struct mesh_counts counts = {
            .peers = mesh->peers.count,
            .topics = mesh->topics.count,
            .promises = mesh->promises.count,
            .cached = message_cache_count(mesh->cache),
            .cached_bytes = message_cache_bytes(mesh->cache),
    };
    struct peer_slot *slot;
    for (size_t i = 0; (slot = peer_map_next(&mesh->topics, &i)) != NULL;) {
        const struct mesh_topic *topic = slot->value;
        counts.subscriptions += topic->subscribers.count;
        counts.grafted += topic->mesh.count;
        counts.fanout += topic->fanout.count;
        counts.backoffs += topic->backoffs.until_ms.count;
    }
    for (size_t i = 0; (slot = peer_map_next(&mesh->peers, &i)) != NULL;) {
        const struct mesh_peer *peer = slot->value;
        counts.unwanted += peer->unwanted.by_key.count;
    }
    return counts;
}
