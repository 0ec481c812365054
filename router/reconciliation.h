/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Store-sync's reconciliation as a pure function: one payload of the peer and our sync set in, our
 * next payload and the differences found out. The session (stream, rounds, transfers) is the caller's.
 *
 * A payload partitions the time between its first timestamp and its last bound into ranges, each
 * skipped, given as a fingerprint, or given as its whole set of ids.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/attributes.h"
#include "base/span.h"
#include "base/status.h"
#include "router/sync_set.h"
#include "router/sync_wanted.h"

struct reconciliation_limits {
    size_t incoming_bytes_max; /* 8 MiB: a larger payload is refused */
    size_t outgoing_bytes_aim; /* 4 MiB: past it, ranges are left for the next round */
    size_t topics_max;         /* 1,024 of each kind in a payload */
    size_t topic_bytes_max;    /* 1,024 */
    size_t ranges_max;         /* 65,536 in a payload */
    size_t item_set_max;       /* 100 ids: a larger differing range is split */
    size_t part_item_set_max;  /* 4 ids: a larger part of a split range is a fingerprint at first */
    size_t list_max;           /* 1,000 ids: asked for ours, we name of more only those in common */
    size_t split_parts;        /* 8 */
    size_t differences_max;    /* 100,000 ids in each direction an answer */
    int64_t earliest_ns;       /* 0; ids that are older are left alone, both ours and theirs */
    uint64_t work_max;         /* 4,000,000 ids looked at one by one an answer */
    /*
     * NULL: nothing is wanted of others. Else what a peer lists of it is answered as if we had it, and
     * where there is some the peer is let to list its ids first; and to an empty set of ours the peer's
     * list is asked for, not the messages alone, to know what will come.
     */
    const struct sync_wanted *wanted;
};

extern const struct reconciliation_limits reconciliation_defaults;

enum {
    RECONCILIATION_ROUNDS_MAX = 64 /* payloads in one session; the caller counts */
};

struct sync_bytes {
    uint8_t *bytes;
    size_t length;
    size_t capacity;
};

struct sync_ids {
    struct id_key *ids;
    size_t count;
    size_t capacity;
};

/* Reused from answer to answer; zeroed before the first. */
struct reconciliation_answer {
    struct sync_bytes payload; /* without the frame's length prefix */
    struct sync_ids they_lack; /* ours, to be transferred to them */
    struct sync_ids we_lack; /* theirs, which they will transfer; without what was wanted before */
    size_t not_asked_count;  /* theirs that we lack and others are to send */
    bool has_asked;          /* we listed our ids, so all else from asked_from_ns to asked_to_ns */
    int64_t asked_from_ns;   /* will come; inclusive */
    int64_t asked_to_ns;
    bool is_end;        /* nothing follows: send payload if it has bytes, then close */
    bool is_incomplete; /* a limit was hit: some differences wait for another session */
};

void reconciliation_answer_fini(struct reconciliation_answer *answer);

/*
 * The time a session is about, [from, to): the last range_ns before now - jitter_ns (messages younger
 * than the jitter are still on their way through relay). Both sides use the initiator's, so clocks need
 * not agree; prune the set some jitters behind the window, or the ids at its edge seem to be missing.
 */
struct sync_gap reconciliation_window(int64_t now_ns, int64_t range_ns, int64_t jitter_ns);

/* The first payload of a session about from_ns to to_ns: one fingerprint over all of it. */
MUST_USE enum status reconciliation_start(struct reconciliation_answer *out,
        const struct sync_set *set, const struct sync_scope *scope, struct sync_gap window);

/*
 * scope is what we serve. STATUS_TRUNCATED, STATUS_BAD_VARINT, STATUS_BAD_FIELD, STATUS_TOO_LARGE: the
 * payload is malformed or over a limit and the session is to be closed.
 */
MUST_USE enum status reconciliation_answer(struct reconciliation_answer *out,
        const struct sync_set *set, const struct sync_scope *scope, struct span incoming,
        const struct reconciliation_limits *limits);
