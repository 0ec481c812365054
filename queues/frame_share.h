/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * How many bytes of one peer's frames are on their way to the lanes, so that no peer fills the frame
 * budget alone. A frame counts from its creation until every part and event made of it has been dealt
 * with; what a lane keeps of it then is the node's own affair.
 *
 * Progress:   lock-free.
 * Ownership:  the share lives until its owner has dropped it and all of its bytes were released.
 *
 *                   the owner   any thread
 *   try_charge, drop    x
 *   release             x           x
 */

#include <stdbool.h>
#include <stddef.h>

#include "base/attributes.h"
#include "base/status.h"

struct frame_share;

/*
 * wake is called on a releasing thread when, after a refusal, no more than half of the limit is left;
 * it must not block and outlives all of the share's bytes.
 */
MUST_USE enum status frame_share_create(
        struct frame_share **out, size_t limit_bytes, void (*wake)(void *context), void *context);

/* The owner's end: no wake comes any more, but for one that is under way. */
void frame_share_drop(struct frame_share **share);

/* False when there is no room; one frame of any size always has. */
MUST_USE bool frame_share_try_charge(struct frame_share *share, size_t bytes);
void frame_share_release(struct frame_share *share, size_t bytes);

size_t frame_share_used(const struct frame_share *share);
