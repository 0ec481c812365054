/* SPDX-License-Identifier: MIT */
#include "node/mesh_settings.h"

#include "base/clock.h"

enum {
    PERCENT = 100,
    PER_MILLE = 1000
};

static uint64_t nanoseconds(const struct options *options, const char *name)
{
    return options_number(options, name) * NANOSECONDS_PER_MILLISECOND;
}

/* Options are not negative: what stands below zero is named by its distance. */
static double below_zero(const struct options *options, const char *name)
{
    return -(double)options_number(options, name);
}

static double per_mille(const struct options *options, const char *name)
{
    return (double)options_number(options, name) / PER_MILLE;
}

/* 0: in the proportions that the network's own numbers have: 6, 4, 8, 3, 6. */
static size_t degree(const struct options *options, const char *name, size_t fallback)
{
    size_t number = (size_t)options_number(options, name);
    return number != 0 ? number : fallback;
}

static void read_degrees(struct mesh_options *mesh, const struct options *options)
{
    size_t d = (size_t)options_number(options, "mesh-degree");
    mesh->d = d;
    mesh->d_low = degree(options, "mesh-degree-low", (d * 2 + 2) / 3);
    mesh->d_high = degree(options, "mesh-degree-high", d * 4 / 3);
    mesh->d_out = degree(options, "mesh-degree-outbound", d / 2);
    mesh->d_score = degree(options, "mesh-degree-by-score", d);
    mesh->d_lazy = (size_t)options_number(options, "gossip-degree");
}

static void read_mesh(struct mesh_options *mesh, const struct options *options)
{
    *mesh = mesh_defaults;
    read_degrees(mesh, options);
    mesh->gossip_factor = (double)options_number(options, "gossip-percent") / PERCENT;
    mesh->history = (unsigned)options_number(options, "gossip-history");
    mesh->gossip = (unsigned)options_number(options, "gossip-history-told");
    mesh->fanout_ns = nanoseconds(options, "fanout-time");
    mesh->prune_backoff_ns = nanoseconds(options, "prune-backoff");
    mesh->unsubscribe_backoff_ns = nanoseconds(options, "unsubscribe-backoff");
    mesh->backoff_max_ns = nanoseconds(options, "prune-backoff-limit");
    mesh->gossip_threshold = below_zero(options, "score-gossip-threshold");
    mesh->publish_threshold = below_zero(options, "score-publish-threshold");
    mesh->graylist_threshold = below_zero(options, "score-graylist-threshold");
    mesh->opportunistic_threshold =
            (double)options_number(options, "score-opportunistic-threshold");
    mesh->ihave_messages_max = (unsigned)options_number(options, "gossip-ihave-limit");
    mesh->ids_max = (size_t)options_number(options, "gossip-id-limit");
    mesh->retransmissions_max = (unsigned)options_number(options, "gossip-retransmissions");
    mesh->promise_ns = nanoseconds(options, "gossip-promise-time");
    mesh->dont_want_bytes_min = (size_t)options_number(options, "idontwant-size");
    mesh->dont_want_max = (size_t)options_number(options, "idontwant-limit");
    mesh->is_flood_publishing = options_flag(options, "flood-publish");
}

static void read_scores(struct score_options *scores, const struct options *options)
{
    *scores = score_defaults;
    scores->mesh_time_weight = per_mille(options, "score-mesh-time");
    scores->mesh_time_cap = (double)options_number(options, "score-mesh-time-limit");
    scores->first_weight = (double)options_number(options, "score-first");
    scores->first_cap = (double)options_number(options, "score-first-limit");
    scores->first_decay = per_mille(options, "score-first-decay");
    scores->invalid_weight = below_zero(options, "score-invalid-penalty");
    scores->invalid_decay = per_mille(options, "score-invalid-decay");
    scores->colocation_weight = below_zero(options, "score-colocation-penalty");
    scores->colocation_threshold = (size_t)options_number(options, "ip-colocation-limit");
    scores->behaviour_weight = below_zero(options, "score-behaviour-penalty");
    scores->behaviour_decay = per_mille(options, "score-behaviour-decay");
    scores->decay_interval_ns = nanoseconds(options, "score-decay-interval");
    scores->retain_ns = nanoseconds(options, "score-retain");
}

void mesh_settings_read(
        struct mesh_options *mesh, struct score_options *scores, const struct options *options)
{
    read_mesh(mesh, options);
    read_scores(scores, options);
}
