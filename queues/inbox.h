/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * A queue from many threads to one, on liburcu's wait-free concurrent queue. Items embed their
 * link, so a push never allocates and never fails: what limits it is the budget that the pusher
 * charged before (frames) or the caller's own cap.
 *
 * Progress:   push is wait-free. try_pop never blocks: behind a push that is half done it finds
 *             nothing, while inbox_is_empty stays false, and that pusher's wake follows.
 * Ownership:  push moves the item in, pop moves it out.
 *
 *                    any thread   the taker
 *   push, wake           x            x
 *   try_pop, peek, is_empty           x
 *   depth_estimate       x            x
 */

#include <stdbool.h>
#include <stddef.h>
#include <urcu/wfcqueue.h>

#include "base/attributes.h"
#include "base/status.h"
#include "queues/parking.h"

struct inbox_link {
    struct cds_wfcq_node node;
};

struct inbox;

MUST_USE enum status inbox_create(struct inbox **out);

/* The inbox must be empty. */
void inbox_destroy(struct inbox **inbox);

/* Does not wake the taker: call inbox_wake after one or several pushes. */
void inbox_push(struct inbox *inbox, struct inbox_link *CONSUMED link);
void inbox_wake(struct inbox *inbox);

/* NULL when empty, or when the next push is half done. */
MUST_USE struct inbox_link *inbox_try_pop(struct inbox *inbox);

/* What try_pop will return next, as far as it is at hand; NULL says nothing. It stays in the inbox. */
const struct inbox_link *BORROWED inbox_peek(struct inbox *inbox);

/* What the taker looks at between parking_prepare and parking_wait. */
bool inbox_is_empty(struct inbox *inbox);

/* Pushes begun minus pops. */
size_t inbox_depth_estimate(const struct inbox *inbox);

/* The deepest that the taker found it when it fetched a batch. */
size_t inbox_high_water(const struct inbox *inbox);

/* What the taker sleeps on. */
struct parking *BORROWED inbox_parking(struct inbox *inbox);
