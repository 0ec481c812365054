/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * The decode role: one thread a lane that takes the parts which io threads and local publishers
 * post, lets the lane decide, and publishes what is new. Sole producer of the lane's rings.
 */

#include <stddef.h>
#include <stdint.h>

#include "base/attributes.h"
#include "base/status.h"
#include "queues/inbox.h"
#include "queues/progress.h"
#include "router/dispatcher.h"
#include "router/lane.h"
#include "workers/relay_lane.h"
#include "workers/worker.h"

/*
 * What became of a part, for a local publisher that waits for the verdict; on the decode thread, must
 * not block. Only called for parts with a completion. peer_count: how many peers it is on its way to.
 */
typedef void decode_verdict(
        void *context, void *completion, const struct lane_decision *decision, size_t peer_count);

enum {
    DECODE_WAITING_MAX = 8 /* a power of two */
};

/*
 * Messages that are hashed beside each other, in the order in which they came: they are published in
 * that order, too. Message n is at n % DECODE_WAITING_MAX.
 */
struct decode_waiting {
    size_t first;
    size_t count;
    struct frame_part *parts[DECODE_WAITING_MAX];
    struct lane_pending pending[DECODE_WAITING_MAX];
};

struct decode_worker {
    struct inbox *BORROWED inbox;
    struct lane *BORROWED lane;
    struct dispatcher *BORROWED dispatcher;
    struct relay_lane *BORROWED relay; /* NULL: the node does not relay */
    struct progress *BORROWED progress;
    size_t progress_slot;    /* of PROGRESS_INTAKE */
    decode_verdict *verdict; /* NULL: nobody waits */
    void *verdict_context;
    decode_verdict *lightpush; /* likewise, of parts that came in by lightpush */
    void *lightpush_context;
    struct relay_pace *BORROWED pace; /* as of the intake */
    decode_verdict *rest;             /* likewise, of parts that came in by REST; no context */
    uint64_t next_expiry_ns;
    uint64_t turn_ns; /* monotonic time of this turn, when there is relay */
    struct decode_waiting waiting;
    size_t unwoken_parts; /* settled since the stages were woken */
    size_t unwoken_bytes;
    size_t patience; /* waits for the archive that are left, see decode_worker.c */
};

/* The role of a worker that runs it; name is the caller's, context the decode_worker. */
struct worker_role decode_worker_role(struct decode_worker *worker, const char *name);
