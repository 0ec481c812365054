/* SPDX-License-Identifier: MIT */
#include "node/node.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "archive/backup.h"
#include "archive/import.h"
#include "base/clock.h"
#include "base/rcu.h"
#include "node/filter.h"
#include "node/node_private.h"

enum status node_explain(struct node_error *error, enum status status, const char *what)
{
    if (status != STATUS_OK && error->text[0] == '\0') {
        snprintf(error->text, sizeof(error->text), "%s: %s", what, status_text(status));
    }
    return status;
}

const char *node_archive_option(const struct options *options)
{
    const char *store = options_text(options, "store-message-db-url");
    bool is_store =
            options_flag(options, "store") && strcmp(options_text(options, "archive"), store) == 0;
    return is_store ? "store-message-db-url" : "archive";
}

static enum status open_archive(
        struct node *node, const struct options *options, struct node_error *error)
{
    const char *address = options_text(options, "archive");
    snprintf(node->archive_address, sizeof(node->archive_address), "%s", address);
    if (strcmp(address, "none") == 0) {
        return STATUS_OK;
    }
    const struct retention_policy *retention = &node->settings.retention;
    struct archive_options archive_options = {
            .memory_limit_bytes = options_number(options, "archive-memory-limit"),
            .segment_bytes = retention_policy_segment_bytes(retention),
            .max_age_ns = retention->max_age_s * NANOSECONDS_PER_SECOND,
            .gives_back_free_space = options_flag(options, "store-message-db-vacuum")};
    struct archive_error archive_error;
    enum status status = archive_open(&node->archive, address, &archive_options, &archive_error);
    if (status == STATUS_REFERENCE_DATABASE &&
            options_flag(options, "store-message-db-migration")) {
        status = archive_open_imported(
                &node->archive, archive_path_of(address), &archive_options, &archive_error);
        snprintf(node->archive_address, sizeof(node->archive_address), "%s%s", address,
                ARCHIVE_IMPORTED_SUFFIX);
    }
    if (status != STATUS_OK) {
        snprintf(error->text, sizeof(error->text), "--%s: %s", node_archive_option(options),
                archive_error.text);
    }
    return status;
}

/* The spill file stands beside the database, or where --archive-spill says. */
static enum status open_spill(
        struct node *node, const struct options *options, struct node_error *error)
{
    char path[4096];
    const char *beside = archive_path_of(node->archive_address);
    const char *named = options_text(options, "archive-spill");
    uint64_t limit = options_number(options, "archive-spill-limit");
    if (node->archive == NULL || limit == 0 || (named[0] == '\0' && beside == NULL)) {
        return STATUS_OK;
    }
    if (named[0] != '\0') {
        snprintf(path, sizeof(path), "%s", named);
    } else {
        snprintf(path, sizeof(path), "%s.spill", beside);
    }
    struct spill_options spill_options = {.path = path, .limit_bytes = limit};
    enum status status = spill_open(&node->spill, &spill_options);
    if (status != STATUS_OK) {
        snprintf(error->text, sizeof(error->text), "--archive-spill: spill file %.500s: %s", path,
                status_text(status));
    }
    return status;
}

static enum status make_relay(struct node *node, size_t index)
{
    struct node_lane *lane = &node->lanes[index];
    struct relay_lane_options options = {.index = (uint32_t)index,
            .mesh = node->settings.mesh,
            .scores = node->settings.scores,
            .lane = lane->lane,
            .intake = &node->intake,
            .port = node->relay_port};
    if (node->relay_port.post == NULL) {
        return STATUS_OK;
    }
    options.mesh.cache_bytes_max = node->settings.relay_cache_bytes;
    if (getrandom(&options.mesh.seed, sizeof(options.mesh.seed), 0) !=
            (ssize_t)sizeof(options.mesh.seed)) {
        return STATUS_SYSTEM;
    }
    enum status status = inbox_create(&lane->events);
    options.events = lane->events;
    return status == STATUS_OK ? relay_lane_create(&lane->relay, &options) : status;
}

