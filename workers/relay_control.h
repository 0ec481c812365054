/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * Gathers the control actions of a mesh by peer, so that each peer gets one RPC a turn
 * (several where one would be too large).
 *
 *     struct relay_control control = {.actions = actions, .now_ns = now};
 *     while (relay_control_next(&control, &peer)) {
 *         parcel = relay_control_parcel(&control, connection);
 *     }
 *
 * Sorts the actions. Thread: one.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/attributes.h"
#include "router/mesh_actions.h"
#include "router/relay_link.h"

struct relay_control {
    struct mesh_actions *actions;
    uint64_t now_ns;
    size_t next;  /* the first action of the next peer */
    size_t first; /* the actions of the current peer */
    size_t end;
    bool is_sorted;
};

/* The next peer with something to be told; false when there is none. */
MUST_USE bool relay_control_next(struct relay_control *control, uint64_t *peer);

/* NULL: no memory. */
MUST_USE struct relay_parcel *relay_control_parcel(
        const struct relay_control *control, uint64_t connection);
