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
#include "workers/worker.h"

/*
 * What became of a part, for a local publisher that waits for the verdict; on the decode thread,
 * must not block. Only called for parts with a completion.
 */
typedef void decode_verdict(void *context, void *completion, const struct lane_decision *decision);

struct decode_worker {
    struct inbox *BORROWED inbox;
    struct lane *BORROWED lane;
    struct dispatcher *BORROWED dispatcher;
    struct progress *BORROWED progress;
    size_t progress_slot;    /* of PROGRESS_INTAKE */
    decode_verdict *verdict; /* NULL: nobody waits */
    void *verdict_context;
    uint64_t next_expiry_ns;
};

/* The role of a worker that runs it; name is the caller's, context the decode_worker. */
struct worker_role decode_worker_role(struct decode_worker *worker, const char *name);
