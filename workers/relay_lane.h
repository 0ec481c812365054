/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The relay half of a decode thread: it owns the mesh and the scores of the lane's topics, takes what
 * io threads tell of peers, and posts what is to be sent. Lane 0 also keeps the parts of the scores
 * that belong to no topic.
 *
 * Thread: the lane's decode thread; create and destroy while it does not run.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/attributes.h"
#include "base/metrics.h"
#include "base/status.h"
#include "queues/envelope.h"
#include "queues/frame.h"
#include "queues/inbox.h"
#include "router/intake.h"
#include "router/lane.h"
#include "router/mesh.h"
#include "router/relay_link.h"
#include "router/scores.h"

struct relay_lane;

struct relay_lane_options {
    uint32_t index; /* of the lane */
    struct mesh_options mesh;
    struct score_options scores;
    struct inbox *BORROWED events;        /* of struct lane_event */
    const struct intake *BORROWED intake; /* the way to lane 0 */
    struct lane *BORROWED lane;
    struct relay_port port;
};

MUST_USE enum status relay_lane_create(
        struct relay_lane **out, const struct relay_lane_options *options);
void relay_lane_destroy(struct relay_lane **relay);

/*
 * Takes waiting events, at most some of them, and beats when it is time. Returns the number of things
 * done. Once a turn; relay_lane_flush at its end.
 */
size_t relay_lane_turn(struct relay_lane *relay, uint64_t now_ns);
void relay_lane_flush(struct relay_lane *relay);

bool relay_lane_has_work(struct relay_lane *relay);

/* Monotonic time of the next heartbeat. */
uint64_t relay_lane_deadline(const struct relay_lane *relay);

/* Sends an accepted message on; returns to how many peers. */
size_t relay_lane_accepted(
        struct relay_lane *relay, struct envelope *BORROWED envelope, uint64_t now_ns);

/* A message of a mesh peer was refused; reason as counted at intake. */
void relay_lane_refused(struct relay_lane *relay, const struct frame_part *part, enum metric reason,
        uint64_t now_ns);

/* For metrics, from any thread: what it was at the last heartbeat. */
struct relay_lane_reading {
    uint64_t peers;
    uint64_t mesh_peers; /* in all topics together */
    uint64_t fanout_peers;
    uint64_t cached; /* messages */
    uint64_t cached_bytes;
};
struct relay_lane_reading relay_lane_reading(const struct relay_lane *relay);

enum {
    RELAY_TOPICS_READ = 64 /* by index in the registry; the last place is of all topics beyond */
};
struct relay_topic_reading {
    uint64_t peers; /* that take part */
    uint64_t mesh_peers;
};
struct relay_topic_reading relay_topic_reading(const struct relay_lane *relay, uint32_t index);
