/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * One lane's decision about each message that is posted to it: a copy of one that it accepted, refused
 * and why, or new; and for a new one the envelope, decoded once and hashed once.
 *
 * The order of the checks puts the cheap ones first:
 *
 *   1. the same bytes are held, within the window of the seen set   duplicate, no hash
 *   2. the same bytes were refused a moment ago                     refused, first reason, no decode
 *   3. signed fields (StrictNoSign), size                           refused
 *   4. fast key seen before: message id, compared                   duplicate, one id pass
 *   5. decode, payload, content topic, meta                         refused
 *   6. both hashes side by side, timestamp verdict                  new
 *
 * Only accepted messages enter the seen set. Sync and resume have a door of their own: no timestamp
 * verdict, no seen set, the archive tells repetitions by message hash. The same bytes by sync within
 * some seconds are a duplicate at once; not for longer, as the archive may have had no room for the
 * first.
 *
 * Thread: the lane's decode thread is the only one.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/attributes.h"
#include "base/metrics.h"
#include "base/status.h"
#include "codec/waku_message.h"
#include "hash/message_hash.h"
#include "queues/envelope.h"
#include "queues/frame.h"
#include "router/traffic.h"

struct lane;

/* Whether a message that is well-formed may be on its topic, by whatever way it came. */
typedef bool lane_accepts(
        void *context, const struct frame_part *part, const struct waku_message_view *view);

struct lane_options {
    size_t max_message_bytes;  /* of the serialised WakuMessage */
    size_t recent_limit_bytes; /* see router/recent.h */
    size_t seen_limit_bytes;   /* see hash/seen_set.h */
    uint64_t seen_window_ns;
    uint64_t timestamp_tolerance_ns; /* either side of the clock at receipt */
    bool refuses_timestamps; /* relay's verdict on The Waku Network: refused, not only unarchived */
    lane_accepts *accepts;   /* on the lane's thread; NULL: everything is */
    void *accepts_context;
    bool has_message_ids; /* false: nobody relays, the seen set goes by message hash */
};

enum lane_verdict {
    LANE_NEW,
    LANE_DUPLICATE,
    LANE_REFUSED
};

struct lane_decision {
    enum lane_verdict verdict;
    enum metric reason;        /* LEDGER_INTAKE_...: what was counted */
    struct envelope *envelope; /* LANE_NEW: the caller's reference, otherwise NULL */
};

MUST_USE enum status lane_create(struct lane **out, const struct lane_options *options);
void lane_destroy(struct lane **lane);

/* A message that passed all checks and waits for its hashes. It stays where it is until lane_finish. */
struct lane_pending {
    struct envelope *envelope; /* not published yet */
    uint64_t key;
    bool wants_id;
    struct message_hash_task hash; /* of lane_hash_start */
};

/*
 * Everything but the hashes. True: *decision is made and counted. False: *pending goes to lane_hash
 * (or, where lane_can_wait says so, to lane_hash_start) and then to lane_finish. The part still
 * belongs to the caller.
 */
MUST_USE bool lane_begin(struct lane *lane, const struct frame_part *part,
        struct lane_decision *decision, struct lane_pending *pending);

/* The message has one hash to come, which costs little beside that of another message. */
bool lane_can_wait(const struct lane_pending *pending);
void lane_hash(struct lane_pending *pending);

/*
 * The same beside the hash of the message started before and of the one after it: it is done some time
 * later, at the latest by lane_hash_end.
 */
void lane_hash_start(struct lane *lane, struct lane_pending *pending);
bool lane_is_hashed(const struct lane_pending *pending);
void lane_hash_end(struct lane *lane, const struct lane_pending *pending);

/* Decides and counts. */
struct lane_decision lane_finish(struct lane *lane, struct lane_pending *pending);

/* begin, hash and finish in one. */
struct lane_decision lane_take(struct lane *lane, const struct frame_part *part);

/* Whether a message with that id was accepted on that topic within the window. */
bool lane_has_seen(const struct lane *lane, const struct topic *topic, const uint8_t *id);

/* Forgets what has left the window. True when there is more to do. */
bool lane_expire(struct lane *lane, uint64_t now_monotonic_ns);

/* What came by, read on any thread. */
struct traffic *BORROWED lane_traffic(struct lane *lane);

size_t lane_seen_count(const struct lane *lane);
size_t lane_recent_bytes(const struct lane *lane);
