/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The lightpush service, v3 and legacy: a request is read into a frame, and its message goes from
 * there, as it is, through the one way in. The lane's verdict is the answer:
 *
 *   200   on its way to relay_peer_count peers
 *   400   malformed request, no request id, no message, or an empty pubsub topic
 *   413   larger than a message may be, or the whole request larger than one with such a message
 *   420   a message that the network does not take, or that was seen before; no pubsub topic and none
 *         to be had from the content topic
 *   421   a pubsub topic that this node takes no part in
 *   429   the peer has made as many requests as it may, or has as many pushes under way
 *   503   no memory, or too many pushes in all
 *   505   nobody to relay to; kept in the archive and given to subscribers all the same
 *
 * The legacy answer has success for 200 only.
 *
 * Lifetime: create before the loops run; outlives the switch. Destroyed when nothing is pending.
 */

#include <stddef.h>
#include <stdint.h>

#include "base/attributes.h"
#include "base/status.h"
#include "net/switch/switch.h"
#include "queues/frame_budget.h"
#include "router/intake.h"
#include "router/lane.h"
#include "router/rate_limit.h"

struct lightpush;

struct lightpush_options {
    struct net_switch *BORROWED net_switch;
    const struct intake *BORROWED intake; /* complete before the loops run */
    struct frame_budget *BORROWED budget;
    size_t message_bytes_max;
    size_t connection_pushes_max; /* under way at a time, of one connection */
    size_t pushes_max;            /* of all */
    struct rate_limit rate;       /* for each of the two protocols */
    uint16_t cluster_id;
    uint16_t network_shards; /* for autosharding; 0: a request names its topic */
};

MUST_USE enum status lightpush_create(
        struct lightpush **out, const struct lightpush_options *options);
void lightpush_destroy(struct lightpush **lightpush);

/* What became of a message of ORIGIN_LIGHTPUSH: a decode_verdict (workers/decode_worker.h). */
void lightpush_settle(
        void *context, void *completion, const struct lane_decision *decision, size_t peer_count);

/* Pushes that are not over. Thread: any. */
size_t lightpush_pending(struct lightpush *lightpush);