static enum status make_lane(struct node *node, size_t index)
{
    struct node_lane *lane = &node->lanes[index];
    const struct node_settings *settings = &node->settings;
    enum status status = inbox_create(&lane->inbox);
    if (status == STATUS_OK) {
        struct lane_options options = settings->lane;
        options.accepts = node->protected_shards != NULL ? protected_shards_accept : NULL;
        options.accepts_context = node->protected_shards;
        status = lane_create(&lane->lane, &options);
    }
    if (status == STATUS_OK) {
        status = make_relay(node, index);
    }
    if (status == STATUS_OK && node->archive != NULL) {
        status = spmc_ring_create(
                &lane->archive_ring, settings->archive_ring, &node->archive_parking);
    }
    for (size_t i = 0; status == STATUS_OK && i < settings->filter_count; i++) {
        status = spmc_ring_create(&lane->filter_rings[i], settings->filter_ring,
                inbox_parking(node->filters[i].requests));
    }
    if (status == STATUS_OK) {
        status = spmc_ring_create(&lane->event_ring, settings->event_ring, &node->event_parking);
    }
    if (status == STATUS_OK) {
        status = id_ring_create(
                &lane->sync_ring, settings->sync_ring, inbox_parking(node->sync_jobs));
    }
    return status;
}

static enum status make_filter(struct node *node, size_t index)
{
    struct node_filter *filter = &node->filters[index];
    struct subscriptions_options options = node->settings.filter;
    bool is_served = node->network != NULL && network_filter(node->network) != NULL;
    options.peer_total = &node->filter_peers;
    options.release_context = is_served ? filter_release_subscriber : NULL;
    enum status status = inbox_create(&filter->requests);
    if (status == STATUS_OK) {
        status = subscriptions_create(&filter->subscriptions, &options);
    }
    if (status == STATUS_OK) {
        status = seen_set_create(&filter->pushed, node->settings.filter_seen_bytes,
                node->settings.lane.seen_window_ns);
    }
    node->filter_link.threads[index] = filter->requests;
    node->filter_link.count = index + 1;
    return status;
}

static enum status make_parts(struct node *node)
{
    struct topic_registry_options topics = {.max_topics = node->settings.max_topics,
            .lane_count = (uint32_t)node->settings.lane_count,
            .lane_policy = TOPIC_LANE_ROUND_ROBIN};
    enum status status = topic_registry_create(&node->topics, &topics);
    if (status == STATUS_OK) {
        status = inbox_create(&node->event_tasks);
    }
    if (status == STATUS_OK) {
        status = sync_set_create(&node->sync_set, node->settings.sync_limit);
    }
    for (size_t i = 0; status == STATUS_OK && i < node->settings.filter_count; i++) {
        status = make_filter(node, i);
    }
    for (size_t i = 0; status == STATUS_OK && i < node->settings.lane_count; i++) {
        status = make_lane(node, i);
    }
    return status;
}

/* Intake, archive, sync and event, and each filter thread. */
_Static_assert(PROGRESS_STAGES_MAX >= 4 + NODE_FILTERS_MAX, "wire_progress needs more stages");
_Static_assert(
        PROGRESS_SLOTS_MAX >= 4 + NODE_LANES_MAX * 4 + NODE_FILTERS_MAX * (1 + NODE_LANES_MAX),
        "wire_progress needs more slots");

/* Every stage gets a number and a slot for its own thread and one for each lane's dispatcher. */
static void wire_progress(struct node *node)
{
    struct progress *progress = &node->progress;
    size_t archive = node->archive != NULL ? progress_add_stage(progress) : 0;
    size_t sync = progress_add_stage(progress);
    size_t event = progress_add_stage(progress);
    node->sync_worker.progress_slot = progress_add_slot(progress, sync);
    node->event_worker.progress_slot = progress_add_slot(progress, event);
    if (node->archive != NULL) {
        node->archive_stage.archive_slot = progress_add_slot(progress, archive);
        node->archive_stage.spill_slot = progress_add_slot(progress, archive);
    }
    for (size_t l = 0; l < node->settings.lane_count; l++) {
        struct node_lane *lane = &node->lanes[l];
        lane->worker.progress_slot = progress_add_slot(progress, PROGRESS_INTAKE);
        lane->dispatcher.slot_sync = progress_add_slot(progress, sync);
        lane->dispatcher.slot_event = progress_add_slot(progress, event);
        if (node->archive != NULL) {
            lane->dispatcher.slot_archive = progress_add_slot(progress, archive);
        }
    }
    for (size_t f = 0; f < node->settings.filter_count; f++) {
        size_t filter = progress_add_stage(progress);
        node->filters[f].worker.progress_slot = progress_add_slot(progress, filter);
        for (size_t l = 0; l < node->settings.lane_count; l++) {
            node->lanes[l].dispatcher.slot_filters[f] = progress_add_slot(progress, filter);
        }
    }
}

