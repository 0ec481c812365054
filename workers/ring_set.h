/* SPDX-License-Identifier: MIT */
#pragma once

/* The rings of all lanes to one stage, read in turn, with the parking that they share. */

#include <stdbool.h>
#include <stddef.h>

#include "base/attributes.h"
#include "queues/parking.h"
#include "queues/spmc_ring.h"
#include "queues/stage_load.h"

enum {
    RING_SET_MAX = 16
};

struct ring_set {
    struct spmc_ring *BORROWED rings[RING_SET_MAX]; /* by the lane of an envelope's topic */
    struct stage_load *BORROWED load;               /* of the stage; NULL: not counted */
    size_t count;
    size_t next; /* where the next pop starts, so that no lane waits for another */
};

/* Fills out with up to capacity references; returns how many. */
size_t ring_set_drain(struct ring_set *set, struct envelope **out, size_t capacity);

/* The stage is done with an envelope that came out of the set. */
void ring_set_release(struct ring_set *set, struct envelope *CONSUMED envelope);
bool ring_set_is_empty(const struct ring_set *set);
size_t ring_set_depth(const struct ring_set *set);
