/* SPDX-License-Identifier: MIT */

/* From option texts to the numbers that the parts of a node take. */

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "hash/seen_set.h"
#include "node/mesh_settings.h"
#include "node/node_private.h"

enum {
    RECENT_SHARE = 4, /* recent messages may take that part of the memory budget at most */
    CACHE_SHARE = 8   /* and the mesh's cache that part */
};

_Static_assert(ARCHIVE_BATCH_MAX == 4096, "the range of --archive-batch");

static enum status read_ring(
        size_t *out, const struct options *options, const char *name, struct node_error *error)
{
    size_t capacity = (size_t)options_number(options, name);
    if ((capacity & (capacity - 1)) != 0) {
        snprintf(
                error->text, sizeof(error->text), "--%s=%zu is not a power of two", name, capacity);
        return STATUS_BAD_ARGUMENT;
    }
    *out = capacity;
    return STATUS_OK;
}

static enum status read_idle(
        enum idle_strategy *out, const struct options *options, struct node_error *error)
{
    const char *text = options_text(options, "idle");
    if (!idle_strategy_parse(out, text)) {
        snprintf(error->text, sizeof(error->text),
                "--idle=%.40s is none of spin, yield, park, auto", text);
        return STATUS_BAD_ARGUMENT;
    }
    return STATUS_OK;
}

/* What is kept under a cap of its own is part of the frames in flight, and must leave them room. */
static size_t read_cap(const struct node_settings *settings, const struct options *options,
        const char *name, size_t budget_share)
{
    size_t cap = (size_t)options_number(options, name);
    size_t share = settings->budget_bytes / budget_share / settings->lane_count;
    return cap < share ? cap : share;
}

static void read_lane(struct node_settings *out, const struct options *options)
{
    out->lane = (struct lane_options){
            .max_message_bytes = (size_t)options_number(options, "max-msg-size"),
            .recent_limit_bytes = read_cap(out, options, "recent-limit", RECENT_SHARE),
            .seen_limit_bytes = (size_t)options_number(options, "seen-limit"),
            .seen_window_ns = options_number(options, "seen-window") * NANOSECONDS_PER_MILLISECOND,
            .timestamp_tolerance_ns =
                    options_number(options, "timestamp-tolerance") * NANOSECONDS_PER_MILLISECOND,
            .refuses_timestamps = false,
            .has_message_ids = options_flag(options, "relay"),
    };
}

static void read_filter(struct node_settings *out, const struct options *options)
{
    out->filter = subscriptions_defaults;
    out->filter.criteria_per_request_max =
            (size_t)options_number(options, "filter-max-topics-per-request");
    out->filter.peers_max = (size_t)options_number(options, "filter-max-peers-to-serve");
    out->filter_seen_bytes = (size_t)options_number(options, "filter-seen-limit");
    out->filter.criteria_per_peer_max = (size_t)options_number(options, "filter-max-criteria");
    out->filter.expiry_ns =
            options_number(options, "filter-subscription-timeout") * NANOSECONDS_PER_MILLISECOND;
}

/* Of an archive that is not the store's, messages go only when the operator says so. */
static enum status read_retention(
        struct node_settings *out, const struct options *options, struct node_error *error)
{
    static const char name[] = "store-message-retention-policy";
    char why[400];
    enum status status =
            retention_policy_parse(&out->retention, options_text(options, name), why, sizeof(why));
    if (status != STATUS_OK) {
        snprintf(error->text, sizeof(error->text), "--%s: %s", name, why);
    } else if (!options_flag(options, "store") && !options_is_set(options, name)) {
        out->retention = (struct retention_policy){0};
    }
    return status;
}

/* A query keeps a processor busy, so small machines leave them to one thread unless told otherwise. */
static size_t read_query_count(const struct options *options)
{
    size_t count = (size_t)options_number(options, "query-threads");
    struct cpu_set allowed;
    if (count > 0) {
        return count;
    }
    bool is_large = cpu_set_allowed(&allowed) == STATUS_OK &&
                    cpu_set_count(&allowed) > NODE_SMALL_MACHINE_CPUS;
    return is_large ? 2 : 1;
}

enum status node_settings_read(
        struct node_settings *out, const struct options *options, struct node_error *error)
{
    memset(out, 0, sizeof(*out));
    out->lane_count = (size_t)options_number(options, "decode-lanes");
    out->filter_count = (size_t)options_number(options, "filter-threads");
    out->query_count = read_query_count(options);
    out->max_topics = (uint32_t)options_number(options, "max-topics");
    out->cluster = (uint16_t)options_number(options, "cluster-id");
    out->shard_count = (uint16_t)options_number(options, "num-shards-in-network");
    mesh_settings_read(&out->mesh, &out->scores, options);
    out->sync_limit = (size_t)options_number(options, "sync-limit");
    out->archive_batch = (size_t)options_number(options, "archive-batch");
    out->budget_bytes = (size_t)options_number(options, "memory-budget");
    out->relay_cache_bytes = read_cap(out, options, "relay-cache-limit", CACHE_SHARE);
    read_lane(out, options);
    read_filter(out, options);
    if (!mesh_options_fit(&out->mesh)) {
        snprintf(error->text, sizeof(error->text),
                "the mesh's numbers contradict each other: mesh-degree is from mesh-degree-low to "
                "mesh-degree-high, mesh-degree-by-score at most mesh-degree, mesh-degree-outbound "
                "below mesh-degree-low and at most half of mesh-degree, gossip-history-told at "
                "most "
                "gossip-history; score-gossip-, score-publish- and score-graylist-threshold "
                "ascend");
        return STATUS_BAD_ARGUMENT;
    }
    enum status status = read_retention(out, options, error);
    if (status == STATUS_OK) {
        status = read_idle(&out->idle, options, error);
    }
    if (status == STATUS_OK) {
        status = read_ring(&out->archive_ring, options, "archive-ring", error);
    }
    if (status == STATUS_OK) {
        status = read_ring(&out->filter_ring, options, "filter-ring", error);
    }
    if (status == STATUS_OK) {
        status = read_ring(&out->event_ring, options, "event-ring", error);
    }
    if (status == STATUS_OK) {
        status = read_ring(&out->sync_ring, options, "sync-ring", error);
    }
    return status;
}
