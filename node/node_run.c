/* SPDX-License-Identifier: MIT */

/* A node that runs: starting and stopping its threads in order, and what others ask of it. */

#include <sched.h>
#include <stdio.h>
#include <time.h>

#include "base/clock.h"
#include "base/rcu.h"
#include "node/node_private.h"

/*
 * Consumers before producers, so that nothing is pushed to a stage that is not there yet; they stop in
 * the reverse order. The archive is the last to stop and reads back what the spill thread wrote.
 */
static const enum node_role start_order[] = {NODE_ROLE_ARCHIVE, NODE_ROLE_TEND, NODE_ROLE_SPILL,
        NODE_ROLE_SYNC, NODE_ROLE_EVENT, NODE_ROLE_FILTER, NODE_ROLE_QUERY, NODE_ROLE_DECODE,
        NODE_ROLE_IO, NODE_ROLE_WATCH, NODE_ROLE_METRICS, NODE_ROLE_WAIT, NODE_ROLE_REST};

enum {
    ORDER_COUNT = sizeof(start_order) / sizeof(start_order[0]),
    PEERS_WAIT_NS = 200 * 1000
};

static enum status start_role(struct node *node, enum node_role role, struct node_error *error)
{
    for (size_t i = 0; i < node->thread_count; i++) {
        if (node->threads[i].role != role) {
            continue;
        }
        enum status status = worker_start(node->threads[i].worker);
        if (status != STATUS_OK) {
            snprintf(error->text, sizeof(error->text), "thread %s: %s", node->threads[i].name,
                    status_text(status));
            return status;
        }
    }
    return STATUS_OK;
}

/* A role's threads drain their queues before they end; its producers have ended before. */
static void stop_role(struct node *node, enum node_role role)
{
    for (size_t i = 0; i < node->thread_count; i++) {
        if (node->threads[i].role == role && worker_is_started(node->threads[i].worker)) {
            worker_request_stop(node->threads[i].worker);
        }
    }
    for (size_t i = 0; i < node->thread_count; i++) {
        if (node->threads[i].role == role) {
            worker_join(node->threads[i].worker);
        }
    }
}

/* liburcu makes the reclaimer's thread where its first user runs: here, off the pinned cores. */
static void start_reclaimer(const struct node *node)
{
    cpu_set_t before;
    if (sched_getaffinity(0, sizeof(before), &before) != 0) {
        return;
    }
    (void)!sched_setaffinity(0, sizeof(node->pins.floating.mask), &node->pins.floating.mask);
    (void)urcu_qsbr_get_default_call_rcu_data();
    (void)!sched_setaffinity(0, sizeof(before), &before);
}

/* The topics that the options name, then the peers. */
static enum status enter_network(struct node *node, struct node_error *error)
{
    enum status status = node_join_topics(node, error);
    if (status == STATUS_OK) {
        network_start(node->network);
    }
    return status;
}

enum status node_start(struct node *node, struct node_error *error)
{
    enum status status = STATUS_OK;
    start_reclaimer(node);
    node->is_running = true;
    atomic_store_explicit(&node->started_ns, clock_monotonic_ns(), memory_order_relaxed);
    for (size_t i = 0; status == STATUS_OK && i < ORDER_COUNT; i++) {
        /* Whoever gets an answer from the REST API finds the node in its topics. */
        if (start_order[i] == NODE_ROLE_REST && node->network != NULL) {
            status = enter_network(node, error);
        }
        if (status == STATUS_OK) {
            status = start_role(node, start_order[i], error);
        }
    }
    if (status != STATUS_OK) {
        node_stop(node);
    }
    return status;
}

/* Only then the switch's end can be waited for; node_destroy ends one whose loops have not run. */
static bool has_started(const struct node *node, enum node_role role)
{
    bool has = true;
    for (size_t i = 0; i < node->thread_count; i++) {
        has = has && (node->threads[i].role != role || worker_is_started(node->threads[i].worker));
    }
    return has;
}

