/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * A queue from many threads to one, on liburcu's wait-free concurrent queue. Items embed their
 * link, so a push never allocates and never fails: what limits it is the budget that the pusher
 * charged before (frames) or the caller's own cap.
 *
 * Progress:   push is wait-free; pop is lock-free (it waits only for a push that is half done).
 * Ownership:  push moves the item in, pop moves it out.
 *
 *                    any thread   the taker
 *   push                 x            x
 *   pop, drain                        x
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

/* NULL when empty. */
MUST_USE struct inbox_link *inbox_try_pop(struct inbox *inbox);
bool inbox_is_empty(struct inbox *inbox);
size_t inbox_depth_estimate(const struct inbox *inbox);

/* What the taker sleeps on. */
struct parking *BORROWED inbox_parking(struct inbox *inbox);