static void wire_lane(struct node *node, size_t index)
{
    struct node_lane *lane = &node->lanes[index];
    struct dispatcher *dispatcher = &lane->dispatcher;
    dispatcher->archive = lane->archive_ring;
    dispatcher->sync = lane->sync_ring;
    dispatcher->event = lane->event_ring;
    dispatcher->filter_count = node->settings.filter_count;
    dispatcher->lane = index;
    dispatcher->archive_load = &node->archive_load;
    dispatcher->event_load = &node->event_load;
    dispatcher->spill = node->spill != NULL ? &node->spill_parking : NULL;
    dispatcher->budget = node->budget;
    dispatcher->progress = &node->progress;
    for (size_t i = 0; i < dispatcher->filter_count; i++) {
        dispatcher->filters[i] = lane->filter_rings[i];
        dispatcher->filter_loads[i] = &node->filters[i].load;
        node->filters[i].worker.rings.rings[index] = lane->filter_rings[i];
    }
    lane->worker.inbox = lane->inbox;
    lane->worker.lane = lane->lane;
    lane->worker.relay = lane->relay;
    lane->worker.pace = node->intake.pace;
    lane->worker.dispatcher = dispatcher;
    lane->worker.progress = &node->progress;
    lane->worker.verdict = node->hooks.verdict;
    lane->worker.verdict_context = node->hooks.verdict_context;
    lane->worker.rest = rest_settle;
    if (node->network != NULL) {
        lane->worker.lightpush =
                network_lightpush_verdict(node->network, &lane->worker.lightpush_context);
    }
    node->intake.lanes[index] = lane->inbox;
    node->intake.events[index] = lane->events;
    node->event_worker.rings.rings[index] = lane->event_ring;
    node->sync_worker.rings[index] = lane->sync_ring;
    node->sync_worker.dispatchers[index] = dispatcher;
    node->archive_stage.archive_rings.rings[index] = lane->archive_ring;
    node->archive_stage.spill_rings.rings[index] = lane->archive_ring;
}

/* Clients that watch first: what the application does may take long. */
static void take_event(void *context, struct envelope *envelope)
{
    const struct node *node = context;
    if (node->live != NULL) {
        live_take(node->live, envelope);
    }
    if (node->rest != NULL) {
        rest_take(node->rest, envelope);
    }
    if (node->hooks.event != NULL) {
        node->hooks.event(node->hooks.event_context, envelope);
    }
}

static void wire_stages(struct node *node)
{
    size_t lanes = node->settings.lane_count;
    for (size_t i = 0; i < node->settings.filter_count; i++) {
        struct filter_worker *worker = &node->filters[i].worker;
        worker->rings.count = lanes;
        worker->rings.load = &node->filters[i].load;
        node->filters[i].load.lane_count = lanes;
        worker->requests = node->filters[i].requests;
        worker->subscriptions = node->filters[i].subscriptions;
        worker->progress = &node->progress;
        worker->push = node->hooks.push;
        worker->push_context = node->hooks.push_context;
        worker->pushed = node->filters[i].pushed;
        if (node->network != NULL && network_filter(node->network) != NULL) {
            worker->port = filter_port(network_filter(node->network));
        }
    }
    node->event_worker.rings.count = lanes;
    node->event_worker.tasks = node->event_tasks;
    node->event_worker.rings.load = &node->event_load;
    node->event_load.lane_count = lanes;
    node->archive_load.lane_count = lanes;
    node->event_worker.parking = &node->event_parking;
    node->event_worker.progress = &node->progress;
    node->event_worker.callback = take_event;
    node->event_worker.callback_context = node;
    node->intake.topics = node->topics;
    node->intake.unknown_topic = node->hooks.unknown_topic;
    node->intake.unknown_context = node->hooks.unknown_context;
    node->intake.lane_count = lanes;
}