void node_stop(struct node *node)
{
    if (!node->is_running) {
        return;
    }
    if (node->rest != NULL) {
        rest_close(node->rest);
    }
    if (node->metrics_server != NULL) {
        metrics_server_close(node->metrics_server);
    }
    node_quiesce_sync(node);
    archive_stage_end_by(&node->archive_stage,
            clock_monotonic_ns() + NODE_ARCHIVE_END_MS * (uint64_t)NANOSECONDS_PER_MILLISECOND);
    if (node->network != NULL && has_started(node, NODE_ROLE_IO)) {
        if (has_started(node, NODE_ROLE_DECODE)) {
            node_send_rest(node);
        }
        network_close(node->network);
    }
    for (size_t i = ORDER_COUNT; i > 0; i--) {
        stop_role(node, start_order[i - 1]);
    }
    node->is_running = false;
}

/* A request that its sender waits for. */
struct waiting_subscribe {
    struct filter_request request;
    struct parking *done_parking; /* the node's: the waiter may be gone before the wake */
    struct subscriber_entry subscriber;
    const struct subscription_request *criteria;
    enum subscription_result result; /* written before DONE */
    atomic_bool is_done;             /* DONE: release store -> acquire load */
};

static void subscribe_on_filter_thread(
        struct filter_request *request, struct subscriptions *subscriptions)
{
    struct waiting_subscribe *waiting = (struct waiting_subscribe *)request;
    struct parking *done_parking = waiting->done_parking;
    bool is_new;
    waiting->result = subscriptions_subscribe(
            subscriptions, waiting->subscriber, waiting->criteria, clock_monotonic_ns(), &is_new);
    atomic_store_explicit(&waiting->is_done, true, memory_order_release); /* DONE */
    parking_wake(done_parking);
}

enum subscription_result node_filter_subscribe(struct node *node,
        struct subscriber_entry subscriber, const struct subscription_request *request)
{
    struct waiting_subscribe waiting = {
            .subscriber = subscriber, .criteria = request, .done_parking = &node->reply_parking};
    waiting.request.carry_out = subscribe_on_filter_thread;
    atomic_init(&waiting.is_done, false);
    struct node_filter *filter = &node->filters[subscriber.id % node->settings.filter_count];
    inbox_push(filter->requests, &waiting.request.link);
    inbox_wake(filter->requests);
    for (;;) {
        uint32_t ticket = parking_prepare(&node->reply_parking);
        if (atomic_load_explicit(&waiting.is_done, memory_order_acquire)) { /* DONE */
            parking_cancel(&node->reply_parking, ticket);
            return waiting.result;
        }
        parking_wait(&node->reply_parking, ticket, UINT64_MAX);
    }
}

void node_post_event_task(struct node *node, struct event_task *task)
{
    event_worker_post(&node->event_worker, task);
}

const struct intake *node_intake(const struct node *node)
{
    return &node->intake;
}

uint16_t node_metrics_port(const struct node *node)
{
    return node->metrics_server == NULL
                   ? 0
                   : http_server_port(metrics_server_http(node->metrics_server));
}

struct network *node_network(const struct node *node)
{
    return node->network;
}

struct frame_budget *node_budget(const struct node *node)
{
    return node->budget;
}

struct metrics *node_metrics(const struct node *node)
{
    return node->metrics;
}

struct archive *node_archive(const struct node *node)
{
    return node->archive;
}

static bool has_lost_patience(const struct node *node)
{
    uint64_t since_ns = 0;
    return node->archive != NULL &&
           archive_stage_health(&node->archive_stage, &since_ns) != STATUS_OK && since_ns != 0 &&
           clock_monotonic_ns() - since_ns >
                   NODE_ARCHIVE_PATIENCE_MS * (uint64_t)NANOSECONDS_PER_MILLISECOND;
}

static struct frame *try_frame(struct node *node, size_t length, size_t bound)
{
    if (frame_budget_used(node->budget) + frame_charge(length) > bound) {
        return NULL;
    }
    return frame_try_create(node->budget, FRAME_BUDGET_COMPLETE, length);
}

