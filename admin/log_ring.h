/* SPDX-License-Identifier: MIT */
#pragma once

/*
 * A bounded queue of log lines from many threads to the one that writes them.
 *
 * Progress:  a push never waits: it finds the ring full, or copies its line in. The taker waits for a
 *            push that is half done, and the lines behind it with it; whoever wakes the taker does so
 *            after its push, so there is nothing to poll.
 *
 *                          any thread   the taker
 *   try_push                   x
 *   try_pop, has_next                       x
 */

#include <stdbool.h>
#include <stddef.h>

#include "admin/log_record.h"
#include "base/attributes.h"
#include "base/status.h"

struct log_ring;

/* capacity: a power of two, at least 2. */
MUST_USE enum status log_ring_create(struct log_ring **out, size_t capacity);
void log_ring_destroy(struct log_ring **ring);

/* The record is copied. False: full. */
MUST_USE bool log_ring_try_push(struct log_ring *ring, const struct log_record *record);

/* False: empty, or the next push is half done. */
MUST_USE bool log_ring_try_pop(struct log_ring *ring, struct log_record *out);
bool log_ring_has_next(const struct log_ring *ring);