static enum status wire_archive(struct node *node)
{
    struct archive_stage *stage = &node->archive_stage;
    if (node->archive == NULL) {
        return STATUS_OK;
    }
    stage->archive_rings.count = node->settings.lane_count;
    stage->spill_rings.count = node->settings.lane_count;
    stage->archive_rings.load = &node->archive_load;
    stage->acknowledge = node->hooks.archived;
    stage->acknowledge_context = node->hooks.archived_context;
    stage->ring_capacity = node->settings.archive_ring;
    stage->archive_parking = &node->archive_parking;
    stage->spill_parking = &node->spill_parking;
    stage->tend_parking = &node->tend_parking;
    node->tend_worker.parking = &node->tend_parking;
    node->tend_worker.archive = node->archive;
    stage->archive = node->archive;
    stage->spill = node->spill;
    stage->budget = node->budget;
    stage->progress = &node->progress;
    stage->batch_max = node->settings.archive_batch;
    stage->retention_policy = node->settings.retention;
    for (size_t i = 0; i < node->settings.query_count; i++) {
        node->query_workers[i] = (struct query_worker){
                .jobs = node->query_jobs, .index = i, .archive = node->archive};
    }
    return archive_stage_init(stage);
}

static enum status make_network(
        struct node *node, const struct options *options, struct node_error *error)
{
    struct network_options network_options = {.options = options,
            .intake = &node->intake,
            .budget = node->budget,
            .filter_link = &node->filter_link,
            .graylist_threshold = node->settings.mesh.graylist_threshold};
    enum status status = archive_jobs_create(&node->query_jobs, node->settings.query_count);
    if (status != STATUS_OK || !node->hooks.has_network) {
        return status;
    }
    network_options.sync_jobs = node->sync_jobs;
    network_options.newest_ns = node_newest_archived(node);
    network_options.has_room = node_has_room;
    network_options.room_context = node;
    network_options.query_jobs = node->archive != NULL ? node->query_jobs : NULL;
    status = network_create(&node->network, &network_options, error);
    if (status == STATUS_OK) {
        node->relay_port = network_relay_port(node->network);
        node->pace.bytes_max = (size_t)options_number(options, "relay-queue-limit") / 2;
        node->intake.pace = node->relay_port.post != NULL ? &node->pace : NULL;
    }
    return status;
}

/* On an io thread. */
static void take_pushed(void *context, struct span pubsub_topic, struct span message)
{
    const struct node *node = context;
    if (node->rest != NULL) {
        rest_take_pushed(node->rest, pubsub_topic, message);
    }
    if (node->hooks.pushed != NULL) {
        node->hooks.pushed(node->hooks.pushed_context, pubsub_topic, message);
    }
}

static enum status make_rest(
        struct node *node, const struct options *options, struct node_error *error)
{
    enum status status = rest_create(&node->rest, node, options, error);
    if (status == STATUS_OK && (node->rest != NULL || node->hooks.pushed != NULL)) {
        node_filter_set_receiver(node, take_pushed, node);
    }
    return status;
}

/* The servers of an operator's programs, and what they all show. */
static enum status make_servers(
        struct node *node, const struct options *options, struct node_error *error)
{
    enum status status = watch_init(&node->watch, node);
    if (status == STATUS_OK) {
        status = metrics_server_create(&node->metrics_server, node, options, error);
    }
    if (status != STATUS_OK || (node->metrics_server == NULL && node->rest == NULL)) {
        return status;
    }
    status = live_create(&node->live, node, options);
    if (status == STATUS_OK && node->metrics_server != NULL) {
        live_add_routes(node->live, metrics_server_http(node->metrics_server));
    }
    if (status == STATUS_OK && node->rest != NULL) {
        live_add_routes(node->live, rest_server(node->rest));
    }
    return status;
}

static enum status assemble(
        struct node *node, const struct options *options, struct node_error *error)
{
    enum status status = node_settings_read(&node->settings, options, error);
    if (status == STATUS_OK) {
        status = metrics_create(&node->metrics);
    }
    if (status == STATUS_OK) {
        status = protected_shards_create(&node->protected_shards, options, error);
    }
    if (status == STATUS_OK) {
        size_t budget = node->settings.budget_bytes;
        status = frame_budget_create(&node->budget, budget, budget / 8);
    }
    if (status == STATUS_OK) {
        status = open_archive(node, options, error);
    }
    if (status == STATUS_OK) {
        status = open_spill(node, options, error);
    }
    if (status == STATUS_OK) {
        status = inbox_create(&node->sync_jobs);
    }
    if (status == STATUS_OK) {
        status = make_network(node, options, error);
    }
    if (status == STATUS_OK) {
        status = make_rest(node, options, error);
    }
    if (status == STATUS_OK) {
        status = make_parts(node);
    }
    if (status != STATUS_OK) {
        return status;
    }
    wire_progress(node);
    for (size_t i = 0; i < node->settings.lane_count; i++) {
        wire_lane(node, i);
    }
    wire_stages(node);
    status = wire_archive(node);
    if (status == STATUS_OK) {
        status = make_servers(node, options, error);
    }
    if (status == STATUS_OK) {
        status = node_wire_sync(node, options, error);
    }
    return status == STATUS_OK ? node_make_threads(node, options, error) : status;
}

