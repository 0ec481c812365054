/* SPDX-License-Identifier: MIT */
#include "node/reading.h"

#include <string.h>

#include "base/clock.h"
#include "node/filter.h"
#include "node/node_private.h"

static void read_metrics(const struct node *node, struct node_reading *out)
{
    for (size_t i = 0; i < METRIC_COUNT; i++) {
        out->metrics[i] = metrics_sum(node->metrics, (enum metric)i);
    }
    for (size_t i = 0; i < LEDGER_STAGES; i++) {
        out->held[i] = node_held(node, (enum ledger_stage)i);
    }
}

static void read_threads(const struct node *node, struct node_reading *out)
{
    for (size_t i = 0; i < node->thread_count && out->thread_count < READING_THREADS_MAX; i++) {
        const struct node_thread *thread = &node->threads[i];
        struct thread_reading *row = &out->threads[out->thread_count++];
        struct cpu_set cpus;
        pin_plan_cpus(&cpus, &node->pins, thread->role, thread->index);
        cpu_set_format(row->cpus, sizeof(row->cpus), &cpus);
        row->is_pinned = cpu_set_count(&node->pins.named[thread->role]) > 0;
        row->name = thread->name;
        row->role = thread->role;
        if (worker_is_started(thread->worker)) {
            worker_times(thread->worker, &row->busy_ns, &row->total_ns);
        }
    }
}

static struct queue_reading *add_queue(struct node_reading *out, enum node_role to, size_t lane)
{
    static struct queue_reading beyond; /* written by nobody that reads it */
    if (out->queue_count == READING_QUEUES_MAX) {
        return &beyond;
    }
    struct queue_reading *queue = &out->queues[out->queue_count++];
    *queue = (struct queue_reading){.from = node_role_name(NODE_ROLE_DECODE),
            .to = node_role_name(to),
            .kind = "ring",
            .lane = lane};
    return queue;
}

static void read_ring(
        struct node_reading *out, const struct spmc_ring *ring, enum node_role to, size_t lane)
{
    if (ring != NULL) {
        struct queue_reading *queue = add_queue(out, to, lane);
        queue->depth = spmc_ring_depth_estimate(ring);
        queue->capacity = spmc_ring_capacity(ring);
        queue->high_water = spmc_ring_high_water(ring);
    }
}

static void read_inbox(struct node_reading *out, const struct inbox *inbox, const char *from,
        enum node_role to, size_t lane)
{
    if (inbox != NULL) {
        struct queue_reading *queue = add_queue(out, to, lane);
        queue->from = from;
        queue->kind = "inbox";
        queue->depth = inbox_depth_estimate(inbox);
        queue->high_water = inbox_high_water(inbox);
    }
}

static void read_queues_of_lane(const struct node *node, struct node_reading *out, size_t index)
{
    const struct node_lane *lane = &node->lanes[index];
    read_inbox(out, lane->inbox, "messages", NODE_ROLE_DECODE, index);
    read_inbox(out, lane->events, "peers", NODE_ROLE_DECODE, index);
    read_ring(out, lane->archive_ring, NODE_ROLE_ARCHIVE, index);
    for (size_t f = 0; f < node->settings.filter_count; f++) {
        read_ring(out, lane->filter_rings[f], NODE_ROLE_FILTER, index);
        out->queues[out->queue_count - 1].index = f;
    }
    struct queue_reading *sync = add_queue(out, NODE_ROLE_SYNC, index);
    sync->depth = id_ring_depth_estimate(lane->sync_ring);
    sync->capacity = id_ring_capacity(lane->sync_ring);
    sync->high_water = id_ring_high_water(lane->sync_ring);
    read_ring(out, lane->event_ring, NODE_ROLE_EVENT, index);
}

