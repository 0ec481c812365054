/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Store-sync: reconciliation, which finds out with a peer what each of the two archives lacks of the
 * last hour, and transfer, by which each sends the other what that one lacks.
 *
 * A session is asked for on the control thread, its stream belongs to an io thread, each payload is
 * answered on the sync thread (router/reconciliation.h), and what the peer lacks is read on the query
 * thread, a few messages at a time, as fast as the peer takes them. What is transferred to us goes the
 * one way in with ORIGIN_SYNC, as fast as the archive takes it.
 *
 * A transfer is taken from a peer while we have a session with it and for STORE_SYNC_GRACE_MS after.
 *
 * Lifetime: create before the loops run; destroyed before the loops when nothing is pending, after the
 *           switch has stopped.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "archive/archive_jobs.h"
#include "base/attributes.h"
#include "base/status.h"
#include "net/identity/peer_id.h"
#include "net/protocols/identify_message.h"
#include "net/switch/switch.h"
#include "queues/frame_budget.h"
#include "queues/inbox.h"
#include "router/intake.h"

#define RECONCILIATION_PROTOCOL_ID "/vac/waku/reconciliation/1.0.0"

enum {
    STORE_SYNC_GRACE_MS = 5 * 60 * 1000, /* the reference's sender may be busy with others first */
    STORE_SYNC_QUIET_MS = 5 * 1000, /* what has not come for so long is not waited for any more */
    STORE_SYNC_STEP_TIMEOUT_MS = 30 * 1000, /* for each payload, and for a peer to take messages */
    STORE_SYNC_RETRY_MS = 5 * 1000 /* after a session that failed, if the interval is longer */
};

struct store_sync;

/* What is 0 has no default: all are to be set. */
struct store_sync_options {
    struct net_switch *BORROWED net_switch;
    struct io_loop *const *loops; /* copied */
    size_t loop_count;
    struct inbox *BORROWED sync_jobs;
    struct archive_jobs *BORROWED query_jobs;
    const struct intake *BORROWED intake;
    struct frame_budget *BORROWED budget;
    /* Whether the archive takes more now. Thread: any. */
    bool (*has_room)(void *context);
    void *room_context;

    size_t message_bytes_max;
    int64_t range_ns;
    int64_t jitter_ns;
    uint64_t interval_ms;     /* between sessions of ours; 0: only those that are asked for */
    size_t payload_bytes_max; /* of one we read; ours are half as long at most */
    unsigned rounds_max;      /* payloads of the peer in a session */
    size_t session_ids_max;   /* differences in each direction that a session is about */
    uint64_t session_time_ms; /* of a session, at most */
    size_t peer_sessions_max; /* that a peer may begin a minute; 0: no limit */
    uint64_t patience_ms;     /* how long a message counts as under way to a peer */
    size_t under_way_max;     /* of those, ids that are kept in mind */
    size_t sessions_max;      /* at a time, the peers' and ours */
    bool has_preferred_peer;  /* it is the only one that we ask for sessions */
    struct peer_id preferred_peer;
};

MUST_USE enum status store_sync_create(
        struct store_sync **out, const struct store_sync_options *options);
void store_sync_destroy(struct store_sync **sync);

/* What identify's event has to tell. Thread: the connection's io thread. */
void store_sync_identified(
        struct store_sync *sync, struct connection *connection, const struct identify_info *info);

/* A session with the next peer as soon as there is one, whatever the interval says. Thread: any. */
void store_sync_now(struct store_sync *sync);

/* Jobs that come back to an io thread. Thread: any. */
size_t store_sync_pending(const struct store_sync *sync);
