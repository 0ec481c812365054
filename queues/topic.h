/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * An interned pubsub topic: envelopes and queues point to it instead of carrying its name.
 *
 * Lifetime: made by router/topic_registry, which frees it only when the node is destroyed, so never
 *           while an envelope lives. All fields are constant after that.
 */

#include <stdint.h>

#include "base/span.h"

struct topic {
    uint32_t index;   /* position in the registry, dense, from 0 */
    uint32_t lane;    /* the lane that owns it */
    struct span name; /* also NUL-terminated */
};