static void read_queues(const struct node *node, struct node_reading *out)
{
    for (size_t i = 0; i < node->settings.lane_count; i++) {
        read_queues_of_lane(node, out, i);
    }
    for (size_t i = 0; i < node->settings.filter_count; i++) {
        read_inbox(out, node->filters[i].requests, "requests", NODE_ROLE_FILTER, 0);
        out->queues[out->queue_count - 1].index = i;
    }
    if (node->query_jobs != NULL) {
        struct queue_reading *jobs = add_queue(out, NODE_ROLE_QUERY, 0);
        jobs->from = "requests";
        jobs->kind = "inbox";
        jobs->depth = archive_jobs_depth_estimate(node->query_jobs);
        jobs->high_water = archive_jobs_high_water(node->query_jobs);
    }
}

static uint64_t load(const _Atomic uint64_t *value)
{
    return atomic_load_explicit(value, memory_order_relaxed); /* a reading */
}

static void add_traffic(struct topic_reading *row, const struct topic_traffic *traffic)
{
    uint64_t largest = load(&traffic->payload_largest);
    row->messages += load(&traffic->messages);
    row->payload_bytes += load(&traffic->payload_bytes);
    row->payload_largest = row->payload_largest > largest ? row->payload_largest : largest;
    row->gross_bytes += load(&traffic->gross_bytes);
    row->net_bytes += load(&traffic->net_bytes);
    row->sent_bytes += load(&traffic->sent_bytes);
}

static void read_topic(const struct node *node, struct topic_reading *row, uint32_t index)
{
    const struct topic *topic = topic_registry_at(node->topics, index);
    row->name = (const char *)topic->name.bytes;
    row->is_subscribed = topic_registry_is_subscribed(node->topics, topic);
    if (index >= TRAFFIC_TOPICS_MAX - 1) {
        row->name = "other";
    }
}

/* Each topic belongs to one lane, the last row to all of them. */
static void add_lane(struct topic_reading *row, const struct node_lane *lane, uint32_t index)
{
    add_traffic(row, &lane_traffic(lane->lane)->topics[index]);
    if (lane->relay != NULL) {
        struct relay_topic_reading relay = relay_topic_reading(lane->relay, index);
        row->peers += relay.peers;
        row->mesh_peers += relay.mesh_peers;
    }
}

static void read_topics(const struct node *node, struct node_reading *out)
{
    uint32_t count = topic_registry_count(node->topics);
    for (uint32_t i = 0; i < count && i < TRAFFIC_TOPICS_MAX; i++) {
        struct topic_reading *row = &out->topics[out->topic_count++];
        read_topic(node, row, i);
        for (size_t l = 0; l < node->settings.lane_count; l++) {
            add_lane(row, &node->lanes[l], i);
        }
    }
}

static void read_messages(const struct node *node, struct node_reading *out)
{
    struct traffic *traffics[NODE_LANES_MAX];
    for (size_t l = 0; l < node->settings.lane_count; l++) {
        traffics[l] = lane_traffic(node->lanes[l].lane);
        for (size_t i = 0; i <= TRAFFIC_SIZES; i++) {
            out->sizes[i] += load(&traffics[l]->sizes[i]);
        }
    }
    out->offset_median_ns =
            traffic_median_offset(traffics, node->settings.lane_count, &out->offset_samples);
}

static void read_relay(const struct node *node, struct node_reading *out)
{
    struct relay_reading *relay = &out->relay;
    const struct relay *source = node->network != NULL ? network_relay(node->network) : NULL;
    relay->mesh_low = (node->settings.mesh.d * 2 + 2) / 3;
    for (size_t i = 0; i < out->topic_count; i++) {
        const struct topic_reading *topic = &out->topics[i];
        relay->topic_peers += topic->peers;
        relay->topics += topic->is_subscribed;
        relay->topics_low += topic->is_subscribed && topic->mesh_peers > 0 &&
                             topic->mesh_peers < relay->mesh_low;
        relay->topics_healthy += topic->is_subscribed && topic->mesh_peers >= relay->mesh_low;
    }
    if (source == NULL) {
        return;
    }
    relay->is_there = true;
    relay->peers = relay_peer_count(source);
    for (size_t l = 0; l < node->settings.lane_count; l++) {
        struct relay_lane_reading lane = relay_lane_reading(node->lanes[l].relay);
        relay->mesh_peers += lane.mesh_peers;
        relay->fanout_peers += lane.fanout_peers;
        relay->cached += lane.cached;
        relay->cached_bytes += lane.cached_bytes;
    }
    struct relay_outbound outbound = relay_outbound(source);
    relay->outbound_messages = outbound.messages;
    relay->outbound_bytes = outbound.bytes;
    relay->outbound_limit = outbound.bytes_max;
}