enum status node_create(struct node **out, const struct options *options,
        const struct node_hooks *hooks, struct node_error *error)
{
    size_t whole = (sizeof(struct node) + CACHE_LINE - 1) / CACHE_LINE * CACHE_LINE;
    struct node *node = aligned_alloc(CACHE_LINE, whole);
    error->text[0] = '\0';
    if (node == NULL) {
        return node_explain(error, STATUS_NO_MEMORY, "node");
    }
    memset(node, 0, sizeof(*node));
    pthread_mutex_init(&node->topics_writer, NULL);
    node->hooks = *hooks;
    progress_init(&node->progress);
    parking_init(&node->archive_parking);
    parking_init(&node->spill_parking);
    parking_init(&node->tend_parking);
    parking_init(&node->event_parking);
    parking_init(&node->reply_parking);
    atomic_init(&node->filter_peers, 0);
    for (size_t i = 0; i < NODE_LANES_MAX; i++) {
        dispatcher_init(&node->lanes[i].dispatcher);
    }
    enum status status = node_explain(error, assemble(node, options, error), "node");
    if (status != STATUS_OK) {
        node_destroy(&node);
        return status;
    }
    *out = node;
    return STATUS_OK;
}

/* What peers did while the lane ended. */
static void drop_events(struct node_lane *lane)
{
    struct lane_event *event;
    while (lane->events != NULL && (event = lane_event_of(inbox_try_pop(lane->events))) != NULL) {
        lane_event_destroy(event);
    }
    inbox_destroy(&lane->events);
}

static void destroy_lane(struct node_lane *lane)
{
    id_ring_destroy(&lane->sync_ring);
    spmc_ring_destroy(&lane->event_ring);
    for (size_t i = 0; i < NODE_FILTERS_MAX; i++) {
        spmc_ring_destroy(&lane->filter_rings[i]);
    }
    spmc_ring_destroy(&lane->archive_ring);
    relay_lane_destroy(&lane->relay);
    drop_events(lane);
    lane_destroy(&lane->lane);
    inbox_destroy(&lane->inbox);
}

/* The stages before the archive's refuse to be destroyed while they hold anything: see the asserts. */
void node_destroy(struct node **node_pointer)
{
    struct node *node = *node_pointer;
    if (node == NULL) {
        return;
    }
    for (size_t i = 0; i < node->thread_count; i++) {
        worker_destroy(&node->threads[i].worker);
    }
    live_destroy(&node->live);
    metrics_server_destroy(&node->metrics_server);
    watch_fini(&node->watch);
    if (node->archive_stage.archive != NULL) {
        archive_stage_fini(&node->archive_stage);
    }
    for (size_t i = 0; i < NODE_LANES_MAX; i++) {
        destroy_lane(&node->lanes[i]);
    }
    protected_shards_destroy(&node->protected_shards);
    for (size_t i = 0; i < NODE_FILTERS_MAX; i++) {
        subscriptions_destroy(&node->filters[i].subscriptions);
        seen_set_destroy(&node->filters[i].pushed);
        inbox_destroy(&node->filters[i].requests);
    }
    rest_destroy(&node->rest);
    inbox_destroy(&node->event_tasks);
    node_destroy_sync(node);
    spill_close(&node->spill);
    archive_close(&node->archive);
    rcu_drain();
    network_destroy(&node->network);
    archive_jobs_destroy(&node->query_jobs);
    topic_registry_destroy(&node->topics);
    frame_budget_destroy(&node->budget);
    metrics_destroy(&node->metrics);
    pthread_mutex_destroy(&node->topics_writer);
    free(node);
    *node_pointer = NULL;
}
