/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The one way in: turns a received RPC, or one message of a local publisher, into parts in the
 * inboxes of the lanes that own their topics.
 *
 * Thread: any; the functions keep no state but counters.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/attributes.h"
#include "base/status.h"
#include "codec/gossip_rpc.h"
#include "codec/waku_message.h"
#include "queues/frame.h"
#include "queues/inbox.h"
#include "router/relay_link.h"
#include "router/topic_registry.h"

enum {
    INTAKE_LANES_MAX = 16
};

/* May make the topic known now (a replay takes part in whatever it reads); NULL: refused. */
typedef const struct topic *intake_unknown_topic(void *context, struct span name);

struct intake {
    const struct topic_registry *topics;
    intake_unknown_topic *unknown_topic; /* NULL: every unknown topic is refused */
    void *unknown_context;
    struct inbox *lanes[INTAKE_LANES_MAX];  /* of frame parts; what the lane sleeps on */
    struct inbox *events[INTAKE_LANES_MAX]; /* of lane events; NULL: the node does not relay */
    size_t lane_count;
    struct relay_pace *pace; /* of publishers; NULL: the node does not relay */
};

/* Everything of an RPC that is not a message: subscriptions and control, as views into the frame. */
typedef void intake_control(void *context, const struct gossip_entry *entry);

/* Where and when it came in. */
struct intake_source {
    int64_t received_ns;
    uint64_t received_monotonic_ns;
    uint64_t connection;
    enum message_origin origin;
    intake_control *control; /* of an RPC; may be NULL */
    void *control_context;
};

/*
 * Posts every message of the RPC that frame holds and drops the caller's reference. A message of a
 * topic that is not subscribed is refused and counted here. *posted: parts in the inboxes. A malformed
 * RPC is refused whole with its status.
 */
MUST_USE enum status intake_post_rpc(const struct intake *intake, struct frame *CONSUMED frame,
        const struct intake_source *source, size_t *posted);

/*
 * What publishers have posted waits for most of the peers: whoever can wait does, whoever cannot is told.
 * A post that comes all the same is taken.
 */
bool intake_is_behind(const struct intake *intake);

/* Posts an event to a lane and wakes it. */
void intake_post_event(const struct intake *intake, size_t lane, struct lane_event *CONSUMED event);

/*
 * Posts the WakuMessage that frame holds, on topic. completion comes back in the verdict and in the
 * envelope. On failure (STATUS_NO_MEMORY) the frame still belongs to the caller.
 */
MUST_USE enum status intake_post_message(const struct intake *intake, struct frame *CONSUMED frame,
        const struct topic *topic, const struct intake_source *source, void *completion);

/* What a local publisher has to say, or what stands inside a request. */
struct local_message {
    const struct topic *topic;
    const struct waku_message_view *fields; /* intake_post_fields */
    struct span bytes;                      /* intake_post_part: inside the frame */
    void *completion;                       /* as of intake_post_message */
    bool is_fanout;                         /* the node takes no part in topic: see frame_part */
};

/* As intake_post_message, for a frame of which the message is only a part. */
MUST_USE enum status intake_post_part(const struct intake *intake, struct frame *CONSUMED frame,
        const struct local_message *message, const struct intake_source *source);

/*
 * Encodes the message's fields into frame, which has waku_message_size of them, and posts it: where
 * everything lies is known, so the lane checks and hashes it but decodes nothing. On failure
 * (STATUS_NO_MEMORY) the frame still belongs to the caller.
 */
MUST_USE enum status intake_post_fields(const struct intake *intake, struct frame *CONSUMED frame,
        const struct local_message *message, const struct intake_source *source);