/* Nobody wakes who waits for peers; a full pace takes them a moment. */
static void wait_for_peers(const struct node *node)
{
    struct timespec moment = {.tv_nsec = PEERS_WAIT_NS};
    while (intake_is_behind(&node->intake)) {
        (void)nanosleep(&moment, NULL);
    }
}

/* Frames come back when any stage has finished something, which wakes the progress. */
static struct frame *wait_frame(struct node *node, size_t length, size_t bound, bool may_give_up)
{
    struct parking *parking = &node->progress.parking;
    wait_for_peers(node);
    while (frame_charge(length) <= bound && !(may_give_up && has_lost_patience(node))) {
        uint32_t ticket = parking_prepare(parking);
        struct frame *frame = try_frame(node, length, bound);
        if (frame != NULL) {
            parking_cancel(parking, ticket);
            return frame;
        }
        /* A last reference may also go after the wake, on the reclaimer's thread. */
        parking_wait(parking, ticket, 10ULL * NANOSECONDS_PER_MILLISECOND);
    }
    return NULL;
}

struct frame *node_wait_frame(struct node *node, size_t length)
{
    size_t limit = frame_budget_limit(node->budget);
    size_t share = limit / DISPATCHER_SHARE;
    return wait_frame(node, length, frame_charge(length) <= share ? share : limit, true);
}

struct frame *node_wait_credit(struct node *node, size_t length)
{
    return wait_frame(node, length, frame_budget_limit(node->budget), false);
}

uint64_t node_finished(const struct node *node)
{
    return progress_finished(&node->progress);
}

bool node_wait_in_flight(struct node *node, uint64_t submitted, uint64_t max)
{
    while (node_finished(node) + max < submitted) {
        if (has_lost_patience(node)) {
            return false;
        }
        /* A failing archive alerts the progress each time it has tried again. */
        (void)progress_wait(&node->progress, submitted - max, UINT64_MAX);
    }
    return true;
}

static uint64_t depth_of_rings(const struct node *node, enum ledger_stage stage)
{
    uint64_t depth = 0;
    for (size_t l = 0; l < node->settings.lane_count; l++) {
        const struct node_lane *lane = &node->lanes[l];
        if (stage == LEDGER_STAGE_SYNC) {
            depth += id_ring_depth_estimate(lane->sync_ring);
        } else if (stage == LEDGER_STAGE_EVENT) {
            depth += spmc_ring_depth_estimate(lane->event_ring);
        }
        for (size_t f = 0; stage == LEDGER_STAGE_FILTER && f < node->settings.filter_count; f++) {
            depth += spmc_ring_depth_estimate(lane->filter_rings[f]);
        }
    }
    return depth;
}

uint64_t node_held(const struct node *node, enum ledger_stage stage)
{
    if (stage == LEDGER_STAGE_RELAY_OUT) {
        bool has_relay = node->network != NULL && network_relay(node->network) != NULL;
        return has_relay ? relay_held(network_relay(node->network)) : 0;
    }
    if (stage == LEDGER_STAGE_FILTER_OUT) {
        bool has_filter = node->network != NULL && network_filter(node->network) != NULL;
        return has_filter ? filter_held(network_filter(node->network)) : 0;
    }
    if (stage == LEDGER_STAGE_ARCHIVE) {
        return node->archive != NULL ? archive_stage_held(&node->archive_stage) : 0;
    }
    return depth_of_rings(node, stage);
}

enum status node_archive_health(const struct node *node)
{
    uint64_t since_ns;
    return node->archive != NULL ? archive_stage_health(&node->archive_stage, &since_ns)
                                 : STATUS_OK;
}

bool node_archive_state(const struct node *node, struct node_archive_state *out)
{
    *out = (struct node_archive_state){0};
    if (node->archive == NULL) {
        return false;
    }
    out->health = archive_stage_health(&node->archive_stage, &out->failing_since_ns);
    out->held = archive_stage_held(&node->archive_stage);
    out->totals = archive_stage_extent(&node->archive_stage);
    return true;
}

const char *node_archive_address(const struct node *node)
{
    return node->archive_address;
}

void node_floating_cpus(const struct node *node, struct cpu_set *out)
{
    *out = node->pins.floating;
}
