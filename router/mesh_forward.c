/* SPDX-License-Identifier: MIT */
#include "base/metrics.h"
#include "router/mesh.h"
#include "router/mesh_private.h"

void mesh_recipients_fini(struct mesh_recipients *recipients)
{
    peer_list_fini(&recipients->to);
    peer_list_fini(&recipients->dont_want);
}

static void send_to(struct mesh_recipients *out, const struct mesh_peer *peer, uint64_t sender,
        const struct envelope *envelope)
{
    if (peer->id == sender) {
        return;
    }
    if (unwanted_ids_contain(&peer->unwanted, envelope->id)) {
        metrics_add(METRIC_RELAY_UNWANTED, 1);
    } else {
        peer_list_add(&out->to, peer->id);
    }
}

/* Own messages go to every peer of the topic that is not too bad, besides the mesh. */
static void flood(const struct mesh *mesh, const struct mesh_topic *topic,
        const struct envelope *envelope, struct mesh_recipients *out)
{
    for (size_t i = 0; i < topic->subscribers.count; i++) {
        const struct mesh_peer *peer = topic->subscribers.peers[i];
        if (mesh_score(peer) >= mesh->options.publish_threshold &&
                !peer_set_has(&topic->mesh, peer)) {
            send_to(out, peer, 0, envelope);
        }
    }
}

static void send_to_fanout(struct mesh *mesh, struct mesh_topic *topic,
        const struct envelope *envelope, uint64_t now_ns, struct mesh_recipients *out)
{
    mesh_fill_fanout(mesh, topic);
    topic->fanout_until_ns = now_ns + mesh->options.fanout_ns;
    for (size_t i = 0; i < topic->fanout.count && !mesh->options.is_flood_publishing; i++) {
        send_to(out, topic->fanout.peers[i], 0, envelope);
    }
}

static void send_to_mesh(const struct mesh *mesh, const struct mesh_topic *topic,
        const struct envelope *envelope, uint64_t sender, struct mesh_recipients *out)
{
    bool is_unwanted_now =
            sender != 0 && envelope->message.length > mesh->options.dont_want_bytes_min;
    for (size_t i = 0; i < topic->mesh.count; i++) {
        const struct mesh_peer *peer = topic->mesh.peers[i];
        send_to(out, peer, sender, envelope);
        if (is_unwanted_now && peer->id != sender) {
            peer_list_add(&out->dont_want, peer->id);
        }
    }
}

void mesh_accepted(struct mesh *mesh, struct envelope *envelope, uint64_t sender, uint64_t now_ns,
        struct mesh_recipients *out)
{
    out->to.count = 0;
    out->dont_want.count = 0;
    promises_keep(&mesh->promises, envelope->id);
    message_cache_add(mesh->cache, envelope);
    if (sender != 0) {
        topic_scores_delivered_first(mesh->scores, sender, envelope->topic->index, now_ns);
    }
    struct mesh_topic *topic = mesh_find_topic(mesh, envelope->topic);
    if (topic == NULL) {
        return; /* nobody we know takes part */
    }
    send_to_mesh(mesh, topic, envelope, sender, out);
    if (!topic->is_joined) {
        send_to_fanout(mesh, topic, envelope, now_ns, out);
    }
    if (sender == 0 && mesh->options.is_flood_publishing) {
        flood(mesh, topic, envelope, out);
    }
}

void mesh_rejected(struct mesh *mesh, uint64_t sender, const struct topic *topic,
        const uint8_t id[MESSAGE_ID_BYTES], uint64_t now_ns)
{
    mesh_ignored(mesh, id);
    topic_scores_delivered_invalid(mesh->scores, sender, topic->index, now_ns);
}

void mesh_arrived(struct mesh *mesh, const uint8_t id[MESSAGE_ID_BYTES])
{
    promises_keep(&mesh->promises, id);
}

void mesh_ignored(struct mesh *mesh, const uint8_t id[MESSAGE_ID_BYTES])
{
    promises_keep(&mesh->promises, id);
    /* When there are too many, or no memory, some are asked for once more. */
    (void)unwanted_ids_add(&mesh->refused, id, mesh->options.dont_want_max);
}

bool mesh_has_promises(const struct mesh *mesh)
{
    return mesh->promises.count > 0;
}
