/* SPDX-License-Identifier: MIT */

/* How the sync set, the archive and what peers send by transfer hang together. */

#include <string.h>

#include "base/memory.h"
#include "base/metrics.h"
#include "node/node_private.h"
#include "node/store_settings.h"
#include "router/sync_job.h"

enum {
    ROOM_SHARE = 4 /* of the archive's ring and of the frame budget, which transfers may fill */
};

int64_t node_newest_archived(struct node *node)
{
    struct archive_totals totals = {.newest_ns = 0};
    bool is_known = node->archive != NULL && archive_totals(node->archive, &totals) == STATUS_OK;
    return is_known ? totals.newest_ns : 0;
}

/* Messages of transfers leave room for those that are live. */
bool node_has_room(void *context)
{
    const struct node *node = context;
    return archive_stage_held(&node->archive_stage) < node->settings.archive_ring / ROOM_SHARE &&
           frame_budget_used(node->budget) < frame_budget_limit(node->budget) / ROOM_SHARE;
}

static bool is_archive_behind(void *context)
{
    const struct node *node = context;
    return archive_stage_spilled(&node->archive_stage) > 0;
}

struct lost_id {
    struct sync_job job;
    struct id_key key;
};

static void forget(struct sync_job *job, struct sync_set *set)
{
    struct lost_id *lost = (struct lost_id *)job;
    metrics_add(METRIC_SYNC_FORGOTTEN, sync_set_remove(set, &lost->key));
    memory_free(lost);
}

/* Without memory the id stays, until a peer lacks the message. */
static void on_lost(void *context, const struct envelope *envelope)
{
    struct node *node = context;
    struct lost_id *lost = memory_allocate_zeroed(sizeof(*lost));
    if (lost == NULL) {
        return;
    }
    lost->job.run = forget;
    lost->key.timestamp_ns = envelope->timestamp_ns;
    memcpy(lost->key.hash, envelope->hash, sizeof(lost->key.hash));
    inbox_push(node->sync_jobs, &lost->job.link);
    inbox_wake(node->sync_jobs);
}

/* Only a node with store-sync tells others what its archive has, and wants what theirs have. */
static enum status make_fill(struct node *node, const struct store_settings *settings)
{
    enum status status =
            sync_set_want(node->sync_set, settings->sync.under_way_max, settings->sync.patience_ms);
    if (status != STATUS_OK) {
        return status;
    }
    struct sync_fill_options options = {.query_jobs = node->query_jobs,
            .sync_jobs = node->sync_jobs,
            .topics = node->topics,
            .range_ns = settings->sync.range_ns,
            .jitter_ns = settings->sync.jitter_ns,
            .tolerance_ns = (int64_t)node->settings.lane.timestamp_tolerance_ns,
            .is_archive_behind = is_archive_behind,
            .context = node};
    node->archive_stage.lost = on_lost;
    node->archive_stage.lost_context = node;
    return sync_fill_create(&node->sync_worker.fill, &options);
}

enum status node_wire_sync(
        struct node *node, const struct options *options, struct node_error *error)
{
    struct store_settings settings;
    node->sync_worker.lane_count = node->settings.lane_count;
    node->sync_worker.parking = inbox_parking(node->sync_jobs);
    node->sync_worker.jobs = node->sync_jobs;
    node->sync_worker.set = node->sync_set;
    node->sync_worker.progress = &node->progress;
    if (node->network == NULL) {
        return STATUS_OK; /* what is replayed is of any time */
    }
    enum status status = store_settings_read(&settings, options, error);
    if (status != STATUS_OK || network_has_sync(node->network)) {
        return status == STATUS_OK ? make_fill(node, &settings) : status;
    }
    node->sync_worker.keep_ns =
            settings.sync.range_ns + SYNC_JITTERS_KEPT * settings.sync.jitter_ns;
    return STATUS_OK;
}

void node_fill_sync_set(struct node *node)
{
    if (node->sync_worker.fill != NULL) {
        sync_fill_request(node->sync_worker.fill);
    }
}

void node_quiesce_sync(struct node *node)
{
    if (node->sync_worker.fill != NULL) {
        sync_fill_quiesce(node->sync_worker.fill);
    }
}

/* The archive may have dropped messages after the sync thread's end. */
void node_destroy_sync(struct node *node)
{
    struct sync_job *job;
    while (node->sync_jobs != NULL && (job = sync_job_of(inbox_try_pop(node->sync_jobs))) != NULL) {
        memory_free((struct lost_id *)job);
    }
    if (node->sync_jobs != NULL) {
        inbox_destroy(&node->sync_jobs);
    }
    sync_fill_destroy(&node->sync_worker.fill);
    sync_set_destroy(&node->sync_set);
}
