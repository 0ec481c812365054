/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * A whole router, assembled from options: lanes, rings, stages, archive and threads, as
 * node/pipeline.def lists them. Several may live in one process.
 *
 * Lifetime:  create, start, stop, destroy. What the intake accepted before stop is carried through
 *            every stage before it returns; what the archive's engine has not taken within
 *            NODE_ARCHIVE_END_MS is in the spill file, if there is one, for the next start.
 * Thread:    create, start, stop and destroy on one thread; the rest on any between start and stop.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "archive/archive.h"
#include "base/attributes.h"
#include "base/ledger.h"
#include "base/options.h"
#include "base/status.h"
#include "queues/frame_budget.h"
#include "router/intake.h"
#include "workers/archive_worker.h"
#include "workers/decode_worker.h"
#include "workers/event_worker.h"
#include "workers/filter_worker.h"
#include "workers/pin_plan.h"

struct node;
struct network;

enum {
    NODE_ARCHIVE_END_MS = 2000, /* of the 5 s that a stop may take */
    NODE_SEND_END_MS = 1000,    /* likewise: for what peers are still to get */
    NODE_ARCHIVE_PATIENCE_MS =
            1000 /* how long closed-loop producers wait for an archive that fails */
};

enum node_role {
#define ROLE(id, name, count, priority, duty) NODE_ROLE_##id,
#include "node/pipeline.def"
    NODE_ROLES
};

/* Why a node could not be made or started, in one line for the operator. */
struct node_error {
    char text[1100];
};

/* Says what failed, unless the error says something already. Returns the status. */
MUST_USE enum status node_explain(struct node_error *error, enum status status, const char *what);

/*
 * A message that a filter service pushed, as node_filter_received (node/filter.h): on an io thread,
 * several at a time; must not block.
 */
typedef void node_pushed_message(void *context, struct span pubsub_topic, struct span message);

/* The application's side; what is NULL is not called. */
struct node_hooks {
    event_callback *event; /* on the event thread */
    void *event_context;
    filter_push *push; /* on a filter thread; NULL: matched and counted only */
    void *push_context;
    decode_verdict *verdict; /* on the lane's decode thread */
    void *verdict_context;
    archive_acknowledge
            *archived; /* on the archive thread, for each message that is stored and synced */
    void *archived_context;
    intake_unknown_topic *unknown_topic; /* on the posting thread; NULL: refused */
    void *unknown_context;
    node_pushed_message *pushed; /* see there; NULL: the application takes none */
    void *pushed_context;
    bool has_network;  /* listens, and relays with peers, as the options say */
    bool asks_archive; /* the application posts archive jobs */
    bool is_watched;   /* the application asks for health, servers or not */
};

/* options (read now, not kept) as base/options.def. Opens the archive. */
MUST_USE enum status node_create(struct node **out, const struct options *options,
        const struct node_hooks *hooks, struct node_error *error);
/* Whether a node can be made of them, as far as can be seen without opening or making anything. */
MUST_USE enum status node_check_options(const struct options *options, struct node_error *error);
MUST_USE enum status node_start(struct node *node, struct node_error *error);

/* Nothing may be posted any more. */
void node_stop(struct node *node);
void node_destroy(struct node **node);

/* Thread: any. See topic_registry_subscribe. */
MUST_USE enum status node_subscribe_topic(
        struct node *node, const struct topic **out, struct span name);
MUST_USE enum status node_unsubscribe_topic(struct node *node, struct span name);

/*
 * Where an own message may go: a topic that the node takes part in, or, with autosharding, another
 * shard of its network (*is_fanout: its peers get the message, our stages do not). NULL: neither.
 * Thread: any.
 */
const struct topic *BORROWED node_publish_topic(
        const struct node *node, struct span name, bool *is_fanout);

/* The port of --metrics-server; 0: there is none. */
uint16_t node_metrics_port(const struct node *node);

/* NULL when the node has none. */
struct network *BORROWED node_network(const struct node *node);

/* Has the event thread carry out the task, after what it has in hand. Also from hooks. */
void node_post_event_task(struct node *node, struct event_task *CONSUMED task);

/* Posts a subscription to the filter thread that serves the subscriber and waits for the result. */
MUST_USE enum subscription_result node_filter_subscribe(struct node *node,
        struct subscriber_entry subscriber, const struct subscription_request *request);

const struct intake *BORROWED node_intake(const struct node *node);
struct frame_budget *BORROWED node_budget(const struct node *node);
struct metrics *BORROWED node_metrics(const struct node *node);
struct archive *BORROWED node_archive(const struct node *node); /* NULL with --archive=none */

/*
 * For closed-loop producers: a frame with credit, waiting until no more than a stage's share of the
 * budget is in flight, so that no stage drops what it is too slow for, and not while messages of
 * publishers wait for most of the peers. NULL when there is no memory,
 * the frame is larger than the budget, or the archive has failed for NODE_ARCHIVE_PATIENCE_MS.
 */
MUST_USE struct frame *node_wait_frame(struct node *node, size_t length);

/* For open-loop producers: as above, but waits for credit only. */
MUST_USE struct frame *node_wait_credit(struct node *node, size_t length);

/*
 * Waits until at most max of the submitted messages are not finished by every stage. False when the
 * archive has failed for NODE_ARCHIVE_PATIENCE_MS and they are not.
 */
bool node_wait_in_flight(struct node *node, uint64_t submitted, uint64_t max);
uint64_t node_finished(const struct node *node);

/* What the stage's queues hold at this moment. */
uint64_t node_held(const struct node *node, enum ledger_stage stage);

/* STATUS_OK, or why the archive's engine refused the last batch. */
enum status node_archive_health(const struct node *node);

/* What the archive's thread knows of it, at most ARCHIVE_EXTENT_MS old while messages come. */
struct node_archive_state {
    enum status health;        /* STATUS_OK, or why the last batch was refused */
    uint64_t failing_since_ns; /* monotonic; 0: the last batch was stored */
    size_t held;               /* messages that wait for it: the lag */
    struct archive_totals totals;
};

/* False with --archive=none. Any thread. */
bool node_archive_state(const struct node *node, struct node_archive_state *out);
const char *BORROWED node_archive_address(const struct node *node);

/* All threads of the role do nothing until that monotonic time; 0 ends it. */
void node_stall(struct node *node, enum node_role role, uint64_t until_ns);
bool node_role_from_name(enum node_role *out, const char *name);
const char *BORROWED node_role_name(enum node_role role);

/* Busy nanoseconds of all threads of the role, and how many they are. */
size_t node_role_busy(const struct node *node, enum node_role role, uint64_t *busy_ns);

/* Where threads of the host belong that should not disturb the pinned ones. */
void node_floating_cpus(const struct node *node, struct cpu_set *out);