static void read_archive(const struct node *node, struct node_reading *out)
{
    struct archive_reading *archive = &out->archive;
    uint64_t since_ns = 0;
    if (node->archive == NULL) {
        return;
    }
    archive->is_there = true;
    archive->engine = archive_engine_name(node->archive);
    archive->address = node->archive_address;
    archive->health = archive_stage_health(&node->archive_stage, &since_ns);
    archive->failing_ns =
            since_ns != 0 && out->monotonic_ns > since_ns ? out->monotonic_ns - since_ns : 0;
    archive->held = archive_stage_held(&node->archive_stage);
    /* relaxed: a reading */
    archive->spilled = atomic_load_explicit(&node->archive_stage.spill_held, memory_order_relaxed);
    archive->ring_bytes = stage_load_bytes(&node->archive_load);
    archive->totals = archive_stage_extent(&node->archive_stage);
}

static void read_memory(const struct node *node, struct node_reading *out)
{
    out->budget_used = frame_budget_used(node->budget);
    out->budget_limit = frame_budget_limit(node->budget);
    out->budget_peak = frame_budget_peak(node->budget);
    out->event_bytes = stage_load_bytes(&node->event_load);
    for (size_t i = 0; i < node->settings.filter_count; i++) {
        out->filter_bytes += stage_load_bytes(&node->filters[i].load);
    }
}

static void read_protocols(const struct node *node, struct node_reading *out)
{
    const struct peer_protocols *counts =
            peer_manager_protocols(network_peer_manager(node->network));
    for (size_t i = 0; i < PEER_PROTOCOLS_COUNTED; i++) {
        /* relaxed: counts order nothing */
        out->protocol_peers[i][0] = atomic_load_explicit(&counts->of[i][0], memory_order_relaxed);
        out->protocol_peers[i][1] = atomic_load_explicit(&counts->of[i][1], memory_order_relaxed);
    }
}

void node_read(struct node *node, struct node_reading *out)
{
    memset(out, 0, sizeof(*out));
    out->wall_ns = clock_wall_ns();
    out->monotonic_ns = clock_monotonic_ns();
    uint64_t started = atomic_load_explicit(&node->started_ns, memory_order_relaxed);
    out->is_running = started != 0;
    out->uptime_ns = started != 0 ? out->monotonic_ns - started : 0;
    /* relaxed: readings */
    out->subscriptions = load(&node->topics_joined);
    out->unsubscriptions = load(&node->topics_left);
    out->filter_subscribers = node_filter_subscriber_count(node);
    out->sync_ids = load(&node->sync_worker.set_count);
    out->unique_peers = load(&node->unique_peers);
    read_metrics(node, out);
    read_threads(node, out);
    read_queues(node, out);
    read_topics(node, out);
    read_messages(node, out);
    read_memory(node, out);
    read_relay(node, out);
    read_archive(node, out);
    if (node->network != NULL) {
        out->connections = switch_connection_count(network_switch(node->network));
        out->upgrades = switch_upgrade_count(network_switch(node->network));
        read_protocols(node, out);
    }
}

uint64_t reading_sum(
        const struct node_reading *reading, enum ledger_stage stage, enum ledger_outcome outcome)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < ledger_cell_count; i++) {
        if (ledger_cells[i].stage == stage && ledger_cells[i].outcome == outcome) {
            sum += reading->metrics[ledger_cells[i].metric];
        }
    }
    return sum;
}

uint64_t reading_dropped(const struct node_reading *reading, enum ledger_stage stage)
{
    return reading_sum(reading, stage, LEDGER_OUTCOME_DROPPED);
}
