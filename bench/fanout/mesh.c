/* SPDX-License-Identifier: MIT */

/* Nodes that are all connected to each other: every message arrives at each of them several times. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "bench/fanout/fanout.h"
#include "codec/waku_message.h"
#include "queues/parking.h"
#include "tools/flood/generator.h"

enum {
    NODES_MAX = 32,
    SETTLE_PROBES = 3, /* heartbeats of a mesh that is complete */
    PROBE_PERIOD_NS = 1000000000,
    LOOK_PERIOD_NS = 100 * NANOSECONDS_PER_MILLISECOND,
    WAIT_MAX_S = 30
};

struct mesh_run {
    const struct fanout_plan *plan;
    size_t node_count;
    struct fanout_node nodes[NODES_MAX];
    const struct topic *topics[NODES_MAX];
    uint8_t *payload;
    struct parking parking;
    _Atomic uint64_t delivered; /* events at all nodes, the publisher's own too */
    uint64_t published;
};

static void take_event(void *context, struct envelope *envelope)
{
    struct mesh_run *run = context;
    (void)envelope;
    /* relaxed: a count; the parking orders the sleep */
    atomic_fetch_add_explicit(&run->delivered, 1, memory_order_relaxed);
    parking_wake(&run->parking);
}

/* False: nothing has arrived for too long. */
static bool wait_for(struct mesh_run *run, uint64_t count)
{
    uint64_t limit_ns = WAIT_MAX_S * (uint64_t)NANOSECONDS_PER_SECOND;
    uint64_t seen = 0;
    uint64_t since = clock_monotonic_ns();
    for (;;) {
        uint32_t ticket = parking_prepare(&run->parking);
        uint64_t delivered = atomic_load_explicit(&run->delivered, memory_order_relaxed);
        if (delivered >= count) {
            parking_cancel(&run->parking, ticket);
            return true;
        }
        parking_wait(&run->parking, ticket, LOOK_PERIOD_NS);
        uint64_t now = clock_monotonic_ns();
        since = delivered > seen ? now : since;
        seen = delivered;
        if (now - since > limit_ns) {
            return false;
        }
    }
}

static enum status publish(struct mesh_run *run)
{
    size_t at = run->published % run->node_count;
    int64_t now = clock_wall_ns();
    struct intake_source source = {.received_ns = now,
            .received_monotonic_ns = clock_monotonic_ns(),
            .origin = ORIGIN_API};
    struct waku_message_view fields = {.payload = span_of(run->payload, run->plan->payload_bytes),
            .content_topic = span_of_text("/bench/1/fanout/proto"),
            .timestamp_ns = now,
            .has_payload = true,
            .has_content_topic = true,
            .has_timestamp = true};
    memcpy(run->payload, &run->published, sizeof(run->published));
    struct frame *frame = node_wait_frame(run->nodes[at].node, waku_message_size(&fields));
    if (frame == NULL) {
        return STATUS_NO_MEMORY;
    }
    run->published++;
    struct local_message message = {.topic = run->topics[at], .fields = &fields};
    return intake_post_fields(node_intake(run->nodes[at].node), frame, &message, &source);
}

/* Until whatever is published reaches everybody, and then for some heartbeats more. */
static enum status settle(struct mesh_run *run)
{
    size_t complete = 0;
    for (size_t i = 0; i < WAIT_MAX_S && complete < SETTLE_PROBES; i++) {
        uint64_t before = atomic_load_explicit(&run->delivered, memory_order_relaxed);
        uint64_t until = clock_monotonic_ns() + PROBE_PERIOD_NS;
        enum status status = publish(run);
        if (status != STATUS_OK) {
            return status;
        }
        uint64_t now;
        while ((now = clock_monotonic_ns()) < until) {
            uint32_t ticket = parking_prepare(&run->parking);
            parking_wait(&run->parking, ticket, until - now);
        }
        uint64_t after = atomic_load_explicit(&run->delivered, memory_order_relaxed);
        complete = after - before == run->node_count ? complete + 1 : 0;
    }
    return complete < SETTLE_PROBES ? STATUS_TIMED_OUT : STATUS_OK;
}

static enum status start_nodes(struct mesh_run *run)
{
    struct node_hooks hooks = {.event = take_event, .event_context = run, .has_network = true};
    const char *addresses[NODES_MAX + 1];
    for (size_t i = 0; i < run->node_count; i++) {
        addresses[i] = NULL;
        enum status status = fanout_start_node(&run->nodes[i], run->plan, &hooks, addresses);
        if (status == STATUS_OK) {
            status = node_subscribe_topic(
                    run->nodes[i].node, &run->topics[i], span_of_text(FANOUT_TOPIC));
        }
        if (status != STATUS_OK) {
            return status;
        }
        addresses[i] = run->nodes[i].address;
    }
    return STATUS_OK;
}

static enum status publish_all(struct mesh_run *run)
{
    uint64_t base = atomic_load_explicit(&run->delivered, memory_order_relaxed);
    for (uint64_t i = 0; i < run->plan->messages; i++) {
        uint64_t ahead = i < FANOUT_WINDOW ? 0 : i - FANOUT_WINDOW;
        if (!wait_for(run, base + ahead * run->node_count)) {
            return STATUS_TIMED_OUT;
        }
        enum status status = publish(run);
        if (status != STATUS_OK) {
            return status;
        }
    }
    return wait_for(run, base + run->plan->messages * run->node_count) ? STATUS_OK
                                                                       : STATUS_TIMED_OUT;
}

static enum status measure(struct fanout_result *out, struct mesh_run *run)
{
    uint64_t(*before)[METRIC_COUNT] = calloc(run->node_count, sizeof(*before));
    if (before == NULL) {
        return STATUS_NO_MEMORY;
    }
    for (size_t i = 0; i < run->node_count; i++) {
        fanout_read_counts(before[i], run->nodes[i].node);
    }
    uint64_t cpu = fanout_process_cpu_ns();
    uint64_t began = clock_monotonic_ns();
    enum status status = publish_all(run);
    out->seconds = (double)(clock_monotonic_ns() - began) / 1e9;
    out->cpu_seconds = (double)(fanout_process_cpu_ns() - cpu) / 1e9;
    out->deliveries = run->plan->messages * (run->node_count - 1);
    out->bytes = (double)out->deliveries * (double)run->plan->payload_bytes;
    for (size_t i = 0; i < run->node_count; i++) {
        fanout_add_counts(out, run->nodes[i].node, before[i]);
    }
    out->arrivals -= run->plan->messages; /* the publishers' own */
    free(before);
    return status;
}

enum status fanout_mesh(struct fanout_result *out, const struct fanout_plan *plan)
{
    struct mesh_run *run = calloc(1, sizeof(*run));
    *out = (struct fanout_result){0};
    if (run == NULL || plan->receivers + 1 > NODES_MAX) {
        free(run);
        return STATUS_NO_MEMORY;
    }
    run->plan = plan;
    run->node_count = plan->receivers + 1;
    parking_init(&run->parking);
    run->payload = calloc(1, plan->payload_bytes);
    enum status status = run->payload == NULL ? STATUS_NO_MEMORY : start_nodes(run);
    if (status == STATUS_OK) {
        status = settle(run);
    }
    if (status == STATUS_OK) {
        status = measure(out, run);
    }
    for (size_t i = 0; i < run->node_count; i++) {
        fanout_stop_node(&run->nodes[i]);
    }
    free(run->payload);
    free(run);
    return status;
}
