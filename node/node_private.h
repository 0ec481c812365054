/* SPDX-License-Identifier: MIT */
#pragma once

/* The inside of struct node, for the files of node/ only. */

#include <pthread.h>

#include "archive/spill.h"
#include "node/live.h"
#include "node/metrics_server.h"
#include "node/network.h"
#include "node/node.h"
#include "node/protected_shards.h"
#include "node/rest.h"
#include "node/watch.h"
#include "queues/id_ring.h"
#include "queues/inbox.h"
#include "queues/progress.h"
#include "queues/spmc_ring.h"
#include "router/dispatcher.h"
#include "router/filter_link.h"
#include "router/lane.h"
#include "router/subscriptions.h"
#include "router/sync_set.h"
#include "router/topic_registry.h"
#include "workers/archive_worker.h"
#include "workers/decode_worker.h"
#include "workers/event_worker.h"
#include "workers/filter_worker.h"
#include "workers/pin_plan.h"
#include "workers/query_worker.h"
#include "workers/relay_lane.h"
#include "workers/sync_worker.h"
#include "workers/tend_worker.h"
#include "workers/worker.h"

enum {
    NODE_LANES_MAX = INTAKE_LANES_MAX,
    NODE_FILTERS_MAX = FILTER_THREADS_MAX,
    NODE_IO_MAX = 64,
    NODE_SMALL_MACHINE_CPUS = 4, /* up to so many processors it has one query thread by default */
    NODE_QUERIES_MAX = ARCHIVE_JOBS_TAKERS_MAX,
    NODE_WORKERS_MAX = NODE_LANES_MAX + NODE_FILTERS_MAX + NODE_IO_MAX + NODE_QUERIES_MAX + 16
};

/* One lane: its inbox, its decisions and its end of every ring. */
struct node_lane {
    struct inbox *inbox;
    struct inbox *events; /* of peers; NULL without relay, as relay is */
    struct lane *lane;
    struct relay_lane *relay;
    struct dispatcher dispatcher;
    struct decode_worker worker;
    struct spmc_ring *archive_ring;
    struct spmc_ring *filter_rings[NODE_FILTERS_MAX];
    struct spmc_ring *event_ring;
    struct id_ring *sync_ring;
};

struct node_filter {
    struct inbox *requests;
    struct subscriptions *subscriptions;
    struct seen_set *pushed;
    struct stage_load load;
    struct filter_worker worker;
};

struct node_thread {
    struct worker *worker;
    enum node_role role;
    size_t index; /* among the threads of the role */
    char name[16];
};

/* What node_create read from the options. */
struct node_settings {
    size_t lane_count;
    size_t filter_count;
    size_t query_count;
    uint32_t max_topics;
    uint16_t cluster;
    uint16_t shard_count; /* of a network with autosharding; 0: static sharding */
    size_t archive_ring;
    size_t filter_ring;
    size_t event_ring;
    size_t sync_ring;
    size_t sync_limit;
    struct mesh_options mesh;
    struct score_options scores;
    size_t archive_batch;
    size_t budget_bytes;
    size_t relay_cache_bytes; /* of each lane */
    enum idle_strategy idle;
    struct retention_policy retention;
    struct lane_options lane;
    struct subscriptions_options filter;
    size_t filter_seen_bytes; /* of each filter thread */
};

struct node {
    struct progress progress; /* first: it asks for whole cache lines */
    struct parking archive_parking;
    struct parking spill_parking;
    struct parking tend_parking;
    struct parking event_parking;
    struct parking reply_parking; /* of callers that wait for a filter thread's answer */
    struct stage_load archive_load;
    struct stage_load event_load;
    struct archive_stage archive_stage;
    struct tend_worker tend_worker;

    struct node_settings settings;
    struct node_hooks hooks;
    struct network *network;                   /* NULL: the node has none */
    struct rest *rest;                         /* NULL: likewise */
    struct protected_shards *protected_shards; /* NULL: none */
    struct relay_port relay_port;              /* post is NULL: nobody to relay to */
    struct metrics *metrics;
    struct frame_budget *budget;
    struct topic_registry *topics;
    pthread_mutex_t topics_writer; /* the registry has one writer at a time */
    struct archive *archive;
    struct spill *spill;
    char archive_address[4200]; /* as the operator named it, or of the import beside that */
    struct sync_set *sync_set;
    struct inbox *sync_jobs;
    struct sync_worker sync_worker;
    struct inbox *event_tasks;
    struct event_worker event_worker;
    struct query_worker query_workers[NODE_QUERIES_MAX];
    struct archive_jobs *query_jobs;
    struct node_lane lanes[NODE_LANES_MAX];
    struct node_filter filters[NODE_FILTERS_MAX];
    struct filter_link filter_link;
    _Atomic size_t filter_peers; /* of all filter threads */
    struct intake intake;
    struct relay_pace pace;
    struct pin_plan pins;
    struct node_thread threads[NODE_WORKERS_MAX];
    size_t thread_count;
    bool is_running;
    struct watch watch;
    struct metrics_server *metrics_server; /* NULL: not asked for; likewise */
    struct live *live;

    /* for node/reading.c */
    _Atomic uint64_t started_ns; /* monotonic; 0: not yet */
    _Atomic uint64_t topics_joined;
    _Atomic uint64_t topics_left;
    _Atomic uint64_t unique_peers;
};

/* node/settings.c */
/* The option that the archive's address is from. */
const char *node_archive_option(const struct options *options);
MUST_USE enum status node_settings_read(
        struct node_settings *out, const struct options *options, struct node_error *error);

/* node/topics.c: joins the topics that the options name, and makes the network's others known. */
MUST_USE enum status node_join_topics(struct node *node, struct node_error *error);

/* node/node_end.c: before the network is closed; its threads run. Takes NODE_SEND_END_MS at most. */
void node_send_rest(struct node *node);

/* node/node_sync.c */

/* Timestamp of the last archived message, 0 when there is none. Before the threads run. */
int64_t node_newest_archived(struct node *node);

/* context is the node. */
bool node_has_room(void *context);
MUST_USE enum status node_wire_sync(
        struct node *node, const struct options *options, struct node_error *error);

/* From the archive, when the topics are known and when one was joined. */
void node_fill_sync_set(struct node *node);

/* Before the query threads are stopped. */
void node_quiesce_sync(struct node *node);
void node_destroy_sync(struct node *node);

/* node/threads.c: creates (does not start) a worker for every role of the node. */
MUST_USE enum status node_check_pin(const struct options *options, struct node_error *error);
MUST_USE enum status node_make_threads(
        struct node *node, const struct options *options, struct node_error *error);
