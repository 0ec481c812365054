/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Until when a topic's mesh leaves a peer in peace after a PRUNE. Kept when the peer leaves, or
 * reconnecting would be a way around it, but bounded in number.
 *
 * Thread: one (the lane's).
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "router/peer_map.h"

enum {
    BACKOFFS_MAX = 4096 /* of a topic; past it new ones are not noted */
};

struct backoffs {
    struct peer_map until_ms; /* monotonic, rounded up */
};

/* All zero is empty. */
void backoffs_fini(struct backoffs *backoffs);

/* The later of the two counts. */
void backoffs_add(struct backoffs *backoffs, uint64_t peer, uint64_t until_ns);

/* Not later than until_ns: of a peer that has left. */
void backoffs_shorten(struct backoffs *backoffs, uint64_t peer, uint64_t until_ns);

/* 0 when there is none. */
uint64_t backoffs_until(const struct backoffs *backoffs, uint64_t peer);

void backoffs_expire(struct backoffs *backoffs, uint64_t now_ns);
