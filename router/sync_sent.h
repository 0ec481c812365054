/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Ids that one peer is being sent by transfer, or was a moment ago: while the peer may not have taken
 * them yet, it is not sent them again.
 *
 * An id is under way from the moment it is queued until it was sent and the patience has passed since.
 * What cannot be kept in mind is sent all the same.
 *
 * Thread: one; all sync_sent that share an account may be on several.
 */

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/attributes.h"
#include "hash/id_tree.h"
#include "router/peer_map.h"

/* Of all peers together. */
struct sync_sent_account {
    atomic_size_t count;
    size_t max;
    uint64_t patience_ms;
};

/* All zero is empty. */
struct sync_sent {
    struct peer_map by_key; /* to the time of sending */
    uint64_t next_sweep_ms;
};

/* Forgets all. */
void sync_sent_fini(struct sync_sent *sent, struct sync_sent_account *account);

/* Leaves those in ids that are not under way, in their order, which are from now on; how many. */
size_t sync_sent_queue(struct sync_sent *sent, struct sync_sent_account *account,
        struct id_key *ids, size_t count, uint64_t now_ms);

/* It goes out now. */
void sync_sent_mark(struct sync_sent *sent, const struct id_key *id, uint64_t now_ms);

/* It was not sent. */
void sync_sent_forget(
        struct sync_sent *sent, struct sync_sent_account *account, const struct id_key *id);
