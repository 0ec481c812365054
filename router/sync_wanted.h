/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Ids of messages that a peer is to send by transfer and that are not here yet: no other peer is asked
 * for them meanwhile, nor the same one again.
 *
 * An id is wanted of one peer: until it is in the sync set, or until nothing that is wanted of that
 * peer has come for the patience (for SYNC_WANTED_WAITS_MAX times the patience in all). Then it may
 * be asked of anybody. An id that was let go SYNC_WANTED_TRIES times is not reserved any more, so that
 * peers that promise and do not deliver hold nothing back for long, however many they are.
 *
 * An open question (we listed our ids of a range and the peer's are not here yet) is kept for
 * SYNC_WANTED_ASK_MS: in that range another peer is let to list its ids first.
 *
 * Progress: O(log n); letting ids go is done in steps of SYNC_WANTED_STEP_IDS by sync_wanted_tend.
 * Thread:   one (the sync worker). A peer is any number that is not 0 (a connection's id).
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/attributes.h"
#include "base/status.h"
#include "hash/id_tree.h"

enum {
    SYNC_WANTED_PEERS = 64, /* of whom something is wanted at a time */
    SYNC_WANTED_SHARE = 2,  /* one peer's part of the ids, at most */
    SYNC_WANTED_WAITS_MAX = 10,
    SYNC_WANTED_TRIES = 3,
    SYNC_WANTED_STEP_IDS = 512,
    SYNC_WANTED_ASK_MS = 30 * 1000,
    SYNC_WANTED_SETTLE_MS = 5 * 1000 /* for what came last to get through decode and archive */
};

struct sync_wanted;

/* max: ids of all peers together; patience_ms: at least 1. */
MUST_USE enum status sync_wanted_create(struct sync_wanted **out, size_t max, uint64_t patience_ms);
void sync_wanted_destroy(struct sync_wanted **wanted);

/* These ids are to come from that peer; those that cannot be kept in mind are simply not. */
void sync_wanted_expect(struct sync_wanted *wanted, uint64_t peer, const struct id_key *ids,
        size_t count, uint64_t now_ms);

/* It is in the sync set. */
void sync_wanted_arrived(struct sync_wanted *wanted, const struct id_key *id);

/* Nothing more comes from that peer: in SYNC_WANTED_SETTLE_MS its ids are let go. */
void sync_wanted_peer_ended(struct sync_wanted *wanted, uint64_t peer, uint64_t now_ms);

/* Lets go what is due, one step; true: there is more. */
bool sync_wanted_tend(struct sync_wanted *wanted, uint64_t now_ms);

bool sync_wanted_contains(const struct sync_wanted *wanted, const struct id_key *id);

/* Whether ids from from_ns to to_ns, both included, are wanted or asked for. */
bool sync_wanted_has_between(const struct sync_wanted *wanted, int64_t from_ns, int64_t to_ns);

/* One question at a time for each asker (any number): a later one takes the place of the first. */
void sync_wanted_ask(struct sync_wanted *wanted, uint64_t asker, int64_t from_ns, int64_t to_ns,
        uint64_t now_ms);
void sync_wanted_answered(struct sync_wanted *wanted, uint64_t asker);

/* Whether there is a question about that time. */
bool sync_wanted_is_asked(const struct sync_wanted *wanted, int64_t at_ns);

size_t sync_wanted_count(const struct sync_wanted *wanted);
