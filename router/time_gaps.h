/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * A short sorted list of spans of time, kept apart by at least one nanosecond: where the sync set may
 * be missing something. Part of router/sync_set.
 */

#include <stddef.h>
#include <stdint.h>

#include "router/sync_set.h"

enum {
    TIME_GAPS_MAX = 64
};

struct time_gaps {
    size_t count;
    struct sync_gap gaps[TIME_GAPS_MAX + 1]; /* one to spare while two become one */
};

/* Past TIME_GAPS_MAX the two closest become one. */
void time_gaps_add(struct time_gaps *gaps, struct sync_gap gap);

/* What is left of a gap that is cut in two counts as two. */
void time_gaps_remove(struct time_gaps *gaps, struct sync_gap gap);
